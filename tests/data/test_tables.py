"""adult and compas: encoding, splits, and that nobody can be recognised."""

from pathlib import Path

import numpy as np
import pytest
from data_files import COMPAS_COLUMNS, compas_row, write_adult, write_compas

from study import data
from study.data.dataset import Dataset
from study.data.sets import people_tables
from study.errors import UserError

PAIR = ("African-American", "Caucasian")


def load(name: str, **options: object) -> Dataset:
    return data.load({"name": name, **options})


def together(dataset: Dataset, field: str) -> np.ndarray:
    return np.concatenate([getattr(split, field) for split in dataset.splits.values()])


def test_both_files_of_adult_are_put_together(root: Path) -> None:
    write_adult(root)
    dataset = load("adult")
    assert {name: len(split) for name, split in dataset.splits.items()} == {"train": 56, "val": 12, "test": 12}
    target, bias, inputs = (together(dataset, field) for field in ("target", "bias", "inputs"))
    assert np.bincount(target).tolist() == np.bincount(bias).tolist() == [40, 40]
    assert (target == 1 - bias).all()  # the made-up women earn more
    assert inputs.dtype == np.float32
    numbers, one_hot = inputs[:, :6], inputs[:, 6:]
    assert (one_hot.sum(1) == len(people_tables.ADULT_CATEGORY_VALUES)).all()
    assert np.isin(one_hot, (0, 1)).all()
    assert (numbers[:, 0].argsort(kind="stable")[:40] == np.flatnonzero(target)).all()  # 37 before 39


def test_numbers_are_standardised_over_the_training_rows(root: Path) -> None:
    write_adult(root)
    dataset = load("adult")
    train = dataset.splits["train"].inputs[:, :6]
    changing = [0, 1, 2, 3, 5]
    assert train[:, changing].mean(0) == pytest.approx(0, abs=1e-5)
    assert train[:, changing].std(0) == pytest.approx(1, abs=1e-5)
    assert (train[:, 4] == 0).all()  # a column that never changes
    assert abs(dataset.splits["val"].inputs[:, 5].mean()) > 1e-3


def test_propublicas_filter_keeps_what_its_analysis_kept(root: Path) -> None:
    kept = [compas_row(PAIR[index % 2], index, days=str(30 - index)) for index in range(20)]
    dropped = [
        compas_row(PAIR[0], 1, days="31"),
        compas_row(PAIR[0], 1, days="-31"),
        compas_row(PAIR[0], 1, days=""),
        compas_row(PAIR[0], 1, recid=-1),
        compas_row(PAIR[0], 1, score="N/A"),
    ]
    write_compas(root, [*kept, *dropped])
    assert len(together(load("compas"), "target")) == 20


def test_two_races_are_kept(root: Path) -> None:
    races = ("African-American", "Asian", "Caucasian", "Hispanic", "Native American", "Other")
    write_compas(root, [compas_row(races[index % 6], index) for index in range(60)])
    dataset = load("compas")
    assert np.bincount(together(dataset, "bias")).tolist() == [10, 10]
    assert (dataset.facts.bias_classes, dataset.facts.shape) == (2, (11,))


def test_the_first_of_two_columns_of_one_name_is_read(root: Path) -> None:
    write_compas(root, [compas_row(PAIR[index % 2], index) for index in range(40)])
    priors = together(load("compas"), "inputs")[:, 4]
    assert len(set(priors.tolist())) == 7  # the second column of that name says 99 for all


def test_nobody_can_be_recognised_in_what_is_prepared_or_said(root: Path) -> None:
    write_compas(root, [compas_row(PAIR[index % 2], index) for index in range(40)])
    load("compas")
    written = b"".join(path.read_bytes() for path in (root / "prepared").rglob("*") if path.is_file())
    assert b"Secret" not in written
    path = root / "compas/compas-scores-two-years.csv"
    path.write_text(path.read_text().replace(",Male,", ",Man,", 1))
    with pytest.raises(UserError) as error:
        load("compas")
    assert "column 'sex', row 1: the value is 'Man'" in str(error.value)
    assert "Secret" not in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Bachelors", "Bachelor", "column 'education', row 1: the value is 'Bachelor', allowed: Bachelors"),
        (" 77516", " many", "column 'fnlwgt', row 1: 'many' is not a finite number"),
        (" 77516", " 1e308", "column 'fnlwgt', row 1: 1e[+]308 is too large"),
        ("<=50K", "50K", "column 'income', row 1: the value is '50K', allowed: <=50K, >50K"),
        (" White, Male, 2174, 0, 30, United-States, <=50K", " Whi", "row 1 has no sex; cut short"),
    ],
)
def test_a_wrong_value_is_named(root: Path, old: str, new: str, message: str) -> None:
    write_adult(root)
    path = root / "adult/adult.data"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(UserError, match=f"{path}: {message}"):
        load("adult")


def test_a_table_cut_short_within_a_row_is_named(root: Path) -> None:
    write_compas(root, [compas_row(PAIR[index % 2], index) for index in range(40)])
    path = root / "compas/compas-scores-two-years.csv"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(UserError, match=f"{path}: row 40 has no two_year_recid; cut short"):
        load("compas")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not readable as a table"),
        (COMPAS_COLUMNS, "has no rows"),
        ("a,b\n1,2\n", "not readable as a table: Usecols do not match columns"),
    ],
)
def test_a_file_that_is_no_such_table_is_named(root: Path, content: str, message: str) -> None:
    write_compas(root, [])
    path = root / "compas/compas-scores-two-years.csv"
    path.write_text(content)
    with pytest.raises(UserError, match=f"{path}: {message}"):
        load("compas")


def test_too_few_rows_are_refused(root: Path) -> None:
    write_compas(root, [compas_row(PAIR[0], 1)])
    with pytest.raises(UserError, match="1 rows are too few"):
        load("compas")


def test_the_real_adult(real: Path) -> None:
    dataset = load("adult")
    target, bias = together(dataset, "target"), together(dataset, "bias")
    assert np.bincount(2 * target + bias).tolist() == [
        10771 - 1179 + 5421 - 590,
        21790 - 6662 + 10860 - 3256,
        1179 + 590,
        6662 + 3256,
    ]
    assert dataset.facts.shape == (108,)


def test_the_real_compas(real: Path) -> None:
    assert np.bincount(together(load("compas"), "bias")).tolist() == [3175, 2103]
