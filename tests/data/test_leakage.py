"""Which inputs tell the class alone: copies with slips, thresholds, gaps and marks of gaps; no strong column else."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import datasets

from study.data.leakage import PredictiveColumn, find_predictive_columns

Values = NDArray[np.float64]
Codes = NDArray[np.int64]

ROWS = 600
DRAW = np.random.default_rng(3)
SCORE = DRAW.normal(size=ROWS)
RARE = (np.random.default_rng(5).random(6000) < 0.05).astype(np.int64)
YES = (SCORE + DRAW.normal(size=ROWS) > 0).astype(np.int64)


def look(values: Values, codes: Codes = YES, *words: str, **others: Values) -> list[PredictiveColumn]:
    noise = np.random.default_rng(1).normal(size=len(codes))
    weak = noise + codes
    return find_predictive_columns({"x": values, "weak": weak, "noise": noise, **others}, words, codes)


def flipped(codes: Codes, share: float, seed: int = 0) -> Codes:
    draw = np.random.default_rng(seed)
    other = (codes + draw.integers(1, codes.max() + 1, len(codes))) % (codes.max() + 1)
    return np.where(draw.permutation(len(codes)) < share * len(codes), other, codes)


LEAKS: dict[str, Callable[[], tuple[Values, Codes]]] = {
    "a copy with slips": lambda: (flipped(YES, 0.03).astype(float), YES),
    "a copy of a rare class": lambda: (flipped(RARE, 0.02).astype(float), RARE),
    "a threshold": lambda: (SCORE, (SCORE > 0.7).astype(np.int64)),
    "a band": lambda: (SCORE, ((SCORE > -0.5) & (SCORE < 0.6)).astype(np.int64)),
    "three classes by thresholds": lambda: (SCORE, np.digitize(SCORE, (-0.5, 0.5))),
    "gaps": lambda: (np.where(YES == 1, DRAW.normal(size=ROWS), np.nan), YES),
    "gaps with slips": lambda: (np.where(flipped(YES, 0.02) == 1, DRAW.normal(size=ROWS), np.nan), YES),
    "gaps among few numbers": lambda: (np.where(YES == 1, DRAW.integers(0, 49, ROWS), np.nan), YES),
    "-999 for gaps": lambda: (np.where(YES == 1, DRAW.normal(size=ROWS), -999.0), YES),
    "0 for gaps": lambda: (np.where(YES == 1, DRAW.uniform(5, 9, ROWS), 0.0), YES),
    "codes of many kinds": lambda: ((KINDS := DRAW.integers(0, 12, ROWS)).astype(float), KINDS % 2),
    "a date in a file sorted by class": lambda: (20200000.0 + np.arange(ROWS), np.sort(YES)),
}


@pytest.mark.parametrize("kind", LEAKS)
def test_a_column_that_tells_the_class_is_found_with_its_share(kind: str) -> None:
    values, codes = LEAKS[kind]()
    (found,) = look(values, codes)
    assert (found.name, found.stands_out) == ("x", True)
    assert found.accuracy >= 0.95
    assert found.by_missing_values == (kind.startswith("gaps"))


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_column_that_goes_with_the_class_in_many_rows_may_be_a_bias(classes: int, seed: int) -> None:
    codes = np.random.default_rng(seed).integers(0, classes, ROWS)
    (found,) = look(flipped(codes, 0.1, seed).astype(float), codes, "x")
    assert (found.name, found.is_leak) == ("x", False)
    assert found.accuracy == pytest.approx(0.9, abs=0.02)
    assert "goes with the class in 90% of the rows" in str(found)
    assert look(flipped(codes, 0.6, seed).astype(float), codes, "x") == []


def test_of_two_that_go_with_the_class_alike_neither_is_far_above_the_other() -> None:
    one, other = (flipped(YES, 0.12, seed).astype(float) for seed in (0, 1))
    assert look(one, YES, "x", "more", more=other) == []


def test_a_copy_beside_a_column_that_is_nearly_as_good_does_not_stand_out() -> None:
    (found,) = look(flipped(YES, 0.04).astype(float), YES, "x", "more", more=flipped(YES, 0.07, 1).astype(float))
    assert (found.name, found.is_leak, found.stands_out) == ("x", True, False)


def test_gaps_that_go_with_the_class_in_many_rows_are_no_bias() -> None:
    assert look(np.where(flipped(YES, 0.12) == 1, DRAW.normal(size=ROWS), np.nan), YES) == []


def test_two_copies_do_not_hide_each_other() -> None:
    found = look(flipped(YES, 0.03).astype(float), YES, more=flipped(YES, 0.03, 1).astype(float))
    assert {one.name: one.stands_out for one in found} == {"x": True, "more": True}


@pytest.mark.parametrize("name", ["breast_cancer", "wine", "iris", "digits"])
def test_a_strong_measurement_is_no_copy(name: str) -> None:
    inputs, codes = getattr(datasets, f"load_{name}")(return_X_y=True)
    found = find_predictive_columns({str(place): column for place, column in enumerate(inputs.T)}, (), codes)
    assert not [one for one in found if one.stands_out]


def test_several_measurements_that_are_good_alone_are_told_and_not_called_copies() -> None:
    width, length = (YES + DRAW.normal(0, 0.22, ROWS) for _ in range(2))
    found = look(width, YES, length=length)
    assert {one.name for one in found} <= {"x", "length"}
    assert not any(one.stands_out for one in found)


@pytest.mark.parametrize("numbers", [[7], [0, 6], [1, 3, 5, 9], range(20)])
def test_a_copy_is_found_however_few_groups_the_training_rows_are_of(numbers: list[int]) -> None:
    """All groups of the table are numbered, and by chance those of training were all in one half, or are but one."""
    group = np.array(numbers)[np.arange(ROWS) % len(numbers)]
    found = find_predictive_columns({"x": flipped(YES, 0.03).astype(float), "noise": SCORE[::-1]}, [], YES, group)
    assert [one.name for one in found] == ["x"]


def test_people_that_are_there_several_times_make_no_column_tell() -> None:
    person = np.repeat(np.arange(40), 15)
    codes = np.random.default_rng(2).integers(0, 2, 40)[person]
    columns = {"place": person.astype(float), "noise": DRAW.normal(size=ROWS)}
    assert find_predictive_columns(columns, ("place",), codes, person) == []
    assert find_predictive_columns(columns, ("place",), codes)  # who is in both halves is known again


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 999),
    classes=st.integers(2, 5),
    share=st.floats(0.0, 0.035),
    gaps=st.floats(0.0, 0.3),
    scale=st.sampled_from([1e-9, 1.0, 1e300]),
)
def test_a_copy_is_found_whatever_its_values_and_noise_never_is(
    seed: int, classes: int, share: float, gaps: float, scale: float
) -> None:
    draw = np.random.default_rng(seed)
    codes = draw.integers(0, classes, 400)
    noise = np.where(draw.random(400) < gaps, np.nan, draw.normal(size=400) * scale)
    copy = draw.permutation(classes).astype(float)[flipped(codes, share, seed)] * scale
    found = find_predictive_columns({"noise": noise, "copy": copy, "same": np.full(400, scale)}, (), codes)
    assert [(one.name, one.stands_out) for one in found] == [("copy", True)]
    assert find_predictive_columns({"noise": noise, "copy": copy}, ("noise",), draw.permutation(codes)) == []
