"""The agenda in Ray Tune's terms: a searcher that hands out jobs and a scheduler that hears every result."""

from collections.abc import Mapping
from typing import Any

from ray.tune import Stopper
from ray.tune.experiment import Trial as TuneTrial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher
from ray.tune.stopper import NoopStopper

from study.home import StudyFolder
from study.sweep.agenda import Agenda


class JobSearcher(Searcher):
    """Hands the agenda's jobs to Tune."""

    def __init__(self, agenda: Agenda, folder: StudyFolder) -> None:
        super().__init__()
        self._agenda, self._folder = agenda, folder

    def suggest(self, trial_id: str) -> Any:
        job = self._agenda.next()
        if job is None:
            return None
        if job == "done":
            return str(Searcher.FINISHED)
        model = str(self._folder.model_file(job.trial.number)) if job.needs_model_file else None
        params = {**job.trial.params, "train.seed": job.trial.seed}
        document = self._agenda.spec.trial_document(params)
        return {**params, "job": {"kind": job.kind, "trial": job.trial.number, "model": model, "document": document}}

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        """Nothing: the scheduler hears of every end."""

    def save(self, checkpoint_path: str) -> None:
        """Nothing: the ledger is the memory, Tune's snapshots are never read."""

    def restore(self, checkpoint_path: str) -> None:
        """Nothing: see save."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Searcher, ()  # Tune pickles what it is given; see save


class ReportingScheduler(FIFOScheduler):
    """Tells the agenda every result and every end, and stops what the agenda stops."""

    def __init__(self, agenda: Agenda, folder: StudyFolder) -> None:
        super().__init__()
        self._agenda, self._folder = agenda, folder

    def on_trial_result(self, tune_controller: Any, trial: TuneTrial, result: Mapping[str, Any]) -> str:
        job, agenda = trial.config["job"], self._agenda
        number, record = job["trial"], agenda.record.trials[job["trial"]]
        if agenda.stopping:
            return str(TrialScheduler.STOP)
        metrics = {key.removeprefix("metrics/"): value for key, value in result.items() if key.startswith("metrics/")}
        if job["kind"] == "test":
            agenda.tested(number, metrics)
        elif "diverged" in result and record.state == "running":
            agenda.failed(number, f"diverged: {result['diverged']}")
        elif "epoch" in result:
            return str(
                TrialScheduler.CONTINUE if agenda.reported(number, result["epoch"], metrics) else TrialScheduler.STOP
            )
        elif record.state != "running" and record.ended is None:
            agenda.started(number, result["node"])
        return str(TrialScheduler.CONTINUE)

    def on_trial_complete(self, tune_controller: Any, trial: TuneTrial, result: Mapping[str, Any]) -> None:
        """The trial function returned, or was stopped; the agenda knows why, unless there was no last epoch."""
        job, agenda = trial.config["job"], self._agenda
        if job["kind"] == "train" and agenda.record.trials[job["trial"]].state == "running" and not agenda.stopping:
            agenda.failed(job["trial"], "ended before its last epoch")

    def on_trial_error(self, tune_controller: Any, trial: TuneTrial) -> None:
        """The trial function raised, or its process died."""
        job, text = trial.config["job"], str(trial.get_error() or "its process died")
        self._folder.write_error(job["trial"], text)
        reason = text.strip().splitlines()[-1].strip()
        if self._agenda.stopping:
            return
        if job["kind"] == "train":
            self._agenda.failed(job["trial"], reason)
        else:
            self._agenda.untested(job["trial"], reason)

    def on_trial_remove(self, tune_controller: Any, trial: TuneTrial) -> None:
        """Nothing: a trial is removed only when the study is stopped."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return FIFOScheduler, ()  # see JobSearcher.save


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
        return NoopStopper, ()  # see JobSearcher.save
