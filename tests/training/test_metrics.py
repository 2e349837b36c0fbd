"""Metrics against values by hand, golden cases and an oracle that counts."""

import json
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from study.data import Facts
from study.training import metrics

HERE = Path(__file__).parent / "golden"
FULL = Path(os.environ.get("STUDY_GOLDEN", HERE.parents[2].parent / "shared" / "golden"))
FOLDERS = [(HERE, "metrics")] + ([(FULL, "losses")] if (FULL / "losses.npz").is_file() else [])
"""The few cases of the golden folder's family `metric`, copied here, and the folder itself where it is."""


def facts(classes: int, groups: int | None) -> Facts:
    return Facts(classes, groups, (3, 8, 8))


def computed(prediction: list[int], target: list[int], bias: list[int] | None, of: Facts) -> dict[str, float]:
    tensors = [None if values is None else torch.tensor(values) for values in (prediction, target, bias)]
    return {name: float(value) for name, value in metrics.compute(*tensors, of).items()}


def test_each_metric_by_hand() -> None:
    prediction = [0, 0, 1, 0, 1, 1, 0, 1]
    target = [0, 0, 0, 0, 1, 1, 1, 1]
    bias = [0, 0, 1, 1, 1, 1, 0, 0]
    assert computed(prediction, target, bias, facts(2, 2)) == {
        "accuracy": 6 / 8,
        "worst_class_accuracy": 3 / 4,
        "aligned_accuracy": 1.0,
        "conflicting_accuracy": 0.5,
        "worst_group_accuracy": 0.5,
        # class 0: groups (1, 0) and (1/2, 1/2); class 1: (1/2, 1/2) and (0, 1): every difference is 1/2
        "equalized_odds": 0.5,
    }


def test_without_bias_labels_there_is_accuracy_alone() -> None:
    assert computed([0, 1, 1], [0, 1, 0], None, facts(2, None)) == {"accuracy": 2 / 3, "worst_class_accuracy": 0.5}
    assert metrics.available(facts(2, None)) == ["accuracy", "worst_class_accuracy"]


def test_which_direction_is_better() -> None:
    assert {name for name, metric in metrics.METRICS.items() if metric.mode == "min"} == {"equalized_odds"}


def test_classes_and_groups_that_the_split_lacks_do_not_count() -> None:
    found = computed([2, 2, 0, 2], [2, 2, 2, 2], [0, 0, 1, 1], facts(5, 4))
    assert found["worst_class_accuracy"] == 0.75
    assert found["worst_group_accuracy"] == 0.5
    # one pair of groups has samples: outputs 2 and 0 differ by 1/2, the other three outputs by 0
    assert found["equalized_odds"] == pytest.approx((0.5 + 0.5) / 5)


def test_where_no_sample_counts_the_metric_is_no_number() -> None:
    found = computed([0, 1], [0, 1], [0, 1], facts(2, 2))
    assert np.isnan(found["conflicting_accuracy"])
    assert np.isnan(found["equalized_odds"])
    assert found["accuracy"] == found["worst_group_accuracy"] == found["aligned_accuracy"] == 1.0


def test_a_perfect_and_a_constant_prediction_are_fair() -> None:
    target, bias = [0, 0, 1, 1], [0, 1, 0, 1]
    assert computed(target, target, bias, facts(2, 2))["equalized_odds"] == 0.0
    assert computed([0] * 4, target, bias, facts(2, 2))["equalized_odds"] == 0.0


def test_predicting_the_bias_is_as_unfair_as_can_be() -> None:
    found = computed([0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 0, 1], facts(2, 2))
    assert found["equalized_odds"] == 1.0
    assert (found["aligned_accuracy"], found["conflicting_accuracy"]) == (1.0, 0.0)


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
    by_class = [share(None, [one for one in samples if one[1] == y]) for y in range(of.classes)]
    return {
        "accuracy": share(None, samples),
        "worst_class_accuracy": min(value for value in by_class if value is not None),
        "aligned_accuracy": share(None, [one for one in samples if one[1] == one[2]]),
        "conflicting_accuracy": share(None, [one for one in samples if one[1] != one[2]]),
        "worst_group_accuracy": min(sum(p == y for p, y, _ in cell) / len(cell) for cell in cells.values() if cell),
        "equalized_odds": sum(gaps) / len(gaps) if gaps else None,
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
