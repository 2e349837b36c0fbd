"""Which configuration of a study is best, and by which rule."""

from study.ranking.order import (
    Candidate,
    Spread,
    baseline,
    best,
    candidates,
    confirm,
    confirm_seeds,
    front,
    is_confirmed,
    mean_score,
    ranked,
    ranked_once,
    searched,
    spread,
    spreads,
    to_confirm,
)

__all__ = [
    "Candidate",
    "Spread",
    "baseline",
    "best",
    "candidates",
    "confirm",
    "confirm_seeds",
    "front",
    "is_confirmed",
    "mean_score",
    "ranked",
    "ranked_once",
    "searched",
    "spread",
    "spreads",
    "to_confirm",
]
