"""What a user types to measure the steps from the baseline to the best, and what is answered."""

import json
from pathlib import Path

import pytest
from ablated_study import PARAMS
from helpers import Told, append_event, quickstart, write_ledger
from typer.testing import CliRunner

from study import cli
from study.home.events import AblationRequested, EpochReported, TrialDecided, TrialEnded, TrialStarted, TrialTested
from study.home.folder import Home
from study.home.ledger import Ledger
from study.ranking.ablation_steps import ablation_configurations, params_after_steps

SPEC = quickstart("search.early_stopping={}", "search.confirm={top: 1, seeds: 2}")
STEPS = [(key,) for key in PARAMS]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """With a study at its end, whose best is better than the baseline."""
    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    home = Home.locate()
    folder = home.create_study(SPEC)
    start = dict(SPEC.search.baseline or {})
    trials = [Told("baseline", [0.5], params=start), Told("search", [0.7], params=PARAMS)]
    trials += [Told("confirm", [0.5 + seed / 100], params=start, seed=seed, repeats=0) for seed in (1, 2)]
    trials += [Told("confirm", [0.7 + seed / 50], params=PARAMS, seed=seed, repeats=1) for seed in (1, 2)]
    write_ledger(folder.ledger_file, *trials)
    closed(folder.ledger_file)
    return home


def closed(path: Path) -> None:
    append_event(path, "closed", state="complete")


def measured(home: Home) -> None:
    """Write what the workers would have: every trial of the ablation, and the test split read for all."""
    folder, start = home.find_study("quickstart"), dict(SPEC.search.baseline or {})
    ledger = Ledger(folder.ledger_file)
    ledger.append(AblationRequested(trial=1, steps=[list(step) for step in STEPS], first=1, seeds=2))
    number = 6
    for moved in ablation_configurations(3):
        for seed in (1, 2) if 0 < len(moved) < 3 else ():
            params = params_after_steps(SPEC, start, PARAMS, [STEPS[place] for place in sorted(moved)])
            value = 0.5 + 0.06 * len(moved) + seed / 70
            ledger.append(TrialDecided(trial=number, stage="ablation", params=params, seed=seed))
            ledger.append(TrialStarted(trial=number, node="here"))
            ledger.append(EpochReported(trial=number, epoch=1, metrics={"val/accuracy": value}))
            ledger.append(TrialEnded(trial=number, state="complete"))
            number += 1
    for trial in range(2, number):
        ledger.append(TrialTested(trial=trial, metrics={"test/accuracy": 0.4}))
    ledger.close()
    closed(folder.ledger_file)


def typed(*arguments: str) -> str:
    done = CliRunner().invoke(cli.app, ["ablate", "quickstart", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_a_dry_run_says_what_would_run_and_starts_nothing(home: Home) -> None:
    before = home.find_study("quickstart").ledger_file.read_bytes()
    text = typed("--dry-run", "--order", "method.lambda, method.alpha", "--seeds", "3")
    assert text.splitlines() == [
        "ablation of quickstart: from trial 0 (baseline) to trial 1 in 3 steps, in the order of --order",
        "  method.lambda 0 -> 1.5",
        "  method.alpha 1 -> 0.01",
        "  method.epsilon 0 -> 0.25",
        "8 configurations on 3 seeds (1, 2, 3): 24 trials, 4 of them are there, 20 to run (400 epochs)",
    ]
    document = json.loads(typed("--dry-run", "--json"))
    assert document["steps"][0] == {"method.alpha": [1.0, 0.01]}
    assert (document["seeds"], document["trials"], document["to_run"]) == ([1, 2], 16, 12)
    assert home.find_study("quickstart").ledger_file.read_bytes() == before


def test_once_it_has_run_it_is_shown_and_nothing_runs(home: Home) -> None:
    measured(home)
    before = home.find_study("quickstart").ledger_file.read_bytes()
    text = typed()
    assert "16 trials, 16 of them are there, 0 to run (0 epochs)" in text
    assert "| in all | best against the baseline | - | +21.5 points" in text
    document = json.loads(typed("--json"))
    assert document["is_measured"]
    assert document["steps"] == [list(step) for step in STEPS]
    parts = [line["part"] for line in document["effects"] if line["metric"] == "val/accuracy"]
    assert parts == ["path"] * 4 + ["gain"] + ["adding"] * 3 + ["removing"] * 3 + ["interaction"] * 3
    assert home.find_study("quickstart").ledger_file.read_bytes() == before
