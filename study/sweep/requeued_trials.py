"""Trials that were cut off, by a lost node, a killed process or the end of a driver: they are queued, and run again."""

from collections import deque

from study.home import events
from study.home.events import ENDED_STATES
from study.home.record import StudyRecord, TrialRecord
from study.spec import StudySpec
from study.sweep.failures import TrialFailure


class RequeuedTrials:
    """The trials that are to run again, in their order; at first those that an earlier driver left unfinished.

    Args:
        spec: the study.
        record: what its ledger says so far.
    """

    def __init__(self, spec: StudySpec, record: StudyRecord) -> None:
        self._spec = spec
        self._queue = deque(
            trial
            for trial in record.trials.values()
            if trial.state not in ENDED_STATES or (trial.stage == "final" and trial.state == "failed")
        )

    def requeue(self, trial: TrialRecord, failure: TrialFailure) -> events.RunLost | None:
        """Queue a trial that was cut off again, and return the event for the ledger; None: it may not run again."""
        if not failure.may_run_again(trial, self._spec, before=trial.n_retries_used):
            return None
        self._queue.append(trial)
        alone, node_died = failure.needs_whole_gpu or None, failure.node_died or None
        return events.RunLost(trial.number, trial.attempt + 1, failure.kind, failure.reason, alone, node_died)

    def take_next(self, alone: bool) -> TrialRecord | None:
        """Take a trial that is to run again out of the queue; None: there is none.

        One that needs a GPU to itself comes after the rest of the search: as long as shares of a GPU are handed out, it
        would wait for ever.

        Args:
            alone: whether one that needs a GPU to itself.
        """
        for trial in list(self._queue):
            if trial.needs_gpu_alone == alone:
                self._queue.remove(trial)
                if trial.state not in ENDED_STATES or trial.stage == "final":
                    return trial
        return None
