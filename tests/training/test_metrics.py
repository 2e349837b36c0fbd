"""Metrics against values by hand, golden cases and an oracle that counts."""

import json
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from fairlearn.metrics import (
    MetricFrame,
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, log_loss, recall_score, roc_auc_score, top_k_accuracy_score

from study.data import Facts
from study.metrics import MAX_GROUP_METRICS, searchable_metrics
from study.training import metrics
from study.training.cell_statistics import CELL_PRIOR_SAMPLES, CLASS_PRIOR_SAMPLES

HERE = Path(__file__).parent / "golden"
FULL = Path(os.environ.get("STUDY_GOLDEN", HERE.parents[2].parent / "shared" / "golden"))
FOLDERS = [(HERE, "metrics")] + ([(FULL, "losses")] if (FULL / "losses.npz").is_file() else [])
"""The few cases of the golden folder's family `metric`, copied here, and the folder itself where it is."""


def facts(classes: int, groups: int | None) -> Facts:
    return Facts(classes, groups, (3, 8, 8), aligned=tuple(range(classes)) if classes == groups else None)


def computed(prediction: list[int], target: list[int], bias: list[int] | None, of: Facts) -> dict[str, float]:
    tensors = [None if values is None else torch.tensor(values) for values in (prediction, target, bias)]
    return {name: float(value) for name, value in metrics.compute_metrics(None, *tensors, of).items()}


def scored(scores: torch.Tensor, target: list[int], of: Facts) -> dict[str, float]:
    found = metrics.compute_metrics(scores, scores.argmax(1), torch.tensor(target), None, of)
    return {name: float(value) for name, value in found.items()}


def test_each_metric_by_hand() -> None:
    prediction = [0, 0, 1, 0, 1, 1, 0, 1]
    target = [0, 0, 0, 0, 1, 1, 1, 1]
    bias = [0, 0, 1, 1, 1, 1, 0, 0]
    assert computed(prediction, target, bias, facts(2, 2)) == {
        "accuracy": 6 / 8,
        "balanced_accuracy": 6 / 8,
        "worst_class_accuracy": 3 / 4,
        "unbiased_accuracy": 6 / 8,
        "group_0_0_accuracy": 1.0,
        "group_0_1_accuracy": 0.5,
        "group_1_0_accuracy": 0.5,
        "group_1_1_accuracy": 1.0,
        "aligned_accuracy": 1.0,
        "conflicting_accuracy": 0.5,
        "worst_group_accuracy": 0.5,
        # (1 + 10 * 1/2) / 12 in both conflicting cells, (2 + 10) / 12 in both aligned ones
        "shrunk_unbiased_accuracy": 0.75,
        "shrunk_worst_group_accuracy": 0.5,
        # class 0: groups (1, 0) and (1/2, 1/2); class 1: (1/2, 1/2) and (0, 1): every difference is 1/2
        "equalized_odds": 0.5,
        "equalized_odds_difference": 0.5,
        "equal_opportunity": 0.5,
        # output 1: one of the four of bias class 0, three of the four of bias class 1
        "demographic_parity": 0.5,
        "accuracy_parity": 0.0,
    }


def test_without_bias_labels_there_is_no_metric_of_groups() -> None:
    of = facts(2, None)
    assert computed([0, 1, 1], [0, 1, 0], None, of) == {
        "accuracy": 2 / 3,
        "balanced_accuracy": 0.75,
        "worst_class_accuracy": 0.5,
    }
    assert computed([0, 1, 1], [0, 1, 0], [7, 8, 9], of) == computed([0, 1, 1], [0, 1, 0], None, of)
    assert metrics.available_metrics(of) == [
        "accuracy",
        "balanced_accuracy",
        "worst_class_accuracy",
        "auc",
        "log_loss",
        "balanced_log_loss",
    ]


def test_what_a_data_set_can_have() -> None:
    assert "top5_accuracy" in metrics.available_metrics(facts(6, None))
    assert "top5_accuracy" not in metrics.available_metrics(facts(5, None))
    assert not {"aligned_accuracy", "conflicting_accuracy", "auc", "equal_opportunity"} & set(
        metrics.available_metrics(facts(3, 2))
    )
    named = [name for name in metrics.available_metrics(facts(8, 2)) if name.startswith("group_")]
    assert named == [f"group_{y}_{s}_accuracy" for y in range(8) for s in range(2)]
    assert not [
        name for name in metrics.available_metrics(facts(MAX_GROUP_METRICS + 1, 1)) if name.startswith("group_")
    ]


def test_each_metric_of_predictions_in_the_table_is_computed_and_no_other() -> None:
    assert list(metrics.METRIC_FUNCTIONS) == searchable_metrics()


def test_samples_without_a_label_count_nowhere() -> None:
    of = facts(2, 2)
    with_them = computed([0, 1, 1, 0, 1], [0, 1, 0, -1, -1], [0, 1, 1, 0, 1], of)
    assert with_them == pytest.approx(computed([0, 1, 1], [0, 1, 0], [0, 1, 1], of), nan_ok=True)
    scores = torch.tensor([[2.0, 1.0], [0.0, 3.0], [1.0, 1.5], [9.0, -9.0]])
    assert scored(scores, [0, 1, 0, -1], facts(2, None)) == scored(scores[:3], [0, 1, 0], facts(2, None))


def test_samples_of_unknown_bias_are_in_no_group() -> None:
    found = computed([0, 1, 1, 0], [0, 1, 0, 1], [0, 1, -1, -1], facts(2, 2))
    assert found["accuracy"] == 0.5
    assert found["worst_group_accuracy"] == found["unbiased_accuracy"] == found["aligned_accuracy"] == 1.0


def test_a_split_without_any_label_has_no_metric() -> None:
    found = metrics.compute_metrics(
        torch.rand(3, 6), *(torch.tensor(one) for one in ([0, 1, 2], [-1] * 3, [0] * 3)), facts(6, 2)
    )
    assert all(np.isnan(float(value)) for value in found.values())


@pytest.mark.parametrize("of", [facts(2, 2), facts(10, 10)])
def test_no_metric_waits_for_the_device(of: Facts) -> None:
    """On tensors without values: reading one, or a shape that hangs on one, is an error."""
    scores, labels = torch.empty(50, of.classes, device="meta"), torch.empty(50, dtype=torch.int64, device="meta")
    found = metrics.compute_metrics(scores, scores.argmax(1), labels, labels, of, inferred=labels, errors=True)
    assert [name for name in found if not name.endswith("_standard_error")] == metrics.available_metrics(
        of, inferred=True
    )


def test_odds_of_a_class_that_is_compared_nowhere_are_no_number() -> None:
    found = computed([0, 0, 1], [0, 0, 1], [0, 1, 0], facts(2, 2))
    assert np.isnan(found["equalized_odds"])
    assert np.isnan(found["equal_opportunity"])
    assert found["demographic_parity"] == 0.5


def golden() -> list[tuple[Path, str, dict]]:
    found = []
    for folder, stem in FOLDERS:
        index = json.loads((folder / f"{stem}.index.json").read_text(encoding="utf-8"))
        cases = index if isinstance(index, list) else index["cases"]
        found += [(folder / f"{stem}.npz", case["case"], case) for case in cases if case["family"] == "metric"]
    return found


@pytest.mark.parametrize(("arrays", "name", "case"), golden(), ids=lambda value: getattr(value, "stem", None))
def test_equalized_odds_is_eq_6_of_the_paper(arrays: Path, name: str, case: dict) -> None:
    with np.load(arrays) as held:
        prediction, target, sensitive = (
            held[f"{name}/{part}"].astype(int).tolist() for part in ("prediction", "target", "sensitive")
        )
    options = case["hyperparameters"]
    found = computed(prediction, target, sensitive, facts(options["classes"], options["sensitive_values"]))
    (equation,) = (one for one in case["also"] if one["definition"] == "equalized_odds.eq6")
    assert 100 * found["equalized_odds"] == pytest.approx(equation["expected_loss"], rel=1e-9, abs=1e-13)
    assert 100 * found["accuracy"] == pytest.approx(options["accuracy_percent"], rel=1e-6)
    if options["classes"] == 2:
        assert 100 * found["equalized_odds"] == pytest.approx(case["expected_loss"], rel=1e-6)


def test_the_golden_cases_are_here() -> None:
    assert len(golden()) >= 2


def oracle(prediction: list[int], target: list[int], bias: list[int], of: Facts) -> dict[str, float | None]:
    """The same metrics by counting samples."""
    samples = list(zip(prediction, target, bias, strict=True))

    def share(right: int | None, members: list[tuple[int, int, int]]) -> float | None:
        hits = [p == (y if right is None else right) for p, y, _ in members]
        return sum(hits) / len(hits) if hits else None

    cells = {
        (y, b): [one for one in samples if one[1:] == (y, b)]
        for y in range(of.classes)
        for b in range(of.bias_classes or 0)
    }
    gaps = [
        abs(share(output, cells[y, one]) - share(output, cells[y, other]))  # type: ignore[operator]
        for y in range(of.classes)
        for one, other in combinations(range(of.bias_classes or 0), 2)
        if cells[y, one] and cells[y, other]
        for output in range(of.classes)
    ]
    every = all(sum(bool(cells[y, b]) for b in range(of.bias_classes or 0)) > 1 for y in range(of.classes))
    by_class = [share(None, [one for one in samples if one[1] == y]) for y in range(of.classes)]
    by_cell = [sum(p == y for p, y, _ in cell) / len(cell) for cell in cells.values() if cell]
    found = {
        "accuracy": share(None, samples),
        "worst_class_accuracy": min(value for value in by_class if value is not None),
        "worst_group_accuracy": min(by_cell),
        "unbiased_accuracy": sum(by_cell) / len(by_cell),
        "equalized_odds": sum(gaps) / len(gaps) if every else None,
        "equalized_odds_difference": max(gaps) if every else None,
    }
    if of.classes != of.bias_classes:
        return found
    return found | {
        "aligned_accuracy": share(None, [one for one in samples if one[1] == one[2]]),
        "conflicting_accuracy": share(None, [one for one in samples if one[1] != one[2]]),
    }


@st.composite
def predictions(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], Facts]:
    classes, groups, count = draw(st.integers(2, 4)), draw(st.integers(2, 4)), draw(st.integers(1, 25))
    labels = [
        draw(st.lists(st.integers(0, top - 1), min_size=count, max_size=count)) for top in (classes, classes, groups)
    ]
    return *labels, facts(classes, groups)  # type: ignore[return-value]


@given(predictions())
def test_every_metric_is_what_counting_gives(drawn: tuple[list[int], list[int], list[int], Facts]) -> None:
    found = computed(*drawn)
    for name, value in oracle(*drawn).items():
        assert found[name] == pytest.approx(np.nan if value is None else value, nan_ok=True), name


@pytest.mark.slow
@settings(max_examples=25)
@given(predictions())
def test_gaps_and_balance_are_those_of_fairlearn_and_scikit_learn(
    drawn: tuple[list[int], list[int], list[int], Facts],
) -> None:
    prediction, target, bias, of = drawn
    found = computed(*drawn)
    seen = sorted(set(target))
    assert found["balanced_accuracy"] == pytest.approx(recall_score(target, prediction, labels=seen, average="macro"))
    if len(set(bias)) < 2:
        assert np.isnan(found["demographic_parity"])
        assert np.isnan(found["accuracy_parity"])
        return
    frame = MetricFrame(metrics=accuracy_score, y_true=target, y_pred=prediction, sensitive_features=bias)
    assert found["accuracy_parity"] == pytest.approx(frame.difference())
    rates = [
        demographic_parity_difference(target, np.equal(prediction, output).astype(int), sensitive_features=bias)
        for output in range(of.classes)
    ]
    assert found["demographic_parity"] == pytest.approx(max(rates))
    compared = {(y, b) for y, b in zip(target, bias, strict=True)}
    if of.classes == 2 and len(compared) == 2 * len(set(bias)):
        odds = equalized_odds_difference(target, prediction, sensitive_features=bias)
        assert found["equalized_odds_difference"] == pytest.approx(odds, rel=0, abs=1e-12)
    if of.classes == 2 and len({b for y, b in zip(target, bias, strict=True) if y == 1}) == len(set(bias)):
        gap = equal_opportunity_difference(target, prediction, sensitive_features=bias)
        assert found["equal_opportunity"] == pytest.approx(gap)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(-3, 3)), min_size=2, max_size=30))
def test_the_area_under_the_curve_is_that_of_scikit_learn(samples: list[tuple[int, int]]) -> None:
    target, score = (list(part) for part in zip(*samples, strict=True))
    scores = torch.stack([torch.zeros(len(score)), torch.tensor(score).float()], 1)
    expected = roc_auc_score(target, score) if len(set(target)) == 2 else np.nan
    assert scored(scores, target, facts(2, None))["auc"] == pytest.approx(expected, nan_ok=True)


def lost(count: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits of three classes, classes and bias classes of some samples, some labels unknown."""
    draw = torch.Generator().manual_seed(seed)
    target, bias = (torch.randint(-1, 3, (count,), generator=draw) for _ in range(2))
    return torch.randn(count, 3, generator=draw), target, bias


def test_log_losses_are_those_of_scikit_learn() -> None:
    scores, target, bias = lost(200)
    found = metrics.compute_metrics(scores, scores.argmax(1), target, bias, facts(3, 3))
    likely = scores.double().softmax(1)

    def loss(rows: torch.Tensor) -> float:
        return float(log_loss(target[rows], likely[rows], labels=[0, 1, 2]))

    classes = [loss(target == y) for y in range(3)]
    cells = [loss((target == y) & (bias == s)) for y in range(3) for s in range(3)]
    assert float(found["log_loss"]) == pytest.approx(loss(target >= 0), abs=1e-12)
    assert float(found["balanced_log_loss"]) == pytest.approx(np.mean(classes), abs=1e-12)
    assert float(found["unbiased_log_loss"]) == pytest.approx(np.mean(cells), abs=1e-12)


def test_a_cell_with_few_losses_is_drawn_to_those_like_it() -> None:
    """Aligned cells have losses log 2 and log 4, one conflicting cell has one of log 8, the other no sample."""
    likely = torch.tensor([[1 / 2, 1 / 2], [3 / 4, 1 / 4], [1 / 8, 7 / 8]]).log()
    target, bias = torch.tensor([0, 1, 0]), torch.tensor([0, 1, 1])
    found = metrics.compute_metrics(likely, likely.argmax(1), target, bias, facts(2, 2), inferred=bias)
    # effects of aligned and conflicting cells and of the two classes, each cell with the weight of one sample
    cells = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])
    observed, losses = cells[:3], np.log([2, 4, 8])
    penalty = np.diag([0, 0, CLASS_PRIOR_SAMPLES, CLASS_PRIOR_SAMPLES]) / CELL_PRIOR_SAMPLES
    weight = 1 / (1 + CELL_PRIOR_SAMPLES)
    prior = cells @ np.linalg.solve(weight * observed.T @ observed + penalty, weight * observed.T @ losses)
    expected = [*(losses + CELL_PRIOR_SAMPLES * prior[:3]) / (1 + CELL_PRIOR_SAMPLES), prior[3]]
    assert float(found["shrunk_unbiased_log_loss"]) == pytest.approx(np.mean(expected), rel=1e-6)
    assert float(found["inferred_unbiased_log_loss"]) == float(found["shrunk_unbiased_log_loss"])


@pytest.mark.parametrize("name", ["log_loss", "balanced_log_loss", "unbiased_log_loss", "shrunk_unbiased_log_loss"])
def test_the_standard_error_of_a_log_loss_is_its_spread_over_splits(name: str) -> None:
    scores, target, bias = lost(40_000, seed=1)
    found = [
        metrics.compute_metrics(part, part.argmax(1), *labels, facts(3, 3), errors=True)
        for part, *labels in zip(*(values.chunk(200) for values in (scores, target, bias)), strict=True)
    ]
    values, errors = ([float(one[key]) for one in found] for key in (name, f"{name}_standard_error"))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.15)


def test_the_five_highest_scores_are_those_of_scikit_learn() -> None:
    scores = torch.randn(200, 9, generator=torch.Generator().manual_seed(0))
    target = torch.arange(200) % 9
    expected = top_k_accuracy_score(target.numpy(), scores.numpy(), k=5)
    assert scored(scores, target.tolist(), facts(9, None))["top5_accuracy"] == pytest.approx(expected)
