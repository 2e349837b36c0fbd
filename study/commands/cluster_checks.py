"""What a cluster elsewhere would refuse, refused here before a job is submitted: by the study as it is read there."""

from collections.abc import Iterable
from typing import Any

from study.cluster.jobs import Jobs
from study.commands import ablation, extension, final_training, longer
from study.commands import placement as placing
from study.commands.elsewhere import Elsewhere
from study.home.folder import StudyFolder
from study.home.record import StudyRecord
from study.spec import StudySpec


def more_trials(jobs: Jobs, name: str, trials: str) -> None:
    """That a search can try more; raises as `study.commands.extension.check_trials`."""
    extension.check_trials(_folder(jobs, name).spec(), trials)


def failures(jobs: Jobs, name: str) -> None:
    """That there is something that failed; raises as `study.commands.extension.failed_again`."""
    extension.failures(_folder(jobs, name))


def more_seeds(jobs: Jobs, name: str, top: int | None, seeds: int | None, rules: bool) -> None:
    """That there is something to confirm; raises as `study.commands.extension.more_seeds`."""
    folder = _folder(jobs, name)
    record, extended = StudyRecord.load(folder.ledger_file), StudyRecord.load(folder.ledger_file)
    extension.seeds_asked(record, extended, folder.spec(), top, seeds, rules)


def ablation_plan(jobs: Jobs, name: str, request: ablation.Request) -> dict[str, Any]:
    """What an ablation would run; raises as `study.commands.ablation.planned`."""
    return ablation.plan_of(_folder(jobs, name), request)


def more_epochs(jobs: Jobs, name: str, request: longer.Request) -> None:
    """That there is something to extend; raises as `study.commands.longer.planned`."""
    longer.plan_of(_folder(jobs, name), request)


def placement(jobs: Jobs, name: str, assignments: Iterable[str]) -> None:
    """That these may change; raises as `study.commands.placement.placement`."""
    folder = _folder(jobs, name)
    placing.placement(folder, StudyRecord.load(folder.ledger_file), assignments)


def training(jobs: Jobs, final: StudySpec) -> None:
    """That a training's name is free, or of the same configuration.

    Raises:
        UserError: it is not, or it runs.
    """
    if drivers := jobs.of(final.name):
        jobs.idle(drivers[-1])
        if drivers[-1].state == "succeeded":
            final_training.trained_seeds(_folder(jobs, final.name).spec(), final, jobs.address)


def _folder(jobs: Jobs, name: str) -> StudyFolder:
    return Elsewhere(jobs.address).home([name]).find(name)
