"""A small study that is disturbed and goes on, and what has to hold of it then."""

import json
import random
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from ended import assert_nothing_was_lost
from helpers import computed
from rich.console import Console
from runs import Runs

from study import cli
from study.analysis.figures import FIGURES
from study.api.run_study import build_function_study
from study.commands.progress_view import ProgressView
from study.driver import resume, run
from study.errors import StudyStoppedError, UserError
from study.home.folder import ANOTHER_HOME_REMEDY, Home

NAME = "disk"
VIEW = ProgressView(Console(file=StringIO()), quiet=True)


def train(config: dict[str, Any], seed: int, epochs: int, checkpoint: Path) -> Iterator[dict[str, float]]:
    """Nears a value, with a state of 40 kB."""
    file = checkpoint / "state"
    done = json.loads(file.read_text())["epoch"] if file.exists() else 0
    for epoch in range(done + 1, epochs + 1):
        luck = random.Random(f"{config['x']} {seed} {epoch}").gauss(0, 0.01)
        file.write_text(json.dumps({"epoch": epoch, "rest": "x" * 40_000}))
        value = (0.9 - (config["x"] - 0.7) ** 2) * (1 - 0.5**epoch) + luck
        yield {"val/accuracy": value, "test/accuracy": value - 0.02}


def few_figures() -> None:
    """Leave two kinds of figure to this process: drawing them is most of what such a study costs."""
    for name in list(FIGURES)[2:]:
        del FIGURES[name]


def study(home: Home) -> str:
    """Start it, or go on with it; what came of it: `complete`, `MLflow`, or the message that a user gets."""
    given: dict[str, Any] = {"name": NAME, "space": {"x": (0.0, 1.0)}, "baseline": {"x": 0.1}}
    given |= {"metric": "val/accuracy", "maximize": None, "epochs": 3, "fixed": {}}
    changes = ["search.trials=5", "search.sampler=random", "search.confirm={top: 1, seeds: 2}"]
    changes += ["search.early_stopping={name: asha, grace: 1, reduction: 2}", "search.concurrency=1"]
    try:
        spec, function = build_function_study(train, assignments=changes, **given)
        there = [folder.name for folder in home.list_studies()]
        end = resume.resume_study(home, NAME, VIEW) if there else run.run_new_study(home, spec, VIEW, function=function)
    except UserError as error:
        if "there is nothing to go on with" in str(error):
            return "complete"
        if ANOTHER_HOME_REMEDY not in str(error):
            raise
        return str(error)
    except Exception as error:
        expected = cli._as_expected_error(error)
        if not isinstance(expected, StudyStoppedError) or "\n" in str(expected):
            raise
        return str(expected)
    assert end.record.state == "complete", end.record.state
    return "MLflow" if end.untracked_reason else "complete"


def check(home: Home, told: str, expected: list[dict[str, Any]]) -> None:
    """What was `told` of the study leads on; it goes on, and ends as one that was not disturbed: in the ledger, in
    MLflow, and has its files.

    Args:
        expected: `computed` of the undisturbed one.
    """
    leads_on = ("resume", "type the same command again", ANOTHER_HOME_REMEDY)
    assert told in ("complete", "MLflow") or any(way in told for way in leads_on), told
    if told != "complete":
        again = study(home)
        assert again == "complete", again
    folder = home.find_study(NAME)
    record = assert_nothing_was_lost(folder)
    assert computed(record) == expected, "another result"
    Runs(home.tracking_uri, NAME).agree_with(record)
    assert (folder.report_folder / "report.html").is_file()
    assert folder.best_file.is_file()
