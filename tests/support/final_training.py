"""A final training of two short seeds, made without Ray."""

from helpers import quickstart

from study import data
from study.commands.final_training import final_study
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.trained.model_files import write
from study.training import Trial


def train(home: Home) -> StudyFolder:
    """The study `small-final`, trained for real, and written as `study train` does."""
    spec = final_study(quickstart("train.epochs=2", "model.width=8", "search.early_stopping={}"), [3, 4], "small-final")
    found = home.create(spec)
    dataset = data.load(spec.data_sections[0])
    ledger = Ledger(found.ledger_file)
    ledger.append("opened", owner="ada", version="1", data=dataset.fingerprint, libraries={})
    for number, seed in enumerate(spec.final_seeds or ()):
        trial = Trial(spec.trial_config({}, seed), dataset, "cpu")
        ledger.append("trial", trial=number, stage="final", params={}, seed=seed)
        ledger.append("started", trial=number, node="here")
        for epoch, metrics in enumerate(trial.run(), 1):
            ledger.append("report", trial=number, epoch=epoch, metrics=metrics)
        trial.save(found.model_file(number))
        ledger.append("ended", trial=number, state="complete")
        ledger.append("tested", trial=number, metrics=trial.evaluate("test", final=True))
    ledger.append("closed", state="complete")
    ledger.close()
    record = StudyRecord.told(found.ledger_file)
    write(found, spec, record, {data.key(spec.data_sections[0]): dataset})
    return found
