"""Shrunk cells and standard errors against a slow reading of their definition, and what they must be in the end."""

from collections import Counter
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from study.data import Facts
from study.metrics import METRICS
from study.metrics.intervals import is_minimum_over_many_groups
from study.metrics.selection_rules import SELECTION_RULES
from study.training import metrics
from study.training.cell_statistics import CELL_PRIOR_SAMPLES, CLASS_PRIOR_SAMPLES, CellStatistics
from study.training.cell_statistics import kinds_of_cells as alike
from study.training.standard_errors import STANDARD_ERROR_FUNCTIONS

Table = list[list[tuple[int, int]]]
"""Right predictions and samples of each (class, group) cell."""


def cells(table: Table, of: Facts) -> CellStatistics:
    right, samples = (torch.tensor([[cell[part] for cell in row] for row in table]).double() for part in (0, 1))
    return CellStatistics(right, samples, alike(of, torch.device("cpu")))


def kinds(of: Facts) -> list[list[tuple[int, int]]]:
    """The places of cells that are alike."""
    places = [(y, s) for y in range(of.classes) for s in range(of.bias_classes or 0)]
    if table := of.aligned_cells:
        return [[(y, s) for y, s in places if table[y][s] == own] for own in (False, True)]
    return [[(y, s) for y, s in places if y == c] for c in range(of.classes)]


@dataclass(frozen=True)
class Expected:
    """What is expected of the cells of a table, in order of class and bias class."""

    shrunk: NDArray[np.float64]
    own_variance: NDArray[np.float64]
    cell_variance: NDArray[np.float64]
    mean_variance: float


def oracle(table: Table, of: Facts) -> Expected:
    """Solve the equations of the mixed model as a whole: a row for each kind, then for each class."""
    cells = [(y, s) for y in range(of.classes) for s in range(of.bias_classes or 0)]
    right, samples = (np.array([table[y][s][part] for y, s in cells], float) for part in (0, 1))
    member = np.array(
        [[(y, s) in places for places in kinds(of)] + [y == c for c in range(of.classes)] for y, s in cells], float
    )
    k, known, n_kinds = CELL_PRIOR_SAMPLES, samples > 0, len(kinds(of))
    weight, overall = samples / (samples + k), right.sum() / samples.sum()
    without = np.array([not known[member[:, kind] > 0].any() for kind in range(n_kinds)])
    penalty = np.array([1 / k if empty else 0.0 for empty in without] + [CLASS_PRIOR_SAMPLES / k] * of.classes)
    aim = (right / (samples + k)) @ member + np.r_[without * overall / k, np.zeros(of.classes)]
    covariance = np.linalg.inv(member.T @ (weight[:, None] * member) + np.diag(penalty))
    prior = np.clip(member @ covariance @ aim, 0, 1)
    of_kind = member[:, :n_kinds] @ (samples @ member[:, :n_kinds])
    cautious = (of_kind * prior + 0.5) / (of_kind + 1)
    value = (right + k * cautious) / (samples + k)
    own = value * (1 - value) / (samples + k + 1)
    scaled = (np.sqrt(cautious * (1 - cautious) / (k + 1)) * k / (samples + k))[:, None] * member
    shared = np.einsum("ia,ab,ib->i", scaled, covariance, scaled)
    whole = own.sum() + scaled.sum(0) @ covariance @ scaled.sum(0)
    return Expected((right + k * prior) / (samples + k), own, own + shared, whole / len(cells) ** 2)


@st.composite
def facts(draw: st.DrawFn) -> Facts:
    classes, groups = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    of_bias_class = st.integers(-1, classes - 1) | st.just((0, 1))
    own = draw(st.none() | st.lists(of_bias_class, min_size=groups, max_size=groups))
    return Facts(classes, groups, (1,), aligned=None if own is None else tuple(own))


@st.composite
def tables(draw: st.DrawFn) -> tuple[Table, Facts]:
    of = draw(facts())
    classes, groups = of.classes, of.bias_classes or 0
    sizes = draw(st.lists(st.integers(0, 30), min_size=classes * groups, max_size=classes * groups).filter(any))
    filled = [(draw(st.integers(0, size)), size) for size in sizes]
    return [filled[y * groups : (y + 1) * groups] for y in range(classes)], of


@given(tables())
def test_shrunk_cells_are_what_the_model_gives(drawn: tuple[Table, Facts]) -> None:
    found, expected = cells(*drawn), oracle(*drawn)
    assert found.shrunk_values.flatten().tolist() == pytest.approx(expected.shrunk.tolist())
    assert found.variance_of_shrunk_values.flatten().tolist() == pytest.approx(expected.cell_variance.tolist())
    assert float(found.variance_of_shrunk_mean) == pytest.approx(expected.mean_variance)


@given(tables())
def test_without_what_sets_classes_apart_a_kind_has_one_prior(drawn: tuple[Table, Facts]) -> None:
    """The prior of a cell is then the mean of its kind, each cell weighing samples / (samples + k)."""
    table, of = drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("study.training.cell_statistics.CLASS_PRIOR_SAMPLES", 1e12)
        found = cells(table, of).shrunk_values
    for places in kinds(of):
        weight = sum(table[y][s][1] / (table[y][s][1] + CELL_PRIOR_SAMPLES) for y, s in places)
        if weight > 0:
            prior = sum(table[y][s][0] / (table[y][s][1] + CELL_PRIOR_SAMPLES) for y, s in places) / weight
            for y, s in places:
                right, samples = table[y][s]
                assert float(found[y, s]) == pytest.approx(
                    (right + CELL_PRIOR_SAMPLES * prior) / (samples + CELL_PRIOR_SAMPLES)
                )


def test_a_rare_class_that_is_never_recognised_is_not_hidden() -> None:
    """The last of five classes has 8 of 200 samples, and one or none in each cell but its own."""
    own = torch.eye(5).double()
    samples = torch.full((5, 5), 4.0).double() + own * 28
    samples[4] = torch.tensor([1, 0, 0, 1, 6])
    facts = Facts(5, 5, (1,), aligned=(0, 1, 2, 3, 4))
    kinds_of = alike(facts, torch.device("cpu"))
    dead, alive = torch.full((5, 5), 0.7).double(), torch.full((5, 5), 0.64).double()
    dead[4] = 0.0
    found = [float(CellStatistics(samples * share, samples, kinds_of).shrunk_values.mean()) for share in (dead, alive)]
    assert found[0] < found[1]
    losses = [-(share.clamp(min=0.05)).log() for share in (dead, alive)]
    worth = [
        float(CellStatistics(samples * loss, samples, kinds_of, samples * loss.square()).shrunk_values.mean())
        for loss in losses
    ]
    assert worth[0] > worth[1]


@given(tables())
def test_the_more_samples_the_less_is_shrunk(drawn: tuple[Table, Facts]) -> None:
    """A hundred thousand times as many samples of the same accuracies: nothing is left of the prior."""
    full = [[(100_000 * (right + 1), 100_000 * (samples + 2)) for right, samples in row] for row in drawn[0]]
    found = cells(full, drawn[1])
    assert torch.allclose(found.shrunk_values, found.sums / found.samples, atol=1e-4)
    plain = (found.sums / found.samples * (1 - found.sums / found.samples) / found.samples).sum().sqrt()
    assert float(found.variance_of_shrunk_mean.sqrt()) == pytest.approx(float(plain) / found.samples.numel(), rel=1e-3)


def test_none_right_of_two_is_not_certainly_none() -> None:
    errors = computed([0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1], Facts(2, 2, (1,), aligned=(0, 1)))
    assert errors["worst_group_accuracy_standard_error"] == pytest.approx(sqrt(1 / 6 * 5 / 6 / 2))
    assert all(0 < value < 0.5 for name, value in errors.items() if name.endswith("_standard_error") and value == value)


def computed(prediction: list[int], target: list[int], bias: list[int], of: Facts) -> dict[str, float]:
    tensors = [torch.tensor(values) for values in (prediction, target, bias)]
    values = metrics.compute_metrics(None, *tensors, of, inferred=tensors[2] % of.classes, errors=True)
    return {name: float(value) for name, value in values.items()}


@pytest.mark.parametrize(("classes", "has_error"), [(2, (True, True)), (4, (True, False)), (5, (False, False))])
def test_the_smallest_of_many_has_no_error_as_it_is_too_low(classes: int, has_error: tuple[bool, bool]) -> None:
    target, bias = zip(*[(y, s) for y in range(classes) for s in range(classes) for _ in range(2)], strict=True)
    own = tuple(range(classes))
    errors = computed([0] * len(target), list(target), list(bias), Facts(classes, classes, (1,), aligned=own))
    of_class, of_cell = has_error
    assert ("worst_class_accuracy_standard_error" in errors) is of_class
    for name in ("worst_group", "shrunk_worst_group", "inferred_worst_group"):
        assert f"{name}_accuracy" in errors
        assert (f"{name}_accuracy_standard_error" in errors) is of_cell


@pytest.mark.parametrize(
    ("sizes", "is_known"),
    [
        ({0: 50, 1: 30, 2: 10, 9: 10}, False),
        ({0: 3, 1: 10, 2: 18, 9: 69}, True),
        ({0: 90, 9: 10}, True),  # there cannot be others
        ({1: 50, 2: 50}, True),
    ],
)
def test_a_mean_over_cells_of_which_chance_leaves_many_empty_has_no_error(
    sizes: dict[int, int], is_known: bool
) -> None:
    samples = [size for size, cells in sizes.items() for _ in range(cells)]
    target, bias = zip(*[divmod(cell, 10) for cell, count in enumerate(samples) for _ in range(count)], strict=True)
    of, scores = Facts(10, 10, (1,), aligned=tuple(range(10))), torch.zeros(len(target), 10)
    found = metrics.compute_metrics(scores, scores.argmax(1), torch.tensor(target), torch.tensor(bias), of, errors=True)
    for name in ("unbiased_accuracy", "unbiased_log_loss"):
        assert bool(found[f"{name}_standard_error"].isfinite()) is is_known
        assert found[f"shrunk_{name}_standard_error"].isfinite()


def test_each_rule_has_its_standard_error() -> None:
    losses = {name for name in METRICS if name.endswith("log_loss")}
    assert set(STANDARD_ERROR_FUNCTIONS) == {rule.metric for rule in SELECTION_RULES} | {"aligned_accuracy"} | losses


def share_error(hits: list[bool]) -> float:
    share = (sum(hits) + 0.5) / (len(hits) + 1)
    return sqrt(share * (1 - share) / len(hits))


def smallest_error(shares: list[list[bool]]) -> float:
    """Of several that are the smallest, the largest error."""
    least = min(sum(hits) / len(hits) for hits in shares)
    return max(share_error(hits) for hits in shares if sum(hits) / len(hits) == least)


def mean_error(shares: list[list[bool]]) -> float:
    return sqrt(sum(share_error(hits) ** 2 for hits in shares)) / len(shares)


@st.composite
def predictions(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], Facts]:
    of, count = draw(facts()), draw(st.integers(1, 25))
    tops = (of.classes, of.classes, of.bias_classes or 0)
    labels = [draw(st.lists(st.integers(0, top - 1), min_size=count, max_size=count)) for top in tops]
    return *labels, of  # type: ignore[return-value]


@pytest.mark.slow
@given(predictions())
def test_standard_errors_are_what_counting_gives(drawn: tuple[list[int], list[int], list[int], Facts]) -> None:
    found = computed(*drawn)
    of = drawn[3]
    samples = list(zip(*drawn[:3], strict=True))
    by_class = [[p == y for p, y, _ in samples if y == c] for c in range(of.classes)]
    by_cell = [
        [p == y for p, y, b in samples if (y, b) == (c, s)]
        for c in range(of.classes)
        for s in range(of.bias_classes or 0)
    ]
    by_class, by_cell = [hits for hits in by_class if hits], [hits for hits in by_cell if hits]
    expected = {
        "accuracy": share_error([p == y for p, y, _ in samples]),
        "balanced_accuracy": mean_error(by_class),
        "worst_class_accuracy": smallest_error(by_class),
        "unbiased_accuracy": mean_error(by_cell),
        "worst_group_accuracy": smallest_error(by_cell),
    }
    cells, sizes = of.classes * (of.bias_classes or 0), [*Counter((y, b) for _, y, b in samples).values()]
    unseen = min(cells - len(sizes), sizes.count(1) ** 2 / (2 * (sizes.count(2) or 0.5)))
    if unseen > cells / 10:
        expected["unbiased_accuracy"] = nan
    for name, value in expected.items():
        if not is_minimum_over_many_groups(name, of):
            assert found[f"{name}_standard_error"] == pytest.approx(value, nan_ok=True), name


@pytest.mark.slow
@given(predictions())
def test_groups_that_were_inferred_are_judged_as_bias_labels_are(
    drawn: tuple[list[int], list[int], list[int], Facts],
) -> None:
    prediction, target, bias, of = drawn
    found = computed(*drawn)
    labels, own = [b % of.classes for b in bias], tuple(range(of.classes))
    same = computed(prediction, target, labels, Facts(of.classes, of.classes, (1,), aligned=own))
    for name, labelled in (("unbiased", "shrunk_unbiased"), ("worst_group", "shrunk_worst_group")):
        for end in ("", "_standard_error"):
            assert found.get(f"inferred_{name}_accuracy{end}") == pytest.approx(same.get(f"{labelled}_accuracy{end}"))
    conflicting = same["conflicting_accuracy"]
    none_there = conflicting != conflicting
    assert found["inferred_conflicting_accuracy"] == (same["accuracy"] if none_there else conflicting)


@pytest.mark.parametrize("apart", [0.0, 0.15], ids=["classes alike", "classes apart"])
def test_the_stated_error_of_the_shrunk_mean_is_that_of_drawn_splits(apart: float) -> None:
    """Splits drawn from cells whose accuracies follow the model: values spread around the truth as much as is said."""
    generator = torch.Generator().manual_seed(0)
    samples = torch.tensor([[40, 2, 1, 0], [1, 40, 0, 2], [0, 1, 12, 3], [2, 0, 1, 40]]).double()
    aligned, stated, missed = torch.eye(4).double(), [], []
    for _ in range(400):
        truth = torch.where(aligned > 0, _beta(9.0, 1.0, generator), _beta(4.0, 6.0, generator))
        truth = (truth + apart * torch.randn(4, 1, generator=generator).double()).clamp(0, 1)
        found = CellStatistics(
            torch.binomial(samples, truth, generator=generator), samples, torch.stack([1 - aligned, aligned])
        )
        stated.append(float(found.variance_of_shrunk_mean))
        missed.append(float(found.shrunk_values.mean() - truth.mean()) ** 2)
    assert sum(missed) / sum(stated) == pytest.approx(1.0, abs=0.25)


def _beta(right: float, wrong: float, generator: torch.Generator) -> torch.Tensor:
    """Shares (4, 4) of a beta distribution, from gammas of whole numbers: sums of exponentials."""
    first, second = (
        torch.zeros(int(shape), 4, 4).double().exponential_(generator=generator).sum(0) for shape in (right, wrong)
    )
    return first / (first + second)
