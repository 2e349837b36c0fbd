"""The cost of a search's trials, and what it would have been in full; no tables, so that it is told at once."""

from dataclasses import dataclass

from study.analysis.statistics import formatting
from study.home.events import Stage
from study.home.record import TrialRecord
from study.ranking import Results
from study.ranking.documents import Statement
from study.spec import StudySpec
from study.text import counted

SEARCH_STAGES: tuple[Stage, ...] = ("baseline", "search", "replicate")
"""Stages of the search itself; what came after it is not its cost."""


@dataclass(frozen=True)
class Spent:
    """The cost of some trials.

    Attributes:
        epochs, full_epochs: that they ran, and would have run.
        saved: share of the full epochs that was not run; nan where there is no trial.
        seconds, full_seconds: that they took, and would have taken if each further epoch cost what the trial's own did.
    """

    trials: int
    epochs: int
    full_epochs: int
    saved: float
    seconds: float
    full_seconds: float


def spent(results: Results) -> dict[str, Spent]:
    """Compute the cost of the search and the baseline for `complete` and `pruned` trials, and for `all` of these.

    Failed trials are left out: nobody chose to stop them.
    """
    trials = [trial for trial in results.record.by_stage(*SEARCH_STAGES) if trial.state in ("complete", "pruned")]
    states = {name: [trial for trial in trials if trial.state == name] for name in ("complete", "pruned")}
    return {name: _spent(results.spec, chosen) for name, chosen in {**states, "all": trials}.items()}


class Saved(Statement):
    """What early stopping by a rule saved.

    Attributes:
        pruned: number of trials.
        share: of the search's epochs.
        seconds: of trial time.
    """

    rule: str
    pruned: int
    share: float
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.rule} pruned {counted(self.pruned, 'trial')} and saved {100 * self.share:.0f}% of the "
            f"search's epochs, about {formatting.duration(self.seconds)} of trial time."
        )


def saved(results: Results) -> Saved | None:
    """Return what early stopping saved; None where no trial was pruned."""
    cost, rule = spent(results), results.spec.search.early_stopping.name
    whole, pruned = cost["all"], cost["pruned"].trials
    return (
        Saved(rule, pruned, whole.saved, whole.full_seconds - whole.seconds) if pruned and whole.full_epochs else None
    )


def seconds(trial: TrialRecord) -> float:
    """Return the seconds of a trial's last run and of those before it was extended, 0 where it has not ended."""
    return trial.seconds or 0.0


def _spent(spec: StudySpec, trials: list[TrialRecord]) -> Spent:
    epochs, full = sum(trial.epochs for trial in trials), spec.epochs * len(trials)
    whole = sum(seconds(trial) * spec.epochs / trial.epochs for trial in trials if trial.epochs)
    saved = 1 - epochs / full if full else float("nan")
    return Spent(len(trials), epochs, full, saved, sum(map(seconds, trials)), whole)
