"""Which metrics a split can have at all, by how many samples its cells of class and bias class have.

A gap between groups is one of a class: equalized odds (FSCL paper Eq. 6) compares the groups of every class, equal
opportunity those of the positive class, class 1. A class of which fewer than two groups have samples compares nothing.
"""

from collections.abc import Sequence

from study.metrics.table import GROUPS

Cell = tuple[int | None, int | None]
"""A class and a bias class; None: any."""

OF_ALL_SAMPLES = ("demographic_parity", "accuracy_parity")
OF_CELLS = ("unbiased_accuracy", "worst_group_accuracy")


def lacking(metric: str, classes: Sequence[int], cells: Sequence[Sequence[int]] | None) -> list[Cell]:
    """The empty cells that keep a metric from having a value on a split; none where it has one.

    Args:
        metric: its name in `METRICS`. Those of features and of inferred groups lack nothing.
        classes: samples of each class.
        cells: samples of each class with each bias class; None without bias labels.
    """
    if metric == "auc":
        return [(y, None) for y, count in enumerate(classes) if not count]
    if not cells:
        return []
    table = {(y, s): count for y, row in enumerate(cells) for s, count in enumerate(row)}
    if metric == "equalized_odds":
        return [cell for y, row in enumerate(cells) for cell in _alone(y, row)]
    if metric == "equal_opportunity":
        return _alone(1, cells[1])
    if metric in OF_ALL_SAMPLES:
        return [(None, s) for _, s in _alone(0, [sum(column) for column in zip(*cells, strict=True)])]
    if metric in GROUPS:
        wanted = [GROUPS[metric]]
    elif metric in OF_CELLS:
        wanted = list(table)
    elif metric in ("aligned_accuracy", "conflicting_accuracy"):
        wanted = [(y, s) for y, s in table if (y == s) == (metric == "aligned_accuracy")]
    else:
        return []
    return [] if any(table.get(cell) for cell in wanted) else list[Cell](wanted)


def _alone(of_class: int, row: Sequence[int]) -> list[Cell]:
    """The empty cells of a class of which no two groups can be compared."""
    if sum(count > 0 for count in row) >= 2:
        return []
    return [(of_class, s) for s, count in enumerate(row) if not count]
