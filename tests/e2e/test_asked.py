"""A study that runs for real, and is asked things meanwhile.

A trial lasts longer than a command takes to start on a busy machine.
"""

from collections.abc import Callable

import pytest
from command import Command

from study.home.record import StudyRecord

PARAMS = {"method.alpha": 0.5, "method.lambda": 1.25, "method.epsilon": 0.25}


@pytest.mark.slow
def test_a_study_does_what_it_is_asked_while_it_runs(make_command: Callable[[], Command]) -> None:
    study = make_command()
    settings = ("train.epochs=120", "search.trials=20", "search.early_stopping={}")
    settings += ("search.confirm={top: 0}",)
    changes = (word for one in settings for word in ("--set", one))
    driver = study.start("run", "tiny.yaml", *changes, SABOTAGE='{"slow": 0.15}')
    study.wait_for("tiny", lambda record: len(record.trials) > 1 and record.trials[1].n_epochs > 0)
    assert (
        "tries this configuration next"
        in study("enqueue", "tiny", *(f"{key}={value}" for key, value in PARAMS.items())).stdout
    )
    assert study("stop", "tiny", "--trial", "1").stdout == "tiny: trial 1 ends at its next report\n"
    study.wait_for("tiny", lambda record: len(record.trials) > 2 and record.trials[2].n_epochs > 0)
    for words in (("--trial", "2"), ("--search",)):
        study("stop", "tiny", *words)
    out, err = driver.communicate(timeout=240)
    assert (driver.returncode, err) == (0, ""), out
    record = StudyRecord.load(study.folder("tiny").ledger_file)
    assert record.trials[2].params == PARAMS
    for number in (1, 2):
        assert (record.trials[number].state, record.trials[number].reason) == ("pruned", "a user")
    assert (record.state, record.search_ended_by) == ("complete", "a user")
    assert len(list(record.trials_of_stages("search"))) <= 4
    assert (study.folder("tiny").report_folder / "report.html").is_file()
    assert "a user ended it" in (study.folder("tiny").report_folder / "report.md").read_text()
