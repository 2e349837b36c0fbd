"""table: the user's rows as numbers; the rule for missing values; what is wrong is told with file and column."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from study import data
from study.data import label_files
from study.errors import UserError

pytestmark = pytest.mark.usefixtures("workplace")


def people(count: int = 80) -> pd.DataFrame:
    number = np.arange(count)
    return pd.DataFrame(
        {
            "id": [f"p{n}" for n in number],
            "income": np.array(["low", "high"])[number % 2],
            "sex": np.array(["f", "m"])[number // 2 % 2],
            "age": 20.0 + number,
            "job": np.array(["nurse", "cook", "clerk"])[number % 3],
            "part": np.array(["train", "train", "train", "test"])[number // 4 % 4],
        }
    )


def load(frame: pd.DataFrame | None = None, **options):
    if frame is not None:
        frame.to_csv("people.csv", index=False)
    keys = {"path": "people.csv", "target": "income", "bias": "sex", "features": ["age", "job"]}
    return data.load({"name": "table", **keys, **options})


def test_numbers_are_standardised_on_train_and_texts_one_hot():
    frame = people()
    dataset = load(frame, split="part")
    rows = frame[frame["part"] == "test"]
    train, test = dataset.splits["train"], dataset.splits["test"]
    assert dataset.facts.shape == (4,)
    assert abs(train.inputs[:, 0].mean()) < 1e-6
    assert abs(train.inputs[:, 0].std() - 1) < 1e-6
    ages = test.inputs[:, 0].astype(float)
    assert np.allclose(np.diff(ages) / (ages[1] - ages[0]), np.diff(rows["age"]))
    jobs = ("clerk", "cook", "nurse")
    assert test.inputs[:, 1:].argmax(1).tolist() == [jobs.index(job) for job in rows["job"]]
    assert (test.inputs[:, 1:].sum(1) == 1).all()
    assert test.target.tolist() == [("high", "low").index(income) for income in rows["income"]]
    assert test.bias.tolist() == [("f", "m").index(sex) for sex in rows["sex"]]


def test_all_columns_that_no_key_names_are_features():
    rows = people().assign(age=20.5 + np.arange(80))
    facts = load(rows, features=[], key="id", split="part").facts
    assert facts.shape == (1 + 3,)
    assert load(bias=None, features=[], key="id", split="part").facts.shape == (1 + 3 + 2,)


def test_a_word_far_down_a_column_of_numbers_makes_all_of_it_words(workplace):
    """A large file is read in parts: none of them may have a type of its own, as whole numbers beside gaps would."""
    lines = ["".join(("a" * 40, f",{n % 3 or ''},{'yn'[n % 2]}")) for n in range(300_000)] + [f"{'a' * 40},x,y"] * 2
    (workplace / "people.csv").write_text("\n".join(["note,code,income", *lines]))
    assert set(label_files.read_typed_table(workplace / "people.csv")["code"].dropna()) == {"1", "2", "x"}


def test_the_bias_is_no_input_unless_named():
    first, other = load(people()), load(people().assign(sex=["m", "f"] * 40), val_share=0.15)
    assert first.facts.shape == other.facts.shape == (4,)
    assert load(people(), features=["age", "sex"]).facts.shape == (3,)


def test_conditions_by_column_and_by_file(workplace):
    dataset = load(people(), condition=["age"], features=["job"])
    assert sorted(np.concatenate([split.condition[:, 0] for split in dataset.splits.values()])) == list(range(20, 100))
    np.savez(workplace / "v.npz", keys=[f"p{n}" for n in range(80)], values=np.arange(80)[:, None])
    dataset = load(condition_file="v.npz", key="id", condition=[], features=["age"])
    for split in dataset.splits.values():
        assert np.corrcoef(split.inputs[:, 0], split.condition[:, 0])[0, 1] > 0.9999
    with pytest.raises(UserError, match=r"data\.condition_file: needs data\.key"):
        load(condition_file="v.npz")


def gaps() -> pd.DataFrame:
    frame = people()
    frame.loc[5, "age"] = np.nan
    frame.loc[[7, 9], "job"] = None
    return frame


def test_missing_values_are_an_error_first():
    with pytest.raises(UserError, match=r"people\.csv: values are missing in 'age' \(1\), 'job' \(2\) of 80 rows"):
        load(gaps())


def test_rows_with_missing_values_are_left_out():
    dataset = load(gaps(), missing="drop")
    assert sum(len(split) for split in dataset.splits.values()) == 77
    assert dataset.facts.shape == (4,)


def test_missing_values_are_filled():
    dataset = load(gaps(), missing="fill", split="part")
    assert dataset.facts.shape == (5,)
    filled = [split for split in dataset.splits.values() if (split.inputs[:, 1] == 1).any()]
    assert sum(int(split.inputs[:, 1].sum()) for split in filled) == 2  # "(missing)" is the first text
    everything = np.concatenate([split.inputs[:, 0] for split in dataset.splits.values()])
    assert (np.abs(everything) < 1e-6).sum() == 1
    assert np.isfinite(everything).all()


def test_labels_are_never_filled():
    frame = people()
    frame.loc[3, "income"] = None
    with pytest.raises(UserError, match=r"missing in 'income' \(1\) of 80 rows\. Labels are not filled"):
        load(frame, missing="fill")


def endless() -> pd.DataFrame:
    return people().replace({"age": {25.0: np.inf}})


def test_infinite_numbers_are_told_as_such():
    with pytest.raises(
        UserError, match=r"people\.csv: values are infinite in 'age' \(1\) of 80 rows\. Set data\.missing"
    ):
        load(endless())
    frame = gaps()
    frame.loc[6, "age"] = -np.inf
    with pytest.raises(UserError, match=r"values are missing or infinite in 'age' \(2\), 'job' \(2\) of 80 rows"):
        load(frame)
    with pytest.raises(UserError, match=r"every row has a value that is infinite; data\.missing: drop leaves none"):
        load(people().assign(age=np.inf), missing="drop")


def test_infinite_numbers_are_left_out_and_filled_as_missing_ones():
    assert sum(len(split) for split in load(endless(), missing="drop").splits.values()) == 79
    filled = load(endless(), missing="fill")
    assert all(np.isfinite(split.inputs).all() for split in filled.splits.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "incom"}, r"people\.csv: no column 'incom'\. Did you mean 'income'\?"),
        ({"features": ["age", "jobs"]}, r"no column 'jobs'\. Did you mean 'job'\?"),
        ({"features": ["income"]}, r"data\.features: has the target 'income' in it"),
        ({"target": "income+sex", "features": ["age", "sex"]}, r"data\.features: has the target 'sex' in it"),
        ({"target": "id"}, r"column 'id' has 80 different values in 80 rows: no classes"),
        ({"split": "job", "features": ["age"]}, r"column 'job', row 1: 'nurse' is not a split"),
        ({"condition": ["job"], "features": ["age"]}, r"column 'job', row 1: 'nurse' is not a finite number"),
        ({"path": "nobody.csv"}, r"nobody\.csv: not found"),
    ],
)
def test_keys_that_do_not_fit_the_file(options, message):
    people().to_csv("people.csv", index=False)
    keys = {"name": "table", "path": "people.csv", "target": "income"}
    with pytest.raises(UserError, match=message):
        data.describe({**keys, **options})


def header(frame: pd.DataFrame, *names: str) -> None:
    """Write the table under another header."""
    text = frame.to_csv(index=False).partition("\n")[2]
    Path("people.csv").write_text(",".join(names) + "\n" + text)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("id", "income", "income", "age", "job", "part"), r"column 'income' is there 2 times, as column 2 and 3"),
        (("id", "income", "sex", "age", "age", "part"), r"column 'age' is there 2 times, as column 4 and 5"),
        (("id", "income", "Income", "age", "job", "part"), r"columns 'income' and 'Income' differ by spaces or case"),
        (("id", "income", " income", "age", "job", "part"), r"columns 'income' and ' income' differ by spaces or case"),
        (("id", "income", "sex", "", "job", "part"), r"column 4 has no name"),
        (("id", "income", "sex", "Unnamed: 0", "job", "part"), r"column 4 has no name"),
        (
            ("id", "income", "sex", "age", "job"),
            r"people\.csv: not readable as a table: its rows have more values than its header has names",
        ),
    ],
)
def test_a_header_that_could_let_a_label_in_as_an_input_is_refused(names, message):
    header(people(), *names)
    with pytest.raises(UserError, match=message):
        load(features=[], bias=None, key="id")


def test_columns_of_one_name_that_are_not_used_do_no_harm():
    header(people(), "id", "income", "sex", "age", "id", "")
    assert load(features=["age"]).facts.shape == (1,)


def test_a_byte_order_mark_is_no_part_of_a_name():
    first = load(people())
    Path("people.csv").write_bytes(b"\xef\xbb\xbf" + people().to_csv(index=False).encode())
    assert load().fingerprint == first.fingerprint


def test_a_copy_of_the_class_is_an_input_only_where_it_is_named():
    frame = people().assign(paid=lambda table: table["income"].map({"low": 17, "high": 3}))
    with pytest.raises(
        UserError, match=r"column 'paid' is an input, and has one value for each value of data.target.*data\.features"
    ):
        load(frame, features=[], key="id")
    assert load(features=["age", "paid"]).facts.shape == (2,)


@pytest.mark.parametrize("stray", ["-5", "0.5", "1e12"])
@pytest.mark.parametrize("column", ["income", "sex"])
def test_a_label_that_one_row_has_is_refused(column, stray):
    frame = people()
    frame[column] = frame[column].map({"low": 0, "high": 1, "f": 0, "m": 1}).astype(object)
    frame.loc[20, column] = stray
    told = rf"column '{column}': the value '[-0-9.e]+' is in 1 of 80 rows alone\. Is it a slip\?"
    with pytest.raises(UserError, match=told):
        load(frame)
    frame.loc[21:30, column] = stray
    assert load(frame).facts.classes == 2 + (column == "income")


def test_measured_numbers_as_a_bias_are_no_slip():
    frame = people()
    frame["sex"] = [f"{10 + row / 7:.3f}" for row in range(len(frame))]
    with pytest.raises(
        UserError, match=r"as are 79 others\. Measured numbers are divided into groups by data\.bias_bins"
    ):
        load(frame)


@pytest.mark.parametrize(("low", "high"), [(79, 1), (80, 0)])
def test_rows_that_are_only_judged_may_have_a_class_once_or_not_at_all(low, high):
    load(people())
    section = {"name": "table", "path": "people.csv", "target": "income", "bias": "sex", "features": ["age", "job"]}
    encoding = data.fit_table_encoding(section)
    assert encoding is not None
    frame = people().assign(income=["low"] * low + ["high"] * high)
    with pytest.raises(UserError, match="rows"):
        load(frame)
    judged, faults = data.load_encoded(section, encoding)
    assert faults == {}
    assert sum(len(split) for split in judged.splits.values()) == 80
    counted = np.bincount(np.concatenate([split.target for split in judged.splits.values()]))
    assert sorted(counted.tolist()) == sorted(count for count in (low, high) if count)
    named = {**section, "positive": "high", "aligned": ["f=low", "m=high"]}
    assert sum(len(split) for split in data.load_encoded(named, encoding)[0].splits.values()) == 80


@pytest.mark.parametrize("value", ["1e308", "-3.5e38"])
def test_a_number_that_is_too_large_is_named(value):
    frame = people().astype({"age": object})
    frame.loc[7, "age"] = value
    for options in ({"features": ["age"]}, {"features": ["job"], "condition": ["age"]}):
        with pytest.raises(UserError, match=r"column 'age', row 8: '?-?[0-9.e+]+'? is too large: .* 3\.4e\+38"):
            load(frame, **options)


def test_a_value_far_from_a_narrow_training_split_is_named():
    frame = people()
    frame["age"] = np.where(np.arange(80) % 2, 1e-10, 2e-10)
    frame.loc[frame["part"] == "test", "age"] = 1e30
    with pytest.raises(
        UserError,
        match=r"column 'age': '1e\+30' \(20 rows, first 13\) is more than 3\.4e\+38 deviations of the training rows",
    ):
        load(frame, split="part")


@pytest.mark.parametrize("value", [0.1, 1e-300, 1e38])
def test_any_constant_is_zero(value):
    dataset = load(people().assign(age=value))
    assert (np.concatenate([split.inputs[:, 0] for split in dataset.splits.values()]) == 0).all()


def test_files_cut_short(workplace):
    people().to_parquet(workplace / "people.parquet")
    (workplace / "people.parquet").write_bytes((workplace / "people.parquet").read_bytes()[:500])
    with pytest.raises(UserError, match=r"people\.parquet: not readable as a table"):
        load(path="people.parquet")
    (workplace / "people.csv").write_text("")
    with pytest.raises(UserError, match=r"people\.csv: not readable as a table"):
        load()
    (workplace / "people.csv").write_text("income,sex,age,job\nlow,f,20,cook\nhigh")
    with pytest.raises(UserError, match=r"values are missing in 'sex' \(1\), 'age' \(1\), 'job' \(1\) of 2 rows"):
        load()
