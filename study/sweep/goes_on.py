"""What a trial in a worker goes on from, and which epoch's weights it ends with."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from study.training import FunctionTrial, Trial, Unusable

if TYPE_CHECKING:
    from study.ranking.epochs import EpochChoice


def choice(goal: str | None) -> "EpochChoice | None":
    """What chooses a trial's epoch by an objective, given as JSON; None: the last epoch is taken."""
    if goal is None:
        return None
    from study.ranking.epochs import EpochChoice  # tenths of a second, which most studies have no use for
    from study.spec.objective import Objective

    return EpochChoice(Objective.from_document(json.loads(goal)))


def goes_on_behind(trial: Trial | FunctionTrial, checkpoint: Path, heard: int) -> tuple[int, str | None]:
    """The epoch behind which the trial goes on; where the file is of no use it is removed, and why is said."""
    try:
        epoch, note = trial.epochs_in(checkpoint), None
    except Unusable as unusable:
        epoch, note = 0, str(unusable)
    if epoch > heard:
        epoch, note = 0, f"{checkpoint}: is of epoch {epoch}, the study knows of {heard}"
    if note:
        checkpoint.unlink()
    return epoch, note
