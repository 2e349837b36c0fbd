"""A configuration of a study as a Python object."""

from dataclasses import dataclass
from typing import Any

from study import ranking
from study.ranking import Candidate, Spread
from study.ranking.selection import trials_of
from study.spec import StudySpec


@dataclass(frozen=True)
class Configuration:
    """A configuration of a study.

    Attributes:
        trial: the number of the trial that tried it in the search.
        params: what was searched, by dotted key.
        metrics: mean, sample standard deviation and count of every validation metric, and of every test metric that was
            read, over `seeds`: those that it was confirmed on, else those of the search.
        seeds: of training.
    """

    trial: int
    params: dict[str, Any]
    metrics: dict[str, Spread]
    seeds: tuple[int, ...]


def configuration(spec: StudySpec, candidate: Candidate | None) -> Configuration | None:
    """What the trials of a candidate say of its configuration; None for none."""
    if candidate is None:
        return None
    trials = trials_of(candidate)
    metrics = ranking.spreads(spec.objective, trials)
    return Configuration(
        candidate.trial.number, dict(candidate.trial.params), metrics, tuple(trial.seed for trial in trials)
    )
