"""Which configuration is best, and by which rule; see `study.ranking.results`."""

from study.ranking.candidates import (
    NOISE,
    NORMAL_DEGREES_OF_FREEDOM,
    Candidate,
    Reference,
    SeedStatistics,
    mean_score,
    spread,
    spreads,
)
from study.ranking.results import Results, once

__all__ = [
    "NOISE",
    "NORMAL_DEGREES_OF_FREEDOM",
    "Candidate",
    "Reference",
    "Results",
    "SeedStatistics",
    "mean_score",
    "once",
    "spread",
    "spreads",
]
