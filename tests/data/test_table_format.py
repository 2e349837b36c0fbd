"""How a table is written is found by looking: encoding, separator, decimals, sheets; what cannot be told is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.data import label_files, table_format
from study.data.sets import table
from study.data.table_format import UNKNOWN_FORMAT, TableFormat, describe_format, detect_format, to_plain_number
from study.errors import UserError


def written(folder: Path, content: str, encoding: str = "utf-8", name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode(encoding))
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx"])
def test_each_column_has_the_decimal_mark_that_all_its_numbers_need(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    frame = pd.DataFrame(
        {"pay": ["4213,67", "1999,5"], "rent": ["5,5", None], "height": [171.9, 160.25], "y": ["a", "1,5"]}
    )
    frame.to_excel(path, index=False) if name == "t.xlsx" else frame.to_csv(path, index=False, sep=";")
    read = label_files.read_typed_table(path)
    assert read["pay"].tolist() == [4213.67, 1999.5]
    assert read["height"].tolist() == [171.9, 160.25]
    assert read["rent"].isna().tolist() == [False, True]
    assert read["y"].tolist() == ["a", "1,5"]
    assert "decimal commas (data.decimal), decimal points in height" in describe_format(path)[0]


@pytest.mark.parametrize(
    ("content", "separator"),
    [
        ("a,b\n1,2\n3,4\n", ","),
        ("a;b\n1,5;2\n3;4,25\n", ";"),
        ("a\tb\n1\t2\n", "\t"),
        ("a|b\n1|2\n", "|"),
        ("a\n1\n2\n", ","),
        ("file\na;b.png\nc;d.png\n", ","),
        ("age,note\n1,x;y\n2,z\n3,u;v;w\n", ","),
        ("id,sex|race,y\n1,f|w,0\n2,m|b,1\n", ","),
        ("price, net;amount, piece\n1,5;3,2\n2,5;1,2\n", ";"),
        ('"a, or b";c\n"x, y";1\n"u";2\n', ";"),
        ('a;b\n"one\ntwo, three, four";2\n"five, six";3\n', ";"),
        ("a,b\n1,2,\n3,4,\n", ","),
        ("sep=;\na;b\n1;2\n", ";"),
    ],
)
def test_the_separator_is_what_cuts_header_and_lines_alike(tmp_path: Path, content: str, separator: str) -> None:
    assert detect_format(written(tmp_path, content)).separator == separator


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("cp1252", "cp1252"),
        ("latin-1", "cp1252"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("utf-32", "utf-32"),
    ],
)
def test_the_encoding_is_told_by_the_bytes(tmp_path: Path, encoding: str, name: str) -> None:
    path = written(tmp_path, "Größe;Straße\n1,5;Köln\n2,5;Ulm\n", encoding)
    assert detect_format(path) == TableFormat(";", name, ",")
    assert label_files.read_table_as_text(path, (), UNKNOWN_FORMAT).to_dict("list") == {
        "Größe": ["1,5", "2,5"],
        "Straße": ["Köln", "Ulm"],
    }
    assert label_files.read_column_names(path) == label_files.read_header(path) == ["Größe", "Straße"]
    assert label_files.read_typed_table(path)["Größe"].tolist() == [1.5, 2.5]
    assert label_files.row_location(path, 1) == "line 3"
    assert ("cp1252, as 'Größe' in line 1" in describe_format(path)[0]) is (name == "cp1252")


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    for content in (bytes(range(256)) * 9, b"a,b\n\x81\x8d,\x8f\n", np.arange(9999).tobytes()):
        (path := tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(UserError, match=r"t\.csv: "):
            label_files.read_table_as_text(path, (), UNKNOWN_FORMAT)
    path = written(tmp_path, "имя;y\nЮля;1\n", "koi8-r")
    assert label_files.read_column_names(path, table_format.format_from_keys({"encoding": "koi8-r"})) == ["имя", "y"]
    with pytest.raises(UserError, match=r"is not in utf-8, see line 1"):
        label_files.read_column_names(path, table_format.format_from_keys({"encoding": "utf-8"}))
    for encoding in ("no-such", "hex", "rot13", ""):
        with pytest.raises(UserError, match=r"data\.encoding: .* no encoding of texts"):
            table_format.format_from_keys({"encoding": encoding})


@pytest.mark.parametrize(
    ("cells", "separator", "decimal"),
    [
        (["1,5", "2"], ";", ","),
        (["1.234,5", "950"], ";", ","),
        (["1.234.567", "0,5"], ";", ","),
        (["12,345", "1,234"], ";", ","),
        (["0,125", "k.A."], ";", ","),
        (["1.5", "2,5", "1.25"], ";", "."),  # equally often: told when the numbers are read
        (["1.5", "2.5"], ";", "."),
        (["1", "2"], ";", "."),
        (["1.234", "950"], ";", "."),
        (["1,234", "12,345"], ",", "."),  # thousands of an English table
        (["1,234.5", "950"], ",", "."),
        (["1,5", "2,25"], ",", ","),
        (["Köln, Nord", "Ulm"], ";", "."),
        (["a 1,5", "b 2"], ";", "."),
    ],
)
def test_decimals_have_a_comma_where_numbers_need_one(
    tmp_path: Path, cells: list[str], separator: str, decimal: str
) -> None:
    pd.DataFrame({"x": cells, "y": "a"}).to_csv(tmp_path / "t.csv", sep=separator, index=False)
    assert detect_format(tmp_path / "t.csv") == TableFormat(separator, "utf-8", decimal)


def test_a_point_that_may_stand_between_thousands_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, "x;y\n1.234;a\n950;b\n")
    assert 'data.decimal: ","' in describe_format(path)[-1]
    assert len(describe_format(path, TableFormat(decimal="."))) == 1
    assert len(describe_format(written(tmp_path, "x;y\n1.234;a\n0.95;b\n"))) == 1
    assert describe_format(written(tmp_path, "x,y\n1.234,a\n950,b\n")) == []


@given(st.floats(-1e12, 1e12), st.integers(0, 6), st.sampled_from([*". \u00a0\u202f", ""]))
def test_a_number_of_any_table_with_decimal_commas_is_that_number(value: float, digits: int, thousands: str) -> None:
    english = f"{value:,.{digits}f}"
    text = english.translate({ord(","): thousands, ord("."): ","})
    assert float(to_plain_number(text, ",")) == float(english.replace(",", ""))


def test_a_slip_beside_a_decimal_comma_is_no_number() -> None:
    for text in ("1.5", "12.34,5", "1.2345", "1.234.56"):
        with pytest.raises(ValueError, match="float"):
            float(to_plain_number(text, ","))


def test_a_sheet_is_read_as_if_it_were_saved_as_csv(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"x": [1.5, None, 3.25], "n": [1, 2, 3], "name": ["Köln, Süd", None, "0012"], "ok": [True, False, True]}
    )
    path = tmp_path / "t.xlsx"
    with pd.ExcelWriter(path) as book:
        frame.to_excel(book, sheet_name="Daten", index=False)
        frame.to_excel(book, sheet_name="Notizen", index=False)
    frame.to_csv(tmp_path / "t.csv", index=False)
    pd.testing.assert_frame_equal(label_files.read_typed_table(path), label_files.read_typed_table(tmp_path / "t.csv"))
    assert (
        label_files.read_table_as_text(path, (), UNKNOWN_FORMAT).to_dict()
        == label_files.read_table_as_text(tmp_path / "t.csv", (), UNKNOWN_FORMAT).to_dict()
    )
    assert describe_format(path) == ["read as: sheet 'Daten', the first of 2 (the others are not read)"]
    assert label_files.row_location(path, 2) == "row 4 of the sheet"


def test_empty_rows_of_a_sheet_are_none_and_the_others_keep_their_number(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    pd.DataFrame({"x": [1, None, 2], "y": ["a", None, "b\nc"]}).to_excel(path, index=False)
    assert label_files.read_typed_table(path)["x"].tolist() == [1, 2]
    assert label_files.row_location(path, 1) == "row 4 of the sheet"


def test_a_file_that_was_written_anew_is_looked_at_again(tmp_path: Path) -> None:
    assert detect_format(written(tmp_path, "a,b\n1,2\n")).separator == ","
    assert detect_format(written(tmp_path, "a;b;c\n1;2;3\n")).separator == ";"


def test_a_row_is_placed_in_the_format_that_is_given(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a;b\n" + b"1,5;x\n" * 30 + b"\n2,5 \x81;y\n")  # \x81 is a letter in Latin-1 alone
    assert label_files.row_location(path, 30, TableFormat(encoding="latin-1")) == "line 33"
    options = table.Options(path=str(path), target="b", encoding="latin-1")
    with pytest.raises(UserError, match=r"a  holds numbers but for .*line 33"):
        table.describe(options)
