"""Why a search gained nothing over its baseline, as far as the validation split can say it."""

import math

from study.analysis.statistics import formatting
from study.analysis.statistics.debiased import samples
from study.analysis.statistics.difference import Side, difference
from study.home.record import StudyRecord
from study.ranking import Spread
from study.spec import StudySpec

ALIGNED, CONFLICTING = "val/aligned_accuracy", "val/conflicting_accuracy"
ERROR = f"{CONFLICTING}_standard_error"

BLIND = 0.1
"""Standard error of the accuracy on conflicting samples from which on gains of 20 points may not be seen."""

LITTLE = 0.1
"""What the bias costs a baseline, in accuracy, that is little: the sentence is said where more is ruled out."""


def why(spec: StudySpec, record: StudyRecord, reference: Side, best: Side) -> str | None:
    """A sentence; None if the search gained something, or nothing is known of samples that conflict with the bias."""
    gain = difference(best.values(spec.metric), reference.values(spec.metric), best.among)
    if gain is None or (gain.clear and spec.better(gain.value, 0.0)):
        return None
    aligned, conflicting, error = (reference.spread(name) for name in (ALIGNED, CONFLICTING, ERROR))
    if aligned is None:
        return None
    if conflicting is None:
        return "No validation sample conflicts with the bias: what a method gains on such samples cannot be seen."
    if error is not None and error.mean >= BLIND:
        return (
            f"Few validation samples conflict with the bias: the standard error of {CONFLICTING} is "
            f"{100 * error.mean:.0f} points, and a gain of less than twice that may not be seen."
        )
    counts = [samples(record, reference, *name.split("/")) for name in (ALIGNED, CONFLICTING)]
    if not all(counts):
        return None
    most = cost((aligned, counts[0] or 0), (conflicting, counts[1] or 0))
    if most > LITTLE:
        return None
    return (
        f"The bias costs the baseline little: {CONFLICTING} is {formatting.mean(CONFLICTING, conflicting)}, {ALIGNED} "
        f"{formatting.mean(ALIGNED, aligned)}, with 95% confidence at most {100 * max(most, 0.0):.1f} points higher. "
        "There is little to gain on conflicting samples."
    )


def cost(aligned: tuple[Spread, int], conflicting: tuple[Spread, int]) -> float:
    """The upper 95% bound of the accuracy on aligned samples minus that on conflicting ones, by the split's samples.

    From the one-sided bounds of each accuracy (Clopper and Pearson 1934), put together by Newcombe (1998, method 10).

    Args:
        aligned, conflicting: the accuracy, over seeds that share the split, and of how many samples it is.
    """
    from scipy.special import betaincinv  # here: `study status` says nothing of this, and answers at once

    (high, many), (low, few) = ((accuracy.mean, count) for accuracy, count in (aligned, conflicting))
    of_many, of_few = high * many, low * few
    top = float(betaincinv(of_many + 1, many - of_many, 0.95)) if of_many < many else 1.0
    bottom = float(betaincinv(of_few, few - of_few + 1, 0.05)) if of_few > 0 else 0.0
    return high - low + math.hypot(top - high, low - bottom)
