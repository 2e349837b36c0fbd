"""What a metric's name says about its numbers: which direction is better, and whether they are shares of one.

A name is `SPLIT/NAME`, where NAME may have a prefix: `test/lbfgs_accuracy` is an accuracy of a further classifier.
"""

from collections.abc import Iterable
from typing import Literal

from study.errors import UserError, nearest
from study.training.metrics import METRICS

Mode = Literal["max", "min"]

FURTHER: dict[str, Mode] = {
    "loss": "min",
    "condition_mse": "max",  # an attribute that should not be readable (CCL-K paper Table 3)
    "alignment": "min",
    "uniformity": "min",
    "group_similarity": "max",
    "class_similarity": "min",
    "spread": "min",
}
"""Metrics beside those of predictions: what a trial reports of its loss, its features and a continuous attribute."""


def mode(metric: str) -> Mode:
    """Which direction is better, `max` for a metric that is not known."""
    known = _known(metric)
    return METRICS[known].mode if known in METRICS else FURTHER.get(known or "", "max")


def is_share(metric: str) -> bool:
    """Whether its numbers are fractions (accuracies, rates, gaps), which papers print in percent."""
    return _known(metric) in METRICS


def check(metric: str, there: Iterable[str]) -> None:
    """Refuse what is no metric. One that no trial has yet is none to refuse: its cells are empty.

    Raises:
        UserError: the name is neither among those `there` nor one that a trial could report.
    """
    names = list(there)
    if metric not in names and ("/" not in metric or _known(metric) is None):
        raise UserError(f"{metric!r} is no metric. {nearest(metric, names)}There are: {', '.join(names) or 'none yet'}")


def _known(metric: str) -> str | None:
    """The metric that a name is or ends with, the longest one where several fit."""
    name = metric.rsplit("/", 1)[-1]
    fitting = [known for known in (*METRICS, *FURTHER) if name == known or name.endswith(f"_{known}")]
    return max(fitting, key=len, default=None)
