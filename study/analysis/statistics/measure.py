"""Whether a name that a table is asked for is a metric."""

from collections.abc import Iterable

from study import metrics
from study.errors import UserError, nearest


def check(metric: str, there: Iterable[str]) -> None:
    """Refuse what is no metric. One that no trial has yet is none to refuse: its cells are empty.

    Raises:
        UserError: the name is neither among those `there` nor one that a trial could report.
    """
    names = list(there)
    if metric not in names and ("/" not in metric or metrics.find(metric) is None):
        raise UserError(f"{metric!r} is no metric. {nearest(metric, names)}There are: {', '.join(names) or 'none yet'}")
