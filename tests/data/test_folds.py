"""Folds: each sample outside test validates once, nothing of a fold gets into what is trained for it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from study import data
from study.data import holdout
from study.data.folds import select_fold
from study.errors import UserError
from study.spec import load_study

ROWS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 9)), min_size=60, max_size=90
)
"""A number, a word, a class and a group of each row; numbers repeat, so that rows are equal."""


NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
"""A table takes a tenth of a second."""


def section(place: Path, rows: list[tuple[int, str, int, int]], **keys: object) -> dict[str, object]:
    """The `data` section of a table of these rows; `x` and `y` tell a row, and equal ones share them."""
    frame = pd.DataFrame(rows, columns=["x", "word", "class", "person"])
    frame["y"] = np.arange(len(frame)) // 2 * 0.37 + frame.x  # two in a row may be equal
    frame["bias"] = frame.x % 2
    frame.to_csv(place, index=False)
    own = {"name": "table", "path": str(place), "target": "class", "bias": "bias", "folds": 4}
    return own | {"features": ["x", "y", "word"]} | keys


def without_folds(section: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key != "folds"}


def keeps_equal(own: dict[str, object]) -> bool:
    """Whether equal rows of a table are one sample: in one of few values they are equal by chance."""
    return any("they stay in one split" in note for note in data.user_file_notes(own))


@settings(
    max_examples=15, phases=NO_SHRINKING, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(rows=ROWS, grouped=st.booleans(), seed=st.integers(0, 9))
def test_no_sample_and_none_that_equals_it_is_on_two_sides(
    tmp_path: Path, rows: list, grouped: bool, seed: int
) -> None:
    if min(sum(row[2] == y for row in rows) for y in (0, 1)) < 2:
        return
    keys = {"group": "person"} if grouped else {}
    own = section(tmp_path / "rows.csv", rows, split_seed=seed, **keys)
    try:
        dataset = data.load(own)
    except UserError:  # too few groups for a split
        return
    folds, frame = dataset.folds, pd.read_csv(tmp_path / "rows.csv")
    test = {tuple(row) for row in folds.raw_table.splits["test"].inputs}
    frame["code"] = np.unique(frame.word, return_inverse=True)[1]
    people = {key: {*some.person} for key, some in frame.round(4).groupby(["x", "y", "code"])}
    assert len(folds.non_test_samples) + len(dataset.splits["test"]) == len(rows)
    for fold in range(4):
        held, rest = (
            {tuple(row) for row in folds.non_test_samples.inputs[folds.fold_of_sample == fold]}
            if one
            else {tuple(row) for row in folds.non_test_samples.inputs[folds.fold_of_sample != fold]}
            for one in (True, False)
        )
        assert held
        if keeps_equal(own):
            assert not held & rest
            assert not held & test
        if grouped:
            ours, theirs = (
                set().union(*(people[x, round(y, 4), word] for x, y, word in some)) for some in (held, rest)
            )
            assert not ours & theirs


@given(
    cells=st.lists(st.integers(0, 5), min_size=10, max_size=200).map(np.array),
    count=st.integers(2, 7),
    seed=st.integers(0, 9),
    data_=st.data(),
)
def test_folds_are_as_large_and_as_biased_as_each_other(
    cells: np.ndarray, count: int, seed: int, data_: st.DataObject
) -> None:
    numbers = holdout.assign_folds(cells, count, seed)
    for which in [np.ones(len(cells), bool), *(cells == cell for cell in np.unique(cells))]:
        sizes = np.bincount(numbers[which], minlength=count)
        assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(numbers, holdout.assign_folds(cells, count, seed))
    same = np.array(data_.draw(st.lists(st.integers(0, 20), min_size=len(cells), max_size=len(cells))))
    grouped = holdout.assign_folds(cells, count, seed, same)
    assert all(len(set(grouped[same == one])) == 1 for one in np.unique(same))
    if len(np.unique(same)) >= count:
        assert len(set(grouped)) == count, "no fold is empty"


def test_a_changed_validation_row_leaves_what_its_fold_trains_on(tmp_path: Path) -> None:
    """Mean, deviation, fills and words are of the fold's training rows alone."""
    generator = np.random.default_rng(0)
    rows = [(int(x), "ab"[x % 2], int(x) % 3 % 2, int(g)) for x, g in generator.integers(0, 50, (80, 2))]
    own = section(tmp_path / "rows.csv", rows, missing="fill")
    frame = pd.read_csv(tmp_path / "rows.csv").assign(z=generator.normal(size=80))
    own["features"] = ["x", "y", "z", "word"]
    frame.to_csv(own["path"], index=False)
    before = data.load(own)
    row = int(np.argmin(np.abs(frame.z - before.folds.non_test_samples.inputs[3, 2])))
    fold = int(before.folds.fold_of_sample[3])
    for column, value in (("z", 1e6), ("z", np.nan), ("word", "never seen")):
        changed = frame.copy()
        changed.loc[row, column] = value
        changed.to_csv(own["path"], index=False)
        after = data.load(own)
        assert np.array_equal(after.folds.fold_of_sample, before.folds.fold_of_sample)
        ours, theirs = (select_fold(one, fold).splits["train"].sample_inputs for one in (before, after))
        assert ours.tobytes() == theirs.tobytes()
        others = (select_fold(one, (fold + 1) % 4).splits["train"].sample_inputs for one in (before, after))
        assert len({one.tobytes() for one in others}) == 2, "where it trains, it counts"


def test_folds_of_images_share_their_pixels_and_leave_test_alone() -> None:
    own = {"name": "biased_digits", "val": "biased"}
    plain, dataset = data.load(own), data.load({**own, "folds": 5})
    assert dataset.splits["test"].inputs.tobytes() == plain.splits["test"].inputs.tobytes()
    held = []
    for fold in range(5):
        splits = select_fold(dataset, fold).splits
        assert splits["train"].inputs is splits["val"].inputs is dataset.folds.non_test_samples.inputs
        assert not set(splits["train"].rows) & set(splits["val"].rows)
        assert (splits["val"].target == dataset.folds.non_test_samples.target[splits["val"].rows]).all()
        held += splits["val"].rows.tolist()
    assert sorted(held) == list(range(len(dataset.folds.non_test_samples)))
    whole = select_fold(dataset, None)
    assert {name: len(split) for name, split in whole.splits.items()} == {"train": len(held), "test": 359}
    assert len({select_fold(dataset, fold).fingerprint for fold in (*range(5), None)}) == 6, (
        "states of one fit no other"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["data.folds=5", "data.val=unbiased"], "data.val: biased"),
        (["data.folds=1"], "data.folds"),
        (["search.folds=one"], "data.folds"),
        (["search.confirm.folds=all"], "data.folds"),
        (["search.confirm.seeds=1"], "or equal to 2"),
        (["data.folds=5", "search.space={data.folds: {choices: [2, 3]}}"], "cannot be searched"),
    ],
)
def test_folds_that_cannot_be_are_refused(changes: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        load_study("quickstart_biased", changes)


def test_folds_beside_a_given_validation_split_are_refused(tmp_path: Path) -> None:
    rows = [(x, "ab"[x % 2], x % 2, x) for x in range(40)]
    own = section(tmp_path / "rows.csv", rows)
    frame = pd.read_csv(tmp_path / "rows.csv").assign(part=["train", "val", "test", "train"] * 10)
    frame.to_csv(own["path"], index=False)
    with pytest.raises(UserError, match=r"data\.folds: 4 given"):
        data.describe({**own, "split": "part"})
    divided = data.load({**own, "split": "part", "val": "biased"})
    assert len(divided.folds.non_test_samples) == 20, "what is in train alone"
    with pytest.raises(UserError, match="at most"):
        data.load({**own, "split": "part", "val": "biased", "folds": 100})


def test_a_study_knows_no_folds_where_none_are_given() -> None:
    spec = load_study("quickstart")
    assert (spec.folds, spec.search.folds, spec.search.confirm.folds) == (None, None, None)
    assert spec.hash == replace(spec, base={**spec.base, "data": without_folds(spec.base["data"])}).hash, "as of before"
    folded = load_study("quickstart_biased", ["data.folds=5"])
    assert (folded.search.folds, folded.search.confirm.folds) == ("one", "all")
    assert load_study("quickstart_biased", ["data.folds=5", "search.confirm={top: 2}"]).search.confirm.seeds == 1
