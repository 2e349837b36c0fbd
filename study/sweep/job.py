"""One thing for a worker to do, and what ends all work at once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from study.errors import disk_remedy, of_disk
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
            text += f". {disk_remedy(problem)}" if of_disk(problem) else ""
        super().__init__(text)


class JobPayload(Mapping[str, Any]):
    """The description of a job that a worker gets, see `study.sweep.worker.run_job`.

    No dictionary: those Tune flattens and copies several times for each trial and report, and writes them into messages
    that nobody reads. Its values are not changed, so that a copy is itself.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __deepcopy__(self, memo: Any) -> "JobPayload":
        return self

    def __repr__(self) -> str:
        return f"JobPayload(trial {self._values.get('trial')})"


@dataclass(frozen=True)
class Job:
    """One thing for a worker to do: train a trial, or read the test split with a trained one."""

    kind: Literal["train", "test"]
    trial: TrialRecord

    @property
    def needs_model_file(self) -> bool:
        """Return whether weights are written (confirm, rule, ablation and final trials) or read (tests)."""
        return self.trial.stage in ("confirm", "rule", "ablation", "final")

    def needs_chosen_weights(self, spec: StudySpec) -> bool:
        """Return whether a trial ends with the weights of another epoch than the last: to be written, or for
        `train.final`."""
        return spec.objective.window is not None and (self.needs_model_file or bool(spec.base["train"]["final"]))
