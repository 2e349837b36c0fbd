"""A table is one table however it is saved: `init`, `plan`, training, `predict` and `evaluate` need no key for it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from final_training import train_study
from typer.testing import CliRunner

from study import data
from study.cli import app
from study.commands.final_training import final_training_spec
from study.commands.init import AnswerSource, InitOptions, write_study_file
from study.home.folder import Home
from study.spec import load_study

ALL_OF_IT = "--split all takes every sample"


def people(rows: int = 160) -> pd.DataFrame:
    draw = np.random.default_rng(5)
    kind = np.arange(rows) % 2
    return pd.DataFrame(
        {
            "Größe": (170 + 8 * kind + draw.normal(0, 5, rows)).round(1),
            "Lohn": (3000 + 900 * kind + draw.normal(0, 600, rows)).round(2),
            "Stadt": draw.choice(["München", "Köln", "Ulm"], rows),
            "sex": np.array(["f", "m"])[np.arange(rows) // 2 % 2],
            "paid": np.array(["no", "yes"])[kind],
        }
    )


def german(rows: pd.DataFrame) -> pd.DataFrame:
    """As Excel in Germany shows it, with points between thousands."""

    def number(value: float) -> str:
        return f"{value:,.2f}".translate({ord(","): ".", ord("."): ","})

    return rows.assign(**{name: rows[name].map(number) for name in ("Größe", "Lohn")})


WAYS: dict[str, Callable[[pd.DataFrame, str], None]] = {
    "plain.csv": lambda rows, name: rows.to_csv(name, index=False),
    "german.csv": lambda rows, name: german(rows).to_csv(
        name, index=False, sep=";", encoding="cp1252", lineterminator="\r\n"
    ),
    "bom.csv": lambda rows, name: german(rows).to_csv(name, index=False, sep=";", encoding="utf-8-sig"),
    "quoted.csv": lambda rows, name: german(rows).to_csv(name, index=False),
    "unicode.txt": lambda rows, name: german(rows).to_csv(name, index=False, sep="\t", encoding="utf-16"),
    "tabs.tsv": lambda rows, name: rows.to_csv(name, index=False, sep="\t"),
    "sheet.xlsx": lambda rows, name: rows.to_excel(name, index=False),
    "table.parquet": lambda rows, name: rows.to_parquet(name),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for name, save in WAYS.items():
        save(people(), name)
    return tmp_path


def drafted(path: str) -> dict[str, object]:
    """The `data` section that init drafts for a table."""
    write_study_file(
        InitOptions("mine", path, target="paid", bias="sex", methods=("cross_entropy",)),
        None,
        True,
        AnswerSource(None, print),
    )
    return dict(load_study("mine.yaml").base["data"])


@pytest.mark.parametrize("path", [*WAYS])
def test_any_way_of_saving_gives_the_same_data_without_a_key(here: Path, path: str) -> None:
    plain, section = drafted("plain.csv"), drafted(path)
    assert section == {**plain, "path": path}
    assert data.load(section).fingerprint == data.load(plain).fingerprint
    assert (data.describe_column_reading(section)[0].startswith("read as: ")) is (
        path not in ("plain.csv", "sheet.xlsx", "table.parquet")
    )


def test_a_model_takes_rows_saved_in_any_way(here: Path) -> None:
    drafted("german.csv")
    model = train_study(
        Home(here / "home"), final_training_spec(load_study("mine.yaml"), [3], "final")
    ).model_description_file(0)
    expected: str | None = None
    for path, save in WAYS.items():
        save(people().drop(columns=["paid"]).iloc[:30], f"new-{path}")
        done = CliRunner().invoke(app, ["predict", str(model), f"new-{path}", "--device", "cpu"])
        assert done.exit_code == 0, done.stderr
        expected = expected or done.stdout
        assert done.stdout == expected
        words = ["evaluate", str(model), "--split", "test", "--device", "cpu", "--set", f"data.path={path}"]
        measured = CliRunner().invoke(app, words)
        assert measured.exit_code == 0, measured.stderr
        own = CliRunner().invoke(app, words[:6]).stdout.splitlines()
        assert measured.stdout.splitlines() == [f"{own[0]}, the test split of these data; {ALL_OF_IT}", *own[1:]]


def test_what_the_study_says_of_its_table_holds_for_new_rows_too(here: Path) -> None:
    """1,234 in a table separated by commas says nothing of itself."""
    rows = people().drop(columns=["Größe"])
    rows["Lohn"] = rows["Lohn"].map(lambda value: f"{value / 100:.3f}".replace(".", ","))
    rows.to_csv("thousandths.csv", index=False)
    write_study_file(
        InitOptions(
            "mine",
            "thousandths.csv",
            target="paid",
            bias="sex",
            methods=("cross_entropy",),
            assignments=("data.decimal=,",),
        ),
        None,
        True,
        AnswerSource(None, print),
    )
    model = train_study(
        Home(here / "home"), final_training_spec(load_study("mine.yaml"), [3], "final")
    ).model_description_file(0)
    rows.iloc[:1].to_csv("new.csv", index=False)
    whole, alone = (
        CliRunner().invoke(app, ["predict", str(model), path, "--device", "cpu"]).stdout.splitlines()
        for path in ("thousandths.csv", "new.csv")
    )
    assert len(alone) == 2
    assert alone == whole[:2]
