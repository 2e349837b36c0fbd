"""The cost of a search's trials, and what it would have been in full; no tables, so that it is told at once."""

from dataclasses import dataclass

from study.analysis.statistics import formatting
from study.home.events import Stage
from study.home.record import TrialRecord
from study.ranking import Results
from study.spec import StudySpec

SEARCH_STAGES: tuple[Stage, ...] = ("baseline", "search", "replicate")
"""Stages of the search itself; what came after it is not its cost."""


@dataclass(frozen=True)
class Spent:
    """The cost of some trials.

    Attributes:
        epochs, full_epochs: that they ran, and would have run.
        saved: what was not run, as a fraction of what would have been; nan where there is no trial.
        seconds, full_seconds: the same, where an epoch not run is taken to cost what the trial's own epochs did.
    """

    trials: int
    epochs: int
    full_epochs: int
    saved: float
    seconds: float
    full_seconds: float


def spent(results: Results) -> dict[str, Spent]:
    """By state, `complete` and `pruned` (stopped early), and of `all` of these; of the search and the baseline.

    Failed trials are left out: nobody chose to stop them.
    """
    trials = [trial for trial in results.record.by_stage(*SEARCH_STAGES) if trial.state in ("complete", "pruned")]
    states = {name: [trial for trial in trials if trial.state == name] for name in ("complete", "pruned")}
    return {name: _spent(results.spec, chosen) for name, chosen in {**states, "all": trials}.items()}


def sentence(results: Results) -> str | None:
    """Return what early stopping saved; None where no trial was pruned."""
    cost = spent(results)
    whole, stopped = cost["all"], cost["pruned"].trials
    if not stopped or not whole.full_epochs:
        return None
    return (
        f"{results.spec.search.early_stopping.name} pruned {formatting.count(stopped, 'trial')} and saved "
        f"{100 * whole.saved:.0f}% of the search's epochs, about "
        f"{formatting.duration(whole.full_seconds - whole.seconds)} of trial time."
    )


def seconds(trial: TrialRecord) -> float:
    """The time of a trial's last run and of those before it was extended, 0 where it has not ended."""
    return trial.seconds or 0.0


def _spent(spec: StudySpec, trials: list[TrialRecord]) -> Spent:
    epochs, full = sum(trial.epochs for trial in trials), spec.epochs * len(trials)
    whole = sum(seconds(trial) * spec.epochs / trial.epochs for trial in trials if trial.epochs)
    saved = 1 - epochs / full if full else float("nan")
    return Spent(len(trials), epochs, full, saved, sum(map(seconds, trials)), whole)
