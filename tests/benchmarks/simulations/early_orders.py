"""From which epoch on an order can be trusted: whether the intervals of its correlations and of the epoch hold."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from study.analysis.statistics.early_order import early_order

from .row import Row

Floats = NDArray[np.float64]

EPOCHS, TRUTH, RESAMPLES = 12, 6000, 200
"""Of a curve, configurations that the truth is computed from, and resamples of an interval."""


def rows(draws: int) -> Iterator[Row]:
    """At most 300 simulations a row."""
    draws = min(draws, 300)
    for noise, size in ((0.3, "small"), (0.8, "large")):
        truth = early_order(turning(TRUTH, noise, np.random.default_rng(9)), resamples=20)
        assert truth is not None
        assert truth.epoch is not None
        for count in (30, 60, 200):
            found = [
                early_order(turning(count, noise, np.random.default_rng([seed, count])), resamples=RESAMPLES)
                for seed in range(draws)
            ]
            told = [one for one in found if one is not None]
            inside = np.mean([(one.low <= truth.correlations) & (truth.correlations <= one.high) for one in told])
            held = np.mean(
                [one.earliest is not None and one.earliest <= truth.epoch <= (one.latest or EPOCHS) for one in told]
            )
            shown = f"order turns from -0.6 to 1, {count} configurations, 2 seeds, {size} noise"
            for what, share in (("an epoch's rank correlation", inside), ("the epoch from which on", held)):
                yield Row(f"90% interval of {what}", "plan", shown, "84% or more", 0.84, 1.0, float(share), draws)


def turning(configurations: int, noise: float, chance: np.random.Generator) -> Floats:
    """Curves (2 seeds, configurations, epochs): each configuration's worth times a factor that rises from below 0 to 1,
    with a part that has nothing to do with it and fades, noise of each epoch, and a shift that all share on a seed."""
    factor = np.linspace(-0.6, 1, EPOCHS)
    worth, beside = chance.normal(size=(2, configurations, 1))
    own = worth * factor + 0.5 * beside * np.sqrt(1 - factor**2)
    curves: Floats = own + noise * chance.normal(size=(2, configurations, EPOCHS))
    return curves + 3 * chance.normal(size=(2, 1, 1))
