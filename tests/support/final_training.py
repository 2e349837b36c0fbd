"""A final training of two short seeds, made without Ray."""

from pathlib import Path

from helpers import quickstart

from study import data
from study.commands.final_training import final_training_spec
from study.home.events import (
    EpochReported,
    SessionClosed,
    SessionOpened,
    TrialDecided,
    TrialEnded,
    TrialStarted,
    TrialTested,
)
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.ranking import Results
from study.spec import StudySpec, load_study
from study.sweep.ensemble_metrics import measure_ensemble
from study.trained.model_files import write_descriptions_and_card
from study.training import ensemble_probabilities
from study.training.trial import Trial

TABLE = """
name: people
data: {name: table, path: PATH, target: repaid, bias: sex, missing: fill}
model: {name: mlp, width: 8}
method: {name: cross_entropy}
train: {epochs: 3, batch_size: 16, learning_rate: 0.01}
search: {trials: 1, metric: val/accuracy}
"""
"""A study of the table at PATH."""


def people(path: Path, count: int = 120) -> Path:
    """A table of numbers, with gaps, and words."""
    lines = ["income,job,owner,repaid,sex"]
    for n in range(count):
        job, owner = ("nurse", "cook", "clerk")[n % 3], ("true", "false")[n // 4 % 2]
        income = "" if n % 17 == 5 else f"{1000 + 37 * (n % 11) + 900 * (n % 2)}.{n % 7}"
        lines.append(f"{income},{job},{owner},{('no', 'yes')[n % 2]},{'fm'[n // 2 % 2]}")
    path.write_text("\n".join(lines) + "\n")
    return path


def train_table(home: Home, path: Path, *changes: str, with_val: bool = False) -> StudyFolder:
    """The study `people-final` of the table at this path.

    Args:
        changes: as of `--set`.
        with_val: as `--data train+val`.
    """
    file = path.with_name("people.yaml")
    file.write_text(TABLE.replace("PATH", str(path)))
    spec = load_study(str(file), changes)
    return train_study(home, final_training_spec(spec, [3, 4], "people-final", with_val))


def train(home: Home) -> StudyFolder:
    """The study `small-final`, trained for real, and written as `study train` does."""
    settings = ("train.epochs=2", "model.width=8", "search.early_stopping={}")
    return train_study(home, final_training_spec(quickstart(*settings), [3, 4], "small-final"))


def train_study(home: Home, spec: StudySpec) -> StudyFolder:
    """A final training, as `study train` does it."""
    found = home.create_study(spec)
    dataset = data.load(spec.trial_data_sections[0])
    ledger = Ledger(found.ledger_file)
    begun = {"weights": spec.initial_weight_files} if spec.initial_weight_files else {}
    ledger.append(SessionOpened(owner="ada", version="1", data=dataset.fingerprint, libraries={}, **begun))
    for number, seed in enumerate(spec.final_seeds or ()):
        trial = Trial(spec.trial_config({}, seed), dataset, "cpu")
        ledger.append(TrialDecided(trial=number, stage="final", params={}, seed=seed))
        ledger.append(TrialStarted(trial=number, node="here"))
        for epoch, metrics in enumerate(trial.train_epochs(), 1):
            ledger.append(EpochReported(trial=number, epoch=epoch, metrics=metrics))
        trial.save_model(found.model_file(number))
        for split in {"val", "test"} & trial.dataset.splits.keys():
            told = ensemble_probabilities.log_probabilities_file(found.model_file(number), split)
            groups = trial.inferred_groups_by_split.get(split)
            ensemble_probabilities.write_log_probabilities(told, trial.evaluate.log_probabilities(split), groups)
        ledger.append(TrialEnded(trial=number, state="complete"))
        if "test" in trial.dataset.splits:
            ledger.append(TrialTested(trial=number, metrics=trial.evaluate("test", final=True)))
    so_far = StudyRecord.load_without_closing(found.ledger_file)
    if measured := measure_ensemble(found, spec, dataset, so_far) if spec.makes_ensemble else None:
        ledger.append(measured)
    ledger.append(SessionClosed(state="complete"))
    ledger.close()
    record = StudyRecord.load_without_closing(found.ledger_file)
    write_descriptions_and_card(found, Results(spec, record), {data.section_key(spec.trial_data_sections[0]): dataset})
    return found
