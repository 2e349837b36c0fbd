"""What a metric's name says: which direction is better, what its numbers are, which data can have it.

A reported name is `SPLIT/NAME`. The name of a further encoder, of a probe, or both stand before a metric's own:
`test/lbfgs_accuracy`, `val/biased_encoder_worst_group_accuracy`.
"""

from typing import TYPE_CHECKING

from study.metrics.table import GROUPS, METRICS, Direction, Metric

if TYPE_CHECKING:
    from study.data.dataset import Facts

__all__ = [
    "GROUPS",
    "METRICS",
    "PHASES",
    "Direction",
    "Metric",
    "available",
    "better",
    "find",
    "is_share",
    "is_standard_error",
    "lower_is_better",
    "searchable",
]

PHASES = ("data", "training", "evaluation")
"""What an epoch's time is divided into: each is reported as `time/PHASE`, the whole as `time/epoch`."""


def find(reported: str) -> Metric | None:
    """The metric that a reported name is or ends with, the longest one; None: it is not in the table."""
    parts = reported.split("/")[-1].split("_")
    ends = ("_".join(parts[start:]) for start in range(len(parts)))
    return next((METRICS[end] for end in ends if end in METRICS), None)


def better(reported: str) -> Direction | None:
    """The direction of a reported metric that is better, as its row of the table says; None: neither, or no row."""
    metric = find(reported)
    return metric.better if metric else None


def lower_is_better(reported: str) -> bool:
    """Return whether the smaller of two values is the better one, where one of them must be taken for it."""
    return better(reported) == "min"


def is_share(reported: str) -> bool:
    """Return whether its numbers are fractions of one, which papers print in percent."""
    metric = find(reported)
    return metric is not None and metric.unit == "share"


def is_standard_error(reported: str) -> bool:
    """Return whether it is the standard error of another metric of the same trial."""
    return find(reported) is METRICS["standard_error"]


def searchable() -> list[str]:
    """The metrics that every epoch has on each split, whatever is trained: what a search can look at."""
    return [name for name, metric in METRICS.items() if metric.source == "predictions"]


def available(facts: "Facts", inferred: bool = False) -> list[str]:
    """Those of them that a split with these facts can have.

    Args:
        inferred: whether groups are inferred, as `train.inferred_groups` says.
    """
    return [name for name in searchable() if METRICS[name].possible(facts) and METRICS[name].of_inferred <= inferred]
