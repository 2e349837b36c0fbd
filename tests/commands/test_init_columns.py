"""`study init` and `study plan` on tables whose columns mislead: all that is to be decided is told at once."""

import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from init_folder import nobody, of, refused

from study import data
from study.commands import plan
from study.commands.init import write_study_file
from study.commands.init_answers import AnswerSource
from study.spec import load_study

ROWS = 240


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    return tmp_path


def table(**columns: object) -> None:
    """A table of people with these columns besides."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=ROWS).round(3)
    yes = x + draw.normal(size=ROWS) > 0
    frame = pd.DataFrame({"x": x, "sex": draw.choice(["f", "m"], ROWS), "status": np.where(yes, "yes", "no")})
    made = {name: column(yes) if callable(column) else column for name, column in columns.items()}
    frame.assign(**made).to_csv("people.csv", index=False)  # type: ignore[arg-type]


def slips(yes: "np.ndarray") -> "np.ndarray":
    return np.where(np.arange(ROWS) % 40 == 0, ~yes, yes).astype(int)


def filled(yes: "np.ndarray") -> list[str]:
    return [str(2000 + n % 90) if one else "" for n, one in enumerate(yes)]


def people(**given: object):  # type: ignore[no-untyped-def]
    return of("cross_entropy", data="people.csv", target=given.pop("target", "status"), bias="sex", **given)


LEAKS: list[tuple[Callable[..., object], str]] = [
    (slips, "alone tells the class: right in 97"),
    (filled, "tells the class by where it is empty: right in 100.0%"),
]


@pytest.mark.parametrize(("leak", "says"), LEAKS)
def test_a_column_that_tells_the_class_is_refused_until_somebody_decides(leak: object, says: str) -> None:
    table(leak=leak)
    told = refused(people())
    assert f"column 'leak' {says}" in told
    assert told.endswith("--without leak; --without none keeps those that tell the class")
    path = write_study_file(people(without=["leak"]), None, False, nobody())
    assert load_study(str(path)).base["data"]["without"] == ["leak"]
    assert data.describe(load_study(str(path)).base["data"]).telling == ()
    for kept in ({"without": ["none"]}, {"assignments": ["data.features=[x, leak]"]}):
        document = plan.plan_study(load_study(str(write_study_file(people(**kept), Path("kept.yaml"), True, nobody()))))
        ((found,),) = document.columns
        assert (found.column, "tells the class" in found.problem) == ("leak", True)
        assert "leak  alone tells" in plan.plan_text(document) or "leak  tells the class by" in plan.plan_text(document)


def test_a_column_that_goes_with_the_class_in_many_rows_is_told_where_no_bias_is_named() -> None:
    table(camera=lambda yes: np.where(np.arange(ROWS) % 10 == 0, ~yes, yes).astype(int))
    of_bias = {}
    for bias in ("none", "sex", "camera"):
        lines: list[str] = []
        write_study_file(replace(people(), bias=bias), Path(f"{bias}.yaml"), False, AnswerSource(None, lines.append))
        of_bias[bias] = [line for line in lines if "goes with the class in" in line]
    ((told,), *others) = of_bias.values()
    assert told.strip().startswith("camera  goes with the class in 88% of the rows")
    assert "--bias camera" in told
    assert others == [[], []]


def test_all_that_is_to_be_decided_is_one_message_and_its_options_do() -> None:
    table(
        copy=slips,
        salary=filled,
        day=[f"2026-03-{n % 28 + 1:02d}" for n in range(ROWS)],
        name=[f"Ann {n * 7 % 241} Bo" for n in range(ROWS)],
        price=[f"${n % 30}.50" for n in range(ROWS)],
        stray=["?" if n == 200 else str(n % 50) for n in range(ROWS)],
        part=["train", "dev", "test"] * (ROWS // 3),
        none="",
        id=3 * np.arange(ROWS) + np.arange(ROWS) % 2,
    )
    told = refused(people(assignments=["data.split=part"]))
    for column in ("copy", "salary", "price", "stray"):
        assert f"\n  {column} " in told
    for column in ("id", "day", "name"):
        assert f"  {column} " not in told
    options = told.splitlines()[-2]
    without = options.partition("--without ")[2].split()[0].split(",")
    assert sorted(without) == ["copy", "price", "salary"]
    assert "--set 'data.missing_marks=[\"?\"]'" in options
    lines: list[str] = []
    keys = ["data.split=part", 'data.missing_marks=["?"]']
    path = write_study_file(
        people(without=[",".join(without)], assignments=keys), None, False, AnswerSource(None, lines.append)
    )
    assert "without: none: the same in every row" in lines
    spec = load_study(str(path))
    rule = "a number becomes the mean of the training rows, a word one of its own"
    assert data.describe_column_reading(spec.base["data"])[:4] == [
        "inputs: 2 columns, which become 2 numbers for the network",
        "  numbers (2): x, stray",
        f"  missing values: stray (1), in 1 of {ROWS} rows: {rule}",
        "  left out, as they count the rows: id",
    ]


def test_dates_and_names_are_left_out_where_nobody_can_be_asked() -> None:
    table(day=[f"{n % 28 + 1}.3.2026" for n in range(ROWS)], name=[f"Ann {n * 7 % 241} Bo" for n in range(ROWS)])
    lines: list[str] = []
    path = write_study_file(people(), None, False, AnswerSource(None, lines.append))
    assert load_study(str(path)).base["data"]["without"] == ["day", "name"]
    told = [line for line in lines if line.startswith("without: ")]
    assert [line.split()[1] for line in told] == ["day:", "name:"]
    kept = write_study_file(people(assignments=["data.words=[day]"]), Path("kept.yaml"), False, nobody())
    assert load_study(str(kept)).base["data"]["without"] == ["name"]
    path.unlink()
    assert "'name' has 240 different texts" in refused(people(assignments=["data.words=[name]"]))


def test_at_a_terminal_it_asks_and_an_answer_that_cannot_be_is_asked_again() -> None:
    table(copy=slips, day=[f"2026-03-{n % 28 + 1:02d}" for n in range(ROWS)])
    asked, told = [], list[str]()
    answers = iter(["[cop, day]", "[copy, day]"])

    def ask(question: str, default: str | None) -> str:
        asked.append((question, default))
        return next(answers) if question.startswith("data.without") else default or ""

    path = write_study_file(people(), None, False, AnswerSource(ask, told.append))
    assert load_study(str(path)).base["data"]["without"] == ["copy", "day"]
    assert asked[:2] == [("data.without, or none", "[day, copy]")] * 2
    assert any("no column 'cop'" in line for line in told)


def test_a_target_of_numbers_is_told_as_such_and_thresholds_make_classes_of_it() -> None:
    table(rate=(np.random.default_rng(1).normal(size=ROWS) / 4).round(2), whole=np.arange(ROWS) % 45 * 1000)
    told = refused(people(target="rate"))
    assert "a number to predict, no classes" in told
    assert "slip" not in told
    option = told.partition("--set '")[2].partition("'")[0]
    for keys, names in (
        ([option], None),
        (["data.target_bins=[0, 0.5]"], ("under 0", "0 to under 0.5", "0.5 and over")),
    ):
        facts = load_study(
            str(write_study_file(people(target="rate", assignments=keys), None, True, nobody()))
        ).data_facts
        assert facts.classes == len(names or "ab")
        assert names in (None, facts.class_names)
    Path("mine.yaml").unlink()
    assert "45 different ones" in refused(people(target="whole"))
    each = people(target="whole", assignments=["data.target_bins=each"])
    assert load_study(str(write_study_file(each, None, True, nobody()))).data_facts.classes == 45


def test_another_kind_of_data_has_no_columns_to_leave_out() -> None:
    assert "--without a: is for tables" in refused(of(data="biased_digits", without=["a"]))
    table()
    assert "no column 'y'" in refused(people(without=["y"]))


def test_both_remedies_of_numbers_with_a_mark_are_lines_to_copy() -> None:
    """The line named the first alone, and a mark that was a kind of its own was lost to who copied it."""
    table(insured=lambda yes: ["none" if n % 10 == 0 else str(n % 40) for n in range(len(yes))], copy=slips)
    told = refused(people()).splitlines()
    assert told[-2] == (
        """As options of study init: --without copy --set 'data.missing_marks=["none"]'; """
        "--without none keeps those that tell the class"
    )
    assert told[-1] == "Or, if insured holds words that you want: --set 'data.words=[insured]'"
    options = {"without": ["copy"], "assignments": [shlex.split(told[-1])[-1]]}
    assert load_study(str(write_study_file(people(**options), None, True, nobody()))).base["data"]["words"] == [
        "insured"
    ]


def test_columns_with_odd_names_are_offered_as_they_can_be_typed() -> None:
    table(**{"Größe, netto": slips, "Gebühr": filled})
    told = refused(people())
    assert "Größe, netto" in told
    assert "\\u" not in told
    command = shlex.split(told.rpartition("study init: ")[2].partition(";")[0])
    assert command[::2] == ["--without", "--without"]
    write_study_file(people(without=command[1::2]), None, False, nobody())
    assert set(load_study("mine.yaml").base["data"]["without"]) == {"Größe, netto", "Gebühr"}


def test_the_class_and_the_bias_may_be_named_among_what_is_no_input() -> None:
    table(z=lambda yes: ["" if n % 9 == 0 else str(n % 31) for n in range(len(yes))])
    write_study_file(people(without=["sex", "status"]), None, False, nobody())
    assert load_study("mine.yaml").base["data"]["missing"] == "fill"


def test_what_an_answer_brings_to_light_is_asked_too() -> None:
    table(stray=lambda yes: ["?" if n == 200 else f"{n % 50},5" for n in range(len(yes))])
    pd.read_csv("people.csv").to_csv("people.csv", index=False, sep=";", decimal=",")
    asked = []

    def ask(question: str, default: str | None) -> str:
        asked.append((question, default))
        return default or ""

    write_study_file(people(assignments=["data.decimal=."]), None, False, AnswerSource(ask, print))
    assert asked[:2] == [("data.decimal, or none", '","'), ("data.missing_marks, or none", '["?"]')]
    section = load_study("mine.yaml").base["data"]
    assert (section["decimal"], section["missing_marks"]) == (",", ["?"])


def test_rows_with_infinite_numbers_are_asked_about_as_those_with_gaps_are() -> None:
    table(ratio=lambda yes: ["inf" if n % 50 == 0 else str(n % 37) for n in range(len(yes))])
    write_study_file(people(), None, False, nobody())
    assert load_study("mine.yaml").base["data"]["missing"] == "fill"


def test_a_column_of_ambiguous_commas_is_not_dropped_but_read(folder: Path) -> None:
    density = [f"{2 + n / 100:.3f}".replace(".", ",") for n in range(ROWS)]
    table(density=density)
    told = refused(people())
    assert """As options of study init: --set 'data.decimal=","'""" in told
    assert "--without density" not in told
    path = write_study_file(people(assignments=['data.decimal=","']), None, False, nobody())
    assert load_study(path).base["data"]["decimal"] == ","
