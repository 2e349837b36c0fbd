"""Which configuration is best, and by which rule; see `study.ranking.results`."""

from study.ranking.candidates import (
    NORMAL_DEGREES_OF_FREEDOM,
    RELATIVE_TOLERANCE,
    Candidate,
    FittedReference,
    SeedStatistics,
    mean_score,
    seed_statistics,
    statistics_by_metric,
)
from study.ranking.results import Results, cached_per_results

__all__ = [
    "NORMAL_DEGREES_OF_FREEDOM",
    "RELATIVE_TOLERANCE",
    "Candidate",
    "FittedReference",
    "Results",
    "SeedStatistics",
    "cached_per_results",
    "mean_score",
    "seed_statistics",
    "statistics_by_metric",
]
