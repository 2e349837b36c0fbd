"""`study simulate` and `study plan --simulate`, over a study that ran and over recorded curves."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorded_curves import EPOCHS, ran, space
from typer.testing import CliRunner

from study.cli import app
from study.commands import plan_advice
from study.home import ledger
from study.home.folder import Home
from study.simulation import advice
from study.simulation.observed import overheads
from study.simulation.variants import variants


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a study, and a file of curves beside it."""
    home = tmp_path_factory.mktemp("home")
    ran(home, space("search.trials=24", "search.early_stopping={name: none}"))
    return home


@pytest.fixture(autouse=True)
def home(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STUDY_HOME", str(place))
    return place


def study(*given: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, list(given))
    if status:
        assert isinstance(done.exception, Exception)
        return str(done.exception)
    assert done.exit_code == 0, done.output
    return done.stdout


def simulated(*given: str) -> dict[str, Any]:
    return json.loads(study("simulate", *given, "--json"))


def test_a_study_whose_driver_never_began_has_nothing_to_simulate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Home(tmp_path).create(space())
    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    assert "quickstart: 0 of its trials ran to their end, 5 are needed" in study("simulate", "quickstart", status=2)
    assert overheads(ledger.read(Home(tmp_path).find("quickstart").ledger_file)) is None


def test_variants_of_a_study_that_ran(home: Path, tmp_path: Path) -> None:
    found = simulated(
        "quickstart", "--vary", "search.early_stopping.name=asha,none", "--repeats", "3", "-o", str(tmp_path / "out")
    )
    asha, none = found["variants"]
    assert (asha["words"], none["words"], asha["slots"]) == ("early_stopping asha", "early_stopping none", 2)
    assert none["search"]["epochs"]["mean"] == 24 * EPOCHS > asha["search"]["epochs"]["mean"]
    assert "a model of the 24 trials of quickstart, 24 of which ran to their end" in found["basis"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        f"simulated.{end}" for end in ("png", "pdf", "txt", "json")
    }
    assert "early_stopping asha 2" in (tmp_path / "out" / "simulated.txt").read_text()


def test_what_its_driver_took_besides_is_taken_from_its_ledger(home: Path) -> None:
    seen = overheads(ledger.read(Home(home).find("quickstart").ledger_file))
    assert seen is not None
    assert (seen.slots, seen.ends) == (2, 2.0)
    assert seen.begins == pytest.approx(6.5)
    (one,) = simulated("quickstart", "--repeats", "2")["variants"]
    real = 1 + 5.0 + 2.0 + 12 * (EPOCHS * 2.0 + 0.5)
    assert one["seconds"]["mean"] == pytest.approx(real, rel=0.1)


def test_a_driver_that_only_looked_is_not_what_a_study_takes(home: Path) -> None:
    events = ledger.read(Home(home).find("quickstart").ledger_file)
    opened = next(event for event in events if event["event"] == "opened")
    later = [*events, {**opened, "time": events[-1]["time"] + 60}, {**events[-1], "time": events[-1]["time"] + 61}]
    assert overheads(later) == overheads(events)


def test_recorded_curves_with_their_own_study_and_with_another(home: Path) -> None:
    table = str(home / "table.npz")
    few, more = simulated("--curves", table, "--vary", "slots=2,8", "--repeats", "2", "--set", "search.trials=12")[
        "variants"
    ]
    assert (few["slots"], more["slots"]) == (2, 8)
    assert few["seconds"]["mean"] > 2 * more["seconds"]["mean"]
    given = ("quickstart", "--curves", table, "--set", f"train.epochs={EPOCHS}", "--repeats", "1")
    (one,) = simulated(*given, "--set", "search.trials=5", "--set", "search.sampler=random")["variants"]
    assert one["trials"]["mean"] == 5


def test_no_more_slots_are_told_of_than_the_study_uses() -> None:
    given = ("quickstart", "--vary", "slots=1,4", "--set", "search.concurrency=2", "--repeats", "1")
    assert [one["slots"] for one in simulated(*given)["variants"]] == [1, 2]


def test_nodes_that_are_taken_away_and_cost(home: Path) -> None:
    nodes = "count=2,slots=2,start=30,process=2,preempted=60,straggling=0.3,price=3"
    said = study("simulate", "--curves", str(home / "table.npz"), "--nodes", nodes, "--repeats", "2")
    assert "money" in said
    assert "reports a second in the busiest minute" in said


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "NAME or --curves FILE: is missing"),
        (["nobody"], "nobody: no such study"),
        (["quickstart", "--vary", "search.sampler"], "not of the form KEY=VALUE,VALUE"),
        (["quickstart", "--vary", "slots=1", "--vary", "slots=2"], "slots is given twice"),
        (["quickstart", "--vary", "slots=0"], "allowed are whole numbers from 1 on"),
        (["quickstart", "--set", "search.samplr=tpe"], "samplr"),
        (["quickstart", "--set", "train.epochs=20"], "train.epochs: was changed"),
        (
            ["quickstart", "--set", "search.space.method.lambda={low: 0, high: 5}"],
            "reaches beyond what quickstart searched",
        ),
        (["quickstart", "--nodes", "slot=2"], "allowed is KEY=NUMBER of count, slots"),
        (["quickstart", "--nodes", "slots=0"], "slots 0 given, allowed is at least 1"),
        (["quickstart", "--nodes", "slots=2", "--slots", "2"], "--slots and --nodes: give one of them"),
        (["quickstart", "--slots", "2", "--vary", "slots=2,4"], "--slots and --vary slots"),
    ],
)
def test_what_cannot_be_simulated_is_told(given: list[str], message: str) -> None:
    assert message in study("simulate", *given, status=2)


def test_a_plan_advises_within_a_budget(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_advice, "REPEATS", 2)
    monkeypatch.setattr(advice, "REDUCTIONS", (3,))
    given = ("plan", "quickstart", "--set", f"train.epochs={EPOCHS}", "--simulate", str(home / "table.npz"))
    short = ("--set", "search.early_stopping.grace=1", "--set", "search.sampler=random")
    advised = json.loads(study(*given, *short, "--budget-epochs", "60", "--json"))
    assert advised["choices"]
    assert all(choice["epochs"] <= 60 for choice in advised["choices"])
    assert advised["choices"][0]["assignments"][0].startswith("search.trials=")
    assert "give one of --budget-epochs" in study(*given, status=2)
    assert "needs --price" in study(*given, "--money", "3", status=2)
    assert "go with --simulate" in study("plan", "quickstart", "--deadline", "3", status=2)


def test_nothing_is_advised_on_a_model_that_knows_hardly_more_than_a_mean(home: Path) -> None:
    """Six trials in full, whose order is luck: the advice came from that luck."""
    given = ("search.trials=6", "search.early_stopping={name: none}", "search.sampler=random", "search.baseline=null")
    ran(home, replace(space(*given, "search.space.method.lambda={low: 0.75, high: 1.25}"), name="few"))
    said = study("plan", "quickstart", "--simulate", "few", "--budget-epochs", "60", status=2)
    assert "--simulate few: nothing is advised: 12 trials are needed. curves: a model of the 6 trials of few" in said
    assert "It knows hardly more than their mean" in said
    assert "12 trials or more, or a file of recorded curves" in said


def test_commas_in_brackets_part_no_values() -> None:
    rule = "search.early_stopping={name: asha, grace: 1},{name: none}"
    assert variants([rule, "slots=1,2"]) == [
        [f"search.early_stopping={one}", f"slots={slots}"]
        for one in ("{name: asha, grace: 1}", "{name: none}")
        for slots in (1, 2)
    ]
    assert variants([]) == [[]]
