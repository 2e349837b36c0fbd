"""Standard errors of metrics on the cells of a split, by simulation."""

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

DRAWS = 400
"""Simulated splits: the standard error itself is then known to within 4%."""


@cache
def simulated(
    names: tuple[str, ...], counts: tuple[tuple[int, ...], ...], has_bias: bool, accuracy: float
) -> dict[str, dict[str, float] | None]:
    """What metrics are of a model that is right with one probability in each cell, over `DRAWS` splits of these cells.

    Wrong outputs are equally frequent.

    Args:
        names: of the metrics, those of counts alone.
        counts: samples of each (class, bias class) cell, (Y, S); of each class, (Y, 1), without bias labels.
        has_bias: which of the two.
        accuracy: that probability.

    Returns:
        By metric: its `expected` value and `standard_error`, and `ties`, the probability that two such models get the
        same value; None where the split does not have it.
    """
    import numpy as np
    import torch

    from study.training.counts import Counts
    from study.training.metrics import COMPUTED, Outcome

    classes = len(counts)
    right = np.eye(classes, dtype=bool)
    outputs = np.where(right, accuracy, (1 - accuracy) / (classes - 1))[:, None]
    unknown = np.zeros((classes, 1 if has_bias else 0, classes))  # samples without a bias label
    generator = np.random.default_rng(0)
    drawn: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(DRAWS):
        table = np.concatenate([generator.multinomial(np.array(counts), outputs), unknown], axis=1)
        outcome = Outcome(Counts(torch.from_numpy(table).double()), None, torch.empty(0))
        for name, values in drawn.items():
            values.append(float(COMPUTED[name](outcome)))
    return {name: _summary(np.array(values)) for name, values in drawn.items()}


def _summary(values: "np.ndarray") -> dict[str, float] | None:
    import numpy as np

    if not np.isfinite(values).all():
        return None
    _, times = np.unique(values, return_counts=True)
    ties = float((times * (times - 1)).sum() / (len(values) * (len(values) - 1)))
    return {"expected": float(values.mean()), "standard_error": float(values.std(ddof=1)), "ties": ties}
