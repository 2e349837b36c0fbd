"""What must hold of a real study that came to its end, whatever happened to it: nothing is lost, nothing is double."""

from collections import Counter

from helpers import timeless

from study import data
from study.files import unfinished_files
from study.home.folder import StudyFolder
from study.home.ledger import read_entries
from study.home.ledger_line import Entry
from study.home.record import StudyRecord
from study.training.trial import Trial


def assert_nothing_was_lost(folder: StudyFolder) -> StudyRecord:
    """It is complete; no trial was decided on or ended twice, or ran after its end; each began where it had been heard
    or before, and told each epoch from there once; no checkpoint is left but those behind a last epoch.

    Returns:
        The record.
    """
    heard: Counter[int] = Counter()
    decided, ended = set(), set()
    for event in read_entries(folder.ledger_file):
        number = event.get("trial")
        if event["event"] == "trial":
            assert number not in decided
            decided.add(number)
        elif event["event"] == "started":
            assert number not in ended
            assert event["epoch"] <= heard[number]
            heard[number] = event["epoch"]
        elif event["event"] == "report":
            heard[number] += 1
            assert event["epoch"] == heard[number]
        elif event["event"] == "ended":
            assert number not in ended
            ended.add(number)
    record = StudyRecord.load(folder.ledger_file)
    assert record.state == "complete"
    assert ended == decided == set(record.trials)
    left = [*folder.checkpoints_folder.glob("*")]
    assert not [*left, *unfinished_files(folder.models_folder)]
    return record


def assert_as_alone(folder: StudyFolder, most: int = 3) -> None:
    """The trials that were lost most often have the metrics that they have when they are run here, undisturbed."""
    spec, record = folder.load_spec(), StudyRecord.load(folder.ledger_file)
    dataset = data.load(spec.base["data"])
    for trial in sorted(record.trials.values(), key=lambda trial: -trial.attempt)[:most]:
        alone = Trial(spec.trial_config(trial.params, trial.seed), dataset, "cpu")
        assert timeless(alone.train_epochs()) == [
            {name: value for name, value in report.items() if name != "epoch"} for report in timeless(trial.reports)
        ]


def lost(folder: StudyFolder) -> list[Entry]:
    """Each run of a trial that was lost, and why."""
    return [event for event in read_entries(folder.ledger_file) if event["event"] == "lost"]
