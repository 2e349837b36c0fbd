"""Other names and numbers of classes and bias classes change no metric but the names of groups."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from study.data import Facts
from study.data.user_data import find_aligned_classes
from study.metrics import CELLS_BY_GROUP_METRIC
from study.training import metrics

OF_ONE_CLASS = {"auc", "equal_opportunity", *CELLS_BY_GROUP_METRIC}
"""Metrics of a class or group that is told by its number."""

Labels = tuple[list[int], list[int], list[int], list[int], list[int]]
"""Predictions, classes and bias classes; new numbers of classes and of bias classes."""


@st.composite
def renamed(draw: st.DrawFn) -> Labels:
    classes, groups, count = draw(st.integers(2, 4)), draw(st.integers(1, 4)), draw(st.integers(1, 60))
    target = draw(st.lists(st.integers(0, classes - 1), min_size=count, max_size=count))
    tied = draw(st.booleans())  # most of them go with a class
    bias = [y % groups if tied and draw(st.integers(0, 9)) else draw(st.integers(-1, groups - 1)) for y in target]
    prediction = draw(st.lists(st.integers(0, classes - 1), min_size=count, max_size=count))
    return prediction, target, bias, draw(st.permutations(range(classes))), draw(st.permutations(range(groups)))


def found(prediction: Sequence[int], target: Sequence[int], bias: Sequence[int], of: Facts) -> dict[str, float]:
    own = find_aligned_classes(np.array(target), np.array(bias), (of.classes, of.bias_classes or 0))
    tensors = [torch.tensor(values) for values in (prediction, target, bias)]
    values = metrics.compute_metrics(None, *tensors, replace(of, aligned=own), errors=True)
    return {name: float(value) for name, value in values.items() if name.split("_standard")[0] not in OF_ONE_CLASS}


@given(renamed())
def test_no_metric_depends_on_names(drawn: Labels) -> None:
    prediction, target, bias, classes, groups = drawn
    of = Facts(len(classes), len(groups), (1,))
    new = [[classes[y] for y in values] for values in (prediction, target)]
    before, after = found(*drawn[:3], of), found(*new, [groups[s] if s >= 0 else -1 for s in bias], of)
    assert before.keys() == after.keys()
    for name in before:
        assert before[name] == pytest.approx(after[name], nan_ok=True), name


def own(cells: list[list[int]]) -> object:
    table = np.array(cells)
    target, bias = (np.repeat(index.ravel(), table.ravel()) for index in np.indices(table.shape))
    return find_aligned_classes(target, bias, table.shape)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ([[3498, 184], [56, 1057]], (0, 1)),  # Waterbirds: land and water birds on land and water
        ([[184, 3498], [1057, 56]], (1, 0)),
        ([[9592, 15128], [1179, 6662]], None),  # Adult: women and men of small and of large income
        ([[1514, 1281], [1661, 822]], None),  # COMPAS: African-Americans and Caucasians
        ([[71629, 66874], [22880, 1387]], None),  # CelebA: women and men, dark and blond
        ([[90, 5, 5], [5, 90, 5], [5, 5, 90]], (0, 1, 2)),
        ([[40, 40, 5, 5, 0], [5, 5, 40, 40, 0]], (0, 0, 1, 1, -1)),  # two backgrounds each, one never seen
        ([[85, 8, 7], [85, 7, 8], [8, 84, 8], [7, 8, 85]], ((0, 1), 2, 3)),  # oak and yew both stand in the north
        ([[84, 7, 7, 2], [85, 7, 7, 1], [7, 85, 7, 1], [7, 7, 85, 1]], ((0, 1), 2, 3, 0)),  # and oak in the far east
        ([[90, 10], [10, 90], [50, 50]], None),
        ([[98, 2], [98, 2], [98, 2]], None),
        ([[50, 50], [50, 50]], None),
        ([[90, 10], [80, 20]], None),
        ([[5], [5]], None),
        ([[9, 1], [0, 0]], None),
    ],
)
def test_a_bias_class_is_a_classs_own_where_that_is_clear(cells: list[list[int]], expected: object) -> None:
    assert own(cells) == expected
