"""What ends Tune's run, and what it prints: nothing."""

from typing import Any

from ray.tune import ProgressReporter, Stopper
from ray.tune.experiment import Trial as TuneTrial
from ray.tune.stopper import NoopStopper

from study.sweep.agenda import Agenda


class StudyOver(BaseException):
    """Leaves Tune's loop. No Exception, because Tune would then clean up first, and wait for each actor to end by
    itself; shutting Ray down ends them at once."""


class AgendaStopper(Stopper):
    """Ends Tune's run when the agenda is over.

    Raises:
        StudyOver: it is.
    """

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        return False

    def stop_all(self) -> bool:
        if self._agenda.is_over:
            raise StudyOver
        return False

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return NoopStopper, ()  # see `study.sweep.adapters.JobSearcher.save`


class NoReports(ProgressReporter):
    """Has Tune show nothing: in a notebook its own reporter clears the cell's output, whatever its verbosity."""

    def should_report(self, trials: list[TuneTrial], done: bool = False) -> bool:
        return False
