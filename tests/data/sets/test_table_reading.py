"""A user's table is read as it is meant, or refused with its line."""

import csv
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from study import data
from study.data import odd_columns
from study.data.dataset import Dataset
from study.data.table_columns import encode_rows
from study.errors import UserError

pytestmark = pytest.mark.usefixtures("root")


def frame(count: int = 120, target: tuple[str, str] = ("no", "yes")) -> pd.DataFrame:
    draw = np.random.default_rng(2)
    y = draw.integers(0, 2, count)
    columns = {
        "age": draw.integers(20, 65, count),
        "income": np.round(draw.normal(25, 6, count) + 12 * y, 1),
        "city": np.array(["Bonn", "Kiel", "Ulm"])[np.arange(count) % 3],
        "sex": np.array(["f", "m"])[draw.integers(0, 2, count)],
        "repaid": np.array(target)[y],
    }
    return pd.DataFrame(columns)


def load(path: Path, **options: object) -> Dataset:
    return data.load({"name": "table", "path": str(path), "target": "repaid", "bias": "sex", **options})


def write(tmp_path: Path, rows: pd.DataFrame, **csv: object) -> Path:
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False, **csv)  # type: ignore[call-overload]
    return path


def same(one: Dataset, other: Dataset) -> None:
    assert one.facts == other.facts
    for name, split in one.splits.items():
        np.testing.assert_array_equal(split.inputs, other.splits[name].inputs)
        np.testing.assert_array_equal(split.target, other.splits[name].target)
        np.testing.assert_array_equal(split.bias, other.splits[name].bias)


def test_a_stray_among_numbers_is_refused_with_its_line(tmp_path: Path) -> None:
    rows = frame().astype({"income": object})
    rows.loc[57, "income"] = "?"
    path = write(tmp_path, rows)
    with pytest.raises(UserError, match=r"'income' holds numbers but for '\?' \(line 59\).*missing_marks: \[\"\?\"\]"):
        load(path)
    read = load(path, missing_marks=["?"], missing="drop")
    same(read, load(write(tmp_path, frame().drop(index=57))))
    assert load(path, words=["income"]).facts.shape[0] > 50


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (lambda value: f"${value}", "written for people"),
        (lambda value: f"{value} %", "written for people"),
        (lambda value: f"{value * 100_000:,.0f}", "written for people"),
        (lambda value: f"2026-01-{int(value) % 28 + 1:02d}", "holds dates"),
        (lambda value: f"{int(value) % 28 + 1}. March 2026", "holds dates"),
        (lambda value: f"{int(value) % 28 + 1:02d}.03.2026", "holds dates"),
        (lambda value: f"{int(value) % 24}:30", "holds dates"),
        (lambda value: f"{value} kg", r"with a unit, as '[\d.]+ kg'.*words"),
        (lambda value: "n.a." if int(value) % 5 == 0 else value, r"but for 'n\.a\.' \(line \d+\).*missing_marks"),
        (lambda value: "<25" if value < 28 else value, r"but for '<25' \(line \d+\)"),
        (lambda value: "n.a." if int(value) % 5 == 0 else str(value).replace(".", ","), r"but for 'n\.a\.'"),
        (lambda value: f"person {value}", "names, not kinds"),
    ],
)
def test_what_is_no_number_and_no_kind_is_refused_with_what_to_do(tmp_path: Path, written: object, says: str) -> None:
    rows = frame()
    rows["income"] = rows["income"].map(written)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=says):
        load(write(tmp_path, rows))


def test_types_are_decided_by_the_rows_that_stay(tmp_path: Path) -> None:
    rows = pd.concat([frame(), pd.DataFrame([{"age": "Total"}])])
    same(load(write(tmp_path, rows), missing="drop"), load(write(tmp_path, frame())))


def test_labels_are_text_as_written(tmp_path: Path) -> None:
    assert load(write(tmp_path, frame(target=("0007", "0012")))).facts.class_names == ("0007", "0012")
    rows = frame(target=("0", "1"))
    rows.loc[11, "repaid"] = None
    assert load(write(tmp_path, rows), missing="drop").facts.class_names == ("0", "1")
    long = ("12345678901234567890", "12345678901234567891")
    assert load(write(tmp_path, frame(target=long))).facts.class_names == long
    assert load(write(tmp_path, frame(target=("10", "9")))).facts.class_names == ("9", "10")
    assert load(write(tmp_path, frame(target=("07", "007")))).facts.class_names == ("007", "07")


def test_whole_floats_and_decimals_of_parquet_are_whole_numbers(tmp_path: Path) -> None:
    rows = frame()
    rows["repaid"] = (rows["repaid"] == "yes").astype(float)
    rows.loc[3, "repaid"] = None
    rows["income"] = [Decimal(str(value)) for value in rows["income"]]
    rows.to_parquet(tmp_path / "rows.parquet")
    read = load(tmp_path / "rows.parquet", missing="drop")
    assert read.facts.class_names == ("0", "1")
    assert read.facts.shape == (5,)


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ("yes", "Yes"),
        ("yes", "YES"),
        ("yés", "ye\u0301s"),
        ("1", "1,0"),
        ("oh yes", "oh\u00a0yes"),
        ("oh yes", "oh  yes"),
        ("yes", "yes\u200b"),
        ("yes", "\ufeffyes"),
    ],
)
def test_two_spellings_of_one_label_are_refused(tmp_path: Path, first: str, other: str) -> None:
    rows = frame(target=("no", first))
    rows.loc[(rows.index % 5 == 0) & (rows["repaid"] == first), "repaid"] = other
    with pytest.raises(UserError, match="spells one label in two ways"):
        load(write(tmp_path, rows))


def test_blanks_around_texts_do_not_count(tmp_path: Path) -> None:
    rows = frame()
    rows.loc[rows.index % 4 == 0, "repaid"] += " "
    rows.loc[rows.index % 4 == 1, "city"] += "  "
    same(load(write(tmp_path, rows)), load(write(tmp_path, frame())))


DIALECTS: list[dict[str, object]] = [
    {},
    {"sep": ";"},
    {"sep": "\t"},
    {"decimal": ","},
    {"sep": ";", "decimal": ","},
    {"sep": ";", "decimal": ",", "encoding": "cp1252", "lineterminator": "\r\n"},
    {"sep": "\t", "decimal": ",", "encoding": "utf-16"},
    {"sep": "|", "quoting": csv.QUOTE_ALL},
    {"encoding": "latin-1"},
    {"encoding": "utf-16"},
    {"encoding": "utf-8-sig"},
    {"lineterminator": "\r\n"},
    {"quoting": csv.QUOTE_ALL},
    {"quoting": csv.QUOTE_NONNUMERIC, "lineterminator": "\r\n"},
    {"float_format": "%.3f"},
]


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(DIALECTS),
    st.sampled_from(["", "NA", "?", "n.a."]),
    st.lists(st.integers(0, 60), max_size=3),
    st.sets(st.integers(0, 119), max_size=4),
    st.sets(st.integers(0, 119), max_size=4),
)
@example({"sep": ";", "decimal": ","}, "?", [3], {5}, {7})
@example({"decimal": ","}, "", [], set(), set())
@example({}, "?", [0], set(), {7})
def test_a_dialect_is_read_as_the_same_data_or_refused_with_a_line(
    tmp_path_factory: pytest.TempPathFactory,
    dialect: dict[str, object],
    gap: str,
    blank: list[int],
    no_income: set[int],
    no_city: set[int],
) -> None:
    """Or a word that may be a gap is named."""
    place = tmp_path_factory.mktemp("dialect")
    rows = frame()
    rows["city"] = rows["city"].replace("Kiel", "Köln, Nord")
    rows.loc[[*no_income], "income"] = None
    rows.loc[[*no_city], "city"] = None
    plain = load(write(place, rows), missing="drop")
    path = write(place, rows, **{"na_rep": gap, **dialect})
    written = str(dialect.get("encoding", "utf-8"))
    end = str(dialect.get("lineterminator", "\n"))
    lines = path.read_bytes().decode(written).split(end)
    for line in sorted(blank, reverse=True):
        lines.insert(line, "")
    path.write_bytes(end.join(lines).encode(written))
    try:
        read = load(path, missing="drop")
    except UserError as error:
        assert re.search(r"line \d+", str(error)), error  # noqa: PT017
        return
    found = data.column_findings(
        {"name": "table", "path": str(path), "target": "repaid", "bias": "sex", "missing": "drop"}
    )
    named = [(finding.column, finding.problem) for finding in found]
    if no_city and gap in ("?", "n.a."):
        assert ("city", f"has the words '{gap}' ({len(no_city)} rows)") in named
    else:
        same(read, plain)


def named_rows(read: Dataset) -> dict[str, list[tuple[object, ...]]]:
    """The rows of each split with the names of their labels, in an order of their own."""
    classes, biases = read.facts.class_names, read.facts.bias_names
    assert classes
    assert biases
    return {
        name: sorted(
            (*(round(float(number), 4) for number in row), classes[target], biases[bias])
            for row, target, bias in zip(split.inputs, split.target, split.bias, strict=True)
        )
        for name, split in read.splits.items()
    }


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.permutations(range(120)))
def test_the_order_of_rows_changes_nothing_else(tmp_path_factory: pytest.TempPathFactory, order: Sequence[int]) -> None:
    place = tmp_path_factory.mktemp("order")
    rows = frame().assign(split=[("train", "train", "val", "test")[k % 4] for k in range(120)])
    plain = load(write(place, rows), split="split")
    moved = load(write(place, rows.iloc[list(order)]), split="split")
    assert moved.facts == plain.facts
    assert named_rows(moved) == named_rows(plain)


def test_a_running_number_is_no_input_unless_it_is_named(tmp_path: Path) -> None:
    rows = frame().sort_values("repaid")
    plain = load(write(tmp_path, rows))
    for number in (np.arange(120), np.arange(1.0, 121.0), 5000 + 10 * np.random.default_rng(0).permutation(120)):
        counted = rows.assign(id=number)
        same(load(write(tmp_path, counted)), plain)
        section = {"name": "table", "path": str(tmp_path / "rows.csv"), "target": "repaid", "bias": "sex"}
        assert "id" in [one.column for one in data.column_findings(section) if one.kind == "left out"]
        assert load(tmp_path / "rows.csv", features=["age", "id"]).facts.shape == (2,)
    for other in (number**2, np.random.default_rng(0).permutation(120) / 2):
        assert load(write(tmp_path, rows.assign(size=other))).facts.shape[0] == plain.facts.shape[0] + 1


@pytest.mark.parametrize("words", [("train", "dev", "test"), ("Training", "validation", "testing"), (0, 1, 2)])
def test_a_column_of_splits_is_used_or_refused_but_no_input(tmp_path: Path, words: tuple[object, ...]) -> None:
    rows = frame()
    rows["Split"] = [words[0 if k % 10 < 6 else 1 if k % 10 < 8 else 2] for k in range(120)]
    path = write(tmp_path, rows)
    with pytest.raises(UserError, match=r"'Split' says which split .* data\.split: Split"):
        load(path)
    read = load(path, split="Split")
    assert [len(read.splits[name]) for name in ("train", "val", "test")] == [72, 24, 24]


@pytest.mark.parametrize("val", ["biased", "unbiased"])
def test_equal_rows_stay_in_one_split_and_that_is_said(tmp_path: Path, val: str) -> None:
    rows = pd.concat([frame(80)] * 3).sample(frac=1, random_state=0)
    path = write(tmp_path, rows)
    read = load(path, val=val)
    seen = {name: {row.tobytes() for row in split.inputs} for name, split in read.splits.items()}
    assert not seen["train"] & seen["val"]
    assert not seen["train"] & seen["test"]
    assert not seen["val"] & seen["test"]
    assert sum(map(len, seen.values())) == 80
    section = {"name": "table", "path": str(path), "target": "repaid", "bias": "sex"}
    assert data.user_file_notes(section) == ["160 of 240 rows have the inputs of another one: they stay in one split"]
    assert data.user_file_notes({**section, "path": str(write(tmp_path, frame(80)))}) == []


def test_rows_of_few_values_are_divided_one_by_one(tmp_path: Path) -> None:
    path = write(tmp_path, frame())
    few = {"name": "table", "path": str(path), "target": "repaid", "bias": "sex", "features": ["city"]}
    assert len(data.load(few).splits["train"].target) == len(load(path).splits["train"].target)
    (note,) = data.user_file_notes(few)
    assert "so few values make rows equal by chance, they are not kept together" in note


def test_a_decimal_comma_changes_no_words_and_a_cell_with_a_point_beside_it_is_refused(tmp_path: Path) -> None:
    rows = frame()
    rows["income"] = rows["income"].map(lambda value: str(value).replace(".", ","))
    rows["city"] += ", Nord"
    path = write(tmp_path, rows)
    section = {"name": "table", "path": str(path), "target": "repaid", "bias": "sex", "decimal": ","}
    encoding = data.fit_table_encoding(section)
    assert encoding is not None
    assert encoding[2].values == ("Bonn, Nord", "Kiel, Nord", "Ulm, Nord")
    assert data.load_encoded(section, encoding)[0].facts.shape == (5,)
    points = load(write(tmp_path, frame()), decimal=",")  # a column that needs points throughout has them
    assert np.array_equal(points.splits["train"].inputs, load(write(tmp_path, rows)).splits["train"].inputs)
    rows.loc[7, "income"] = "1.23"
    with pytest.raises(UserError, match=r"'1\.23' \(line 9\)"):
        load(write(tmp_path, rows), decimal=",")


def table_with_a_comma_column(tmp_path: Path, digits: int) -> Path:
    """A table whose numbers have decimal points, but for one column with commas, as German software adds one."""
    rows = frame()
    rows["density"] = [f"{2 + n / 100:.{digits}f}".replace(".", ",") for n in range(len(rows))]
    return write(tmp_path, rows, sep=";")


def test_a_comma_that_may_be_a_decimal_or_between_thousands_is_asked_about(tmp_path: Path) -> None:
    path = table_with_a_comma_column(tmp_path, digits=3)
    with pytest.raises(UserError) as told:
        load(path)
    assert "'density' holds numbers whose comma may mark decimals or thousands, as '2,000' (line 2)" in str(told.value)
    assert 'If decimals, give data.decimal: ","' in str(told.value)
    section = {"name": "table", "path": str(path), "target": "repaid", "bias": "sex", "decimal": ","}
    assert {column.name: column.values for column in data.fit_table_encoding(section) or ()}["density"] is None


@pytest.mark.parametrize("cells", [["2,6", "abc"], ["3,000"], ["2,60"], ["2.6", "abc"], ["2,000", "2,6"]])
def test_rows_for_a_model_are_read_with_the_decimal_mark_of_each_training_column(
    tmp_path: Path, cells: list[str]
) -> None:
    """pandas leaves a column as text for the sake of one cell, and one row may not show its decimal mark."""
    section = {"name": "table", "path": str(table_with_a_comma_column(tmp_path, digits=2)), "target": "repaid"}
    encoding = data.fit_table_encoding(section)
    assert encoding is not None
    rows = frame().head(len(cells)).assign(density=cells)
    inputs, faults = encode_rows(rows, encoding)
    assert list(faults) == [row for row, cell in enumerate(cells) if cell == "abc"]
    numbers = [float(cell.replace(",", ".")) for cell in cells if cell != "abc"]
    whole, _ = encode_rows(rows.head(len(numbers)).assign(density=numbers), encoding)
    assert np.array_equal(inputs[: len(numbers)], whole)


def test_marks_and_words_hold_for_parquet_and_whatever_blanks_are_around(tmp_path: Path) -> None:
    rows = frame().astype({"income": object})
    rows.loc[57, "income"] = " ?"
    rows["income"] = rows["income"].astype(str)
    rows.loc[3, "repaid"] = "? "
    rows.loc[4, "city"] = "  "
    plain = load(write(tmp_path, frame().drop(index=[3, 4, 57])))
    rows.to_parquet(tmp_path / "rows.parquet")
    for path in (write(tmp_path, rows), tmp_path / "rows.parquet"):
        same(load(path, missing_marks=["?"], missing="drop"), plain)
    assert load(tmp_path / "rows.parquet", words=["age"], missing_marks=["?"], missing="drop").facts.shape[0] > 30


@pytest.mark.parametrize("name", ["rows.CSV", "rows.pq", "rows.PARQUET"])
def test_endings_are_known_in_any_letters(tmp_path: Path, name: str) -> None:
    plain, path = load(write(tmp_path, frame())), tmp_path / name
    frame().to_csv(path, index=False) if path.suffix == ".CSV" else frame().to_parquet(path)
    same(load(path), plain)


def test_a_spreadsheet_that_cannot_be_read_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (path := tmp_path / "rows.xlsx").write_bytes(b"PK")
    with pytest.raises(UserError, match=r"rows\.xlsx: not readable as a spreadsheet"):
        load(path)
    path = path.rename(tmp_path / "rows.ods")
    with pytest.raises(UserError, match=r"rows\.ods: .* package odfpy.*Or save its sheet as CSV"):
        load(path)
    path.with_suffix(".csv").write_bytes(b"PK\3\4" + bytes(100))
    with pytest.raises(UserError, match=r"rows\.csv: is a spreadsheet or an archive by its content"):
        load(path.with_suffix(".csv"))


def test_decimals_of_parquet_without_a_fraction_are_whole_labels(tmp_path: Path) -> None:
    rows = frame(target=("0", "1"))
    rows["repaid"] = rows["repaid"].map(lambda text: Decimal(f"{text}.00"))
    rows.to_parquet(tmp_path / "rows.parquet")
    assert load(tmp_path / "rows.parquet").facts.class_names == ("0", "1")
    rows["repaid"] += Decimal("0.50")
    rows.to_parquet(tmp_path / "rows.parquet")
    assert load(tmp_path / "rows.parquet").facts.class_names == ("0.50", "1.50")


def test_a_line_is_that_of_the_file_behind_empty_lines_and_breaks_in_cells(tmp_path: Path) -> None:
    rows = frame().astype({"income": object})
    rows["city"] = rows["city"].replace("Kiel", "Ki\nel")
    rows.loc[57, "income"] = "?"
    path = write(tmp_path, rows)
    lines = path.read_text().split("\n")
    path.write_text("\n".join(["", *lines[:4], "", "  ", *lines[4:]]))
    line = next(number for number, text in enumerate(path.read_text().split("\n"), 1) if ",?," in text)
    with pytest.raises(UserError, match=rf"'\?' \(line {line}\)"):
        load(path)


def test_what_each_input_is_read_as_is_told_in_a_few_lines(tmp_path: Path) -> None:
    kinds = {"term": np.array(["36 months", "60 months"])[np.arange(120) % 2], "owner": np.arange(120) % 3 == 0}
    rows = frame().assign(**kinds, id=range(120), day=20260101 + np.arange(120) % 7)
    rows["city"] = rows["city"].where(rows.index != 4, rows["city"].str.upper())
    section = {"name": "table", "path": str(write(tmp_path, rows)), "target": "repaid", "bias": "sex"}
    assert data.describe_column_reading(section) == [
        "inputs: 6 columns, which become 11 numbers for the network",
        "  numbers (3): age, income, day",
        "  yes or no (1): owner",
        "  words (2): city (4 words), term (2 words)",
        "  left out, as they count the rows: id",
    ]
    assert data.describe(section).shape == (11,)
    problems = {one.column: one.problem for one in data.column_findings(section)}
    assert problems["city"] == "has words that may be one: 'KIEL', 'Kiel'"
    assert problems["day"] == "looks like dates, as 20260101, and is read as a number"
    assert data.describe_column_reading({**section, "features": ["age"]})[-1] == (
        "  left out, as data.features does not name them: income, city, term, owner, id, day"
    )
    wide = pd.concat([frame(), pd.DataFrame(np.random.default_rng(0).normal(size=(120, 200))).add_prefix("x")], axis=1)
    assert max(map(len, data.describe_column_reading({**section, "path": str(write(tmp_path, wide))}))) < 120


@pytest.mark.parametrize(
    ("rule", "then"),
    [
        ("fill", "a number becomes the mean of the training rows, a word one of its own"),
        ("drop", "these rows are left out"),
    ],
)
def test_columns_with_missing_values_are_named_and_what_happens_to_their_rows(
    tmp_path: Path, rule: str, then: str
) -> None:
    rows = frame()
    rows.loc[[3, 57], "age"] = np.nan
    rows.loc[[57], "city"] = None
    section = {"name": "table", "path": str(write(tmp_path, rows)), "target": "repaid", "bias": "sex"}
    told = data.describe_column_reading({**section, "missing": rule})
    assert told[-1] == f"  missing values: age (2), city (1), in 2 of {len(rows)} rows: {then}"
    whole = {**section, "path": str(write(tmp_path, frame())), "missing": rule}
    assert not [line for line in data.describe_column_reading(whole) if "missing" in line]


def test_a_bias_of_numbers_has_groups_named_by_their_ranges(tmp_path: Path) -> None:
    rows = frame()
    section = {"name": "table", "path": str(write(tmp_path, rows)), "target": "repaid", "bias": "age"}
    facts = data.describe({**section, "bias_bins": (25, 40, 60)})
    assert facts.bias_names == ("under 25", "25 to under 40", "40 to under 60", "60 and over")
    read = data.load({**section, "bias_bins": (25, 40, 60), "features": ["income"]})
    counts = np.bincount(np.concatenate([split.bias for split in read.splits.values()]))
    assert counts.tolist() == np.histogram(rows["age"], [0, 25, 40, 60, 99])[0].tolist()
    quartiles = data.describe({**section, "bias_bins": "quartiles"})
    assert quartiles.bias_edges == tuple(np.quantile(rows["age"], [0.25, 0.5, 0.75]))
    assert data.describe({**section, "bias_bins": (10, 40)}).bias_names == ("10 to under 40", "40 and over")
    both = data.describe({**section, "bias": "age+sex", "bias_bins": (40,)})
    assert both.bias_names == ("under 40+f", "40 and over+f", "under 40+m", "40 and over+m")
    rows["age"] += 0.5
    rows.loc[7, "age"] = None
    known = {**section, "path": str(write(tmp_path, rows, decimal=",")), "decimal": ",", "bias_gaps": "unknown"}
    assert data.describe({**known, "bias_bins": (24.5,)}).bias_names == ("under 24.5", "24.5 and over")


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"bias": "sex", "bias_bins": (1,)}, "'sex': data.bias_bins needs one of numbers, it has no column .* 'f'"),
        ({"bias": "age", "bias_bins": (40, 25)}, r"\[40, 25\] given; numbers in ascending order, or quartiles"),
        ({"bias": "age", "bias_bins": ()}, r"\[\] given; numbers in ascending order"),
        ({"bias": "age+income", "bias_bins": "quartiles"}, "it has several columns of numbers"),
        ({"bias": None, "bias_bins": (40,)}, r"given without data\.bias"),
    ],
)
def test_bins_of_no_numbers_or_without_order_are_refused(tmp_path: Path, keys: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says):
        load(write(tmp_path, frame()), **keys)


def splits_of_group(read: Dataset, people: np.ndarray) -> list[set[int]]:
    """The people in each split; the condition of a row is its number."""
    return [set(people[split.condition[:, 0].astype(int)]) for split in read.splits.values()]


@pytest.mark.parametrize("val", ["biased", "unbiased"])
def test_rows_of_one_group_stay_in_one_split_in_shares(tmp_path: Path, val: str) -> None:
    people = np.random.default_rng(0).integers(0, 60, 600)
    rows = frame(600).assign(patient=[f"p{n}" for n in people], row=range(600))
    path = write(tmp_path, rows)
    read = load(path, group="patient", condition=["row"], val=val)
    found = splits_of_group(read, people)
    assert not found[0] & found[1] | found[0] & found[2] | found[1] & found[2]
    assert read.facts.shape == load(path, condition=["row"], features=["age", "income", "city"]).facts.shape
    assert abs(len(read.splits["test"].target) - 90) < 15
    section = {"name": "table", "path": str(path), "target": "repaid", "bias": "sex", "group": "patient"}
    assert "data.group: each of the 60 values of 'patient' is in one split" in data.user_file_notes(section)
    if val == "unbiased":
        counts = np.unique(2 * read.splits["val"].target + read.splits["val"].bias, return_counts=True)[1]
        assert counts.min() >= 0.7 * counts.max()


def test_groups_and_equal_rows_that_own_splits_divide_are_warned_of(tmp_path: Path) -> None:
    rows = pd.concat([frame(80)] * 3, ignore_index=True)
    rows["part"] = ["train"] * 120 + ["val"] * 60 + ["test"] * 60
    rows["patient"] = [n % 80 for n in range(240)]
    section = {"name": "table", "path": str(write(tmp_path, rows)), "target": "repaid", "bias": "sex"}
    notes = data.user_file_notes({**section, "split": "part", "group": "patient"})
    assert any(note.startswith("data.group: 80 values of 'patient' are in several splits: '") for note in notes)
    assert any("some are in several splits: 60 in val, 60 in test" in note for note in notes)
    rows = rows.assign(part=["train"] * 180 + ["test"] * 60)
    write(tmp_path, rows)
    read = load(tmp_path / "rows.csv", split="part", group="patient")
    seen = {name: {row.tobytes() for row in split.inputs} for name, split in read.splits.items()}
    assert not seen["train"] & seen["val"]  # validation is ours to cut


@pytest.mark.parametrize("keys", [{"group": "repaid"}, {"group": "city", "features": ["age", "city"]}])
def test_a_group_is_neither_class_nor_input(tmp_path: Path, keys: dict[str, object]) -> None:
    with pytest.raises(UserError, match="group"):
        load(write(tmp_path, frame()), **keys)


def test_an_input_that_tells_the_bias_or_the_class_is_named(tmp_path: Path) -> None:
    rows = frame().assign(gender=lambda found: found["sex"].map({"f": "woman", "m": "man"}))
    section = {"name": "table", "path": str(write(tmp_path, rows)), "target": "repaid", "bias": "sex"}
    (found,) = (one for one in data.column_findings(section) if one.column == "gender")
    assert str(found).startswith("column 'gender' is an input, and has one value for each value of data.bias (sex)")
    write(tmp_path, rows.assign(gender=rows["repaid"].map({"no": 0, "yes": 1})))
    named = data.column_findings({**section, "features": ["age", "income", "gender"]})
    (found,) = (one for one in named if one.column == "gender")
    assert found.kind == "odd"
    assert "alone tells the class: right in 100.0%" in str(found)


def test_an_infinite_value_is_looked_at_without_a_warning_of_numpys() -> None:
    column = pd.DataFrame({"x": [1.0, np.inf, *range(2, 80)]})
    assert odd_columns.row_number_columns(column, ["x"]) == ()
    assert odd_columns.find_odd_columns(column, ["x"]) == []


def test_a_wide_table_is_read_without_a_warning_of_pandas(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    words = pd.DataFrame(draw.choice(["a", "b", " "], (120, 130))).add_prefix("w")
    path = write(tmp_path, pd.concat([frame(), words], axis=1))
    section = {"name": "table", "path": str(path), "target": "repaid", "bias": "sex", "missing": "fill"}
    assert {one.column for one in [*data.findings_before_study_file(section), *data.column_findings(section)]} <= {
        "sex"
    }
    assert data.load({**section, "words": [f"w{n}" for n in range(110)]}).facts.shape[0] > 260


def test_ticket_numbers_are_no_marks_of_missing_values(tmp_path: Path) -> None:
    rows = frame().assign(ticket=[f"A/5 {n}" if n % 4 == 0 else str(7000 + 13 * n) for n in range(120)])
    with pytest.raises(
        UserError, match=r"'ticket' holds numbers but for 'A/5 0'.* data\.without: \[ticket\]"
    ) as caught:
        load(write(tmp_path, rows))
    assert "missing_marks" not in str(caught.value)


def test_dates_beside_decimal_commas_are_dates(tmp_path: Path) -> None:
    rows = frame().assign(day=[f"{place % 28 + 1:02d}.03.2026" for place in range(len(frame()))])
    path = tmp_path / "german.csv"
    rows.to_csv(path, index=False, sep=";", decimal=",")
    with pytest.raises(UserError, match=r"'day' holds dates, as '01\.03\.2026' \(line 2\)"):
        load(path)


def test_lists_in_a_parquet_file_are_words(tmp_path: Path) -> None:
    rows = frame()
    rows["parts"] = [[place % 3] * 2 for place in range(len(rows))]
    rows.to_parquet(tmp_path / "lists.parquet")
    rows.assign(parts=rows["parts"].map(lambda part: str(np.array(part)))).to_csv(tmp_path / "texts.csv", index=False)
    same(load(tmp_path / "lists.parquet"), load(tmp_path / "texts.csv"))


def test_a_label_that_is_there_twice_is_not_to_be_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, frame())
    path.write_text(path.read_text().replace("city", "repaid", 1))
    with pytest.raises(UserError, match="'repaid' is there 2 times") as caught:
        load(path)
    assert "data.without" not in str(caught.value)


def test_what_is_left_out_of_a_parquet_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    frame().assign(id=np.arange(120)).to_parquet(path)
    section = {"name": "table", "path": str(path), "target": "repaid", "bias": "sex", "without": ["city"]}
    told = data.describe_column_reading(section)
    assert told[-2:] == ["  left out, as they count the rows: id", "  left out, as data.without names them: city"]


def test_half_precision_of_a_parquet_file_is_read_as_numbers(tmp_path: Path) -> None:
    rows = frame().astype({"income": np.float16})
    rows.to_parquet(tmp_path / "half.parquet")
    rows.astype({"income": np.float64}).to_csv(tmp_path / "full.csv", index=False)
    same(load(tmp_path / "half.parquet"), load(tmp_path / "full.csv"))


@pytest.mark.parametrize("key", ["bias", "target"])
def test_columns_of_too_many_combinations_are_refused_before_each_one_gets_a_name(key: str, tmp_path: Path) -> None:
    """Two columns of 1,500 values took gigabytes."""
    draw = np.random.default_rng(0)
    values = [f"v {number}" for number in range(101)]
    many = {name: draw.permutation(np.repeat(values, 2)) for name in ("a", "b")}
    path = write(tmp_path, frame(202).assign(**many))
    with pytest.raises(UserError, match=r"10,201 combinations of values of 'a' \(101\) and 'b' \(101\), allowed are"):
        load(path, **{key: "a+b"}, without=["city"])


def test_a_named_index_of_a_parquet_file_is_a_column(tmp_path: Path) -> None:
    rows = frame()
    plain = load(write(tmp_path, rows))
    for names in (["age"], ["repaid", "city"], ["age", "sex", "repaid"]):
        rows.set_index(names).to_parquet(path := tmp_path / f"{'-'.join(names)}.parquet")
        found = load(path)
        assert found.facts == plain.facts
        for name, split in found.splits.items():
            np.testing.assert_array_equal(np.sort(split.inputs), np.sort(plain.splits[name].inputs))
    rows.rename_axis("count").to_parquet(path := tmp_path / "range.parquet")
    assert [one.column for one in data.column_findings(section(path)) if one.kind == "left out"] == ["count"]


def test_an_index_of_a_parquet_file_that_is_no_column(tmp_path: Path) -> None:
    """Without a name it only numbers the rows; beside a column of its name it repeats it, or is refused."""
    rows = frame()
    plain = load(write(tmp_path, rows))
    rows.iloc[np.argsort(rows["income"])].sort_index().set_axis(range(7, 7 + 3 * len(rows), 3)).to_parquet(
        path := tmp_path / "unnamed.parquet"
    )
    same(load(path), plain)
    rows.set_axis([f"row {number}" for number in range(len(rows))]).to_parquet(path)
    same(load(path), plain)


def test_what_pandas_noted_of_an_index_may_no_longer_hold(tmp_path: Path) -> None:
    """Another program leaves out columns or rows, and what is noted stays."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = frame()
    plain = load(write(tmp_path, rows.drop(columns="age")))
    pq.write_table(pa.Table.from_pandas(rows.set_index("age")).drop_columns("age"), path := tmp_path / "rows.parquet")
    same(load(path), plain)
    pq.write_table(pa.Table.from_pandas(rows.rename_axis("count")).slice(0, 90), path)
    assert "count" not in data.describe_column_reading(section(path))[-1]
    assert sum(map(len, load(path).splits.values())) == 90


def test_categories_of_numbers_and_periods_of_a_parquet_file_are_no_numbers(tmp_path: Path) -> None:
    """pandas' own reader forgets that these numbers name kinds, and a period is a date."""
    rows = frame()
    codes = rows.assign(city=pd.Categorical(np.arange(120) % 3))
    codes.to_parquet(path := tmp_path / "codes.parquet")
    words = load(write(tmp_path, codes), words=["city"])
    same(load(path), words)
    codes["city"] = codes["city"].cat.remove_categories([2])
    codes.to_parquet(path)
    assert load(path, missing="fill").facts == words.facts
    rows.assign(when=pd.period_range("2020-01", periods=120, freq="M")).to_parquet(path)
    with pytest.raises(UserError, match="column 'when' holds dates"):
        load(path)


@pytest.mark.parametrize("separator", [",", ";"])
def test_rows_of_separators_alone_at_the_end_are_no_rows(tmp_path: Path, separator: str) -> None:
    rows = frame()
    plain = load(write(tmp_path, rows))
    path = write(tmp_path, rows, sep=separator)
    text = path.read_text()
    path.write_text(text + f"{4 * separator}\n" * 3 + "\n")
    same(load(path), plain)
    path.write_text(text + f"{4 * separator}\n" + text.splitlines()[1] + "\n")
    with pytest.raises(UserError, match=r"values are missing in .* of 122 rows"):
        load(path)


@pytest.mark.parametrize("kind", ["int64", "float64", "Int64", "float32"])
def test_numbers_that_mark_missing_values_are_missing_in_a_parquet_file_too(tmp_path: Path, kind: str) -> None:
    rows = frame()
    rows.loc[::10, "age"] = -999
    wanted = load(write(tmp_path, rows), missing_marks=["-999", "?"], missing="fill")
    rows.astype({"age": kind}).to_parquet(path := tmp_path / "rows.parquet")
    same(load(path, missing_marks=["-999", "?"], missing="fill"), wanted)


def section(path: Path) -> dict[str, object]:
    return {"name": "table", "path": str(path), "target": "repaid", "bias": "sex"}
