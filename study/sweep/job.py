"""One thing for a worker to do, and what ends all work at once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from study.home.ledger import TakenOver
from study.home.record import TrialRecord
from study.spec import StudySpec


class CannotGoOn(BaseException):
    """The study has to stop at once, through no fault of a trial's; what is in the ledger stays. No Exception, so that
    nothing on the way takes it for a trial's.

    Args:
        problem: the file system's, or that of the lease.
        place: what could not be written, where the problem does not name a file.
    """

    def __init__(self, problem: OSError | TakenOver, place: Path) -> None:
        text = str(problem)
        if isinstance(problem, OSError):
            text = f"{problem.filename or place}: {problem.strerror}"
        super().__init__(text)


@dataclass(frozen=True)
class Job:
    """One thing for a worker to do: train a trial, or read the test split with a trained one."""

    kind: Literal["train", "test"]
    trial: TrialRecord

    @property
    def needs_model_file(self) -> bool:
        """Whether weights are written (confirm, rule, ablation and final trials) or read (tests)."""
        return self.trial.stage in ("confirm", "rule", "ablation", "final")

    def needs_chosen_weights(self, spec: StudySpec) -> bool:
        """Whether a trial ends with the weights of another epoch than the last: to be written, or for `train.final`."""
        return spec.objective.window is not None and (self.needs_model_file or bool(spec.base["train"]["final"]))
