"""A small study with everything in its ledger that MLflow hears of."""

import shutil
from pathlib import Path

from helpers import quickstart

from study import data
from study.home.events import (
    EpochReported,
    RunLost,
    SearchExtended,
    SessionClosed,
    SessionOpened,
    TrialDecided,
    TrialEnded,
    TrialStarted,
    TrialTested,
)
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger

SPEC = quickstart("train.epochs=2", "search.early_stopping.grace=1", "search.replicates=2")
PARAMS = dict(SPEC.search.baseline or {})
SESSION = {"version": "1", "libraries": {"torch": "2"}, "commit": "abc", "dirty": False, "data": "d", "node": "here"}
INVENTORY = {"title": "digits", "digest": "d", "shape": [3, 8, 8], "rows": {"train": 9, "val": 3}, "sources": []}
SESSION |= {"owner": "ada", "datasets": {data.section_key(SPEC.trial_data_sections[0]): INVENTORY}}

STATUS = {
    "quickstart": "FINISHED",
    "trial 0, seed 0": "FINISHED",
    "trial 0, seed 1": "FINISHED",
    "trial 2, seed 0": "KILLED",
    "trial 3, seed 0": "FAILED",
    "trial 4, seed 0": "FINISHED",
    "best: trial 0": "FINISHED",
}
"""How its runs end."""


def make_home(path: Path, database: Path) -> Home:
    """A home with a copy of a database."""
    home = Home(path)
    home.path.mkdir()
    shutil.copy(database, home.database_file)
    return home


def make_study(home: Home) -> StudyFolder:
    """A configuration on two seeds, a pruned trial, one that is lost once and then fails, and one that is cut
    off by a stop and then runs again to its end."""
    folder = home.create_study(SPEC)
    ledger = Ledger(folder.ledger_file)
    ledger.append(SessionOpened(**SESSION))
    for trial, repeats in ((0, None), (1, 0), (2, None), (3, None), (4, None)):
        stage = "search" if repeats is None else "replicate"
        ledger.append(
            TrialDecided(trial=trial, stage=stage, params=PARAMS, seed=int(repeats is not None), repeats=repeats)
        )
        ledger.append(TrialStarted(trial=trial, node=f"node:{trial}"))
        ledger.append(EpochReported(trial=trial, epoch=1, metrics={"val/accuracy": 0.1, "train/loss": None}))
    for trial in (0, 1):
        ledger.append(
            EpochReported(trial=trial, epoch=2, metrics={"val/accuracy": 0.2 + 0.2 * trial, "train/loss": 1.0})
        )
        ledger.append(TrialEnded(trial=trial, state="complete"))
    ledger.append(TrialEnded(trial=2, state="pruned", reason="asha"))
    ledger.append(RunLost(trial=3, kind="PREEMPTED", reason="its process died", attempt=1))
    ledger.append(TrialStarted(trial=3, node="node:3"))
    ledger.append(TrialEnded(trial=3, state="failed", reason="ValueError: no", kind="BUG"))
    ledger.append(SessionClosed(state="interrupted"))
    ledger.append(SearchExtended(trials=30))
    append_second_session(ledger)
    ledger.close()
    return folder


def append_second_session(ledger: Ledger, owner: str = "ada") -> None:
    """The session in which the trial that was cut off runs to its end, and the study with it."""
    ledger.append(SessionOpened(**SESSION | {"owner": owner}))
    ledger.append(TrialStarted(trial=4, node="there:4"))
    for epoch in (1, 2):
        ledger.append(EpochReported(trial=4, epoch=epoch, metrics={"val/accuracy": 0.1 * epoch, "train/loss": 1.0}))
    ledger.append(TrialEnded(trial=4, state="complete"))
    ledger.append(TrialTested(trial=4, metrics={"test/accuracy": 0.3}))
    ledger.append(SessionClosed(state="complete"))
