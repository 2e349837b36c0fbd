"""Why a search gained nothing over its baseline, as far as the validation split can say it."""

from study.analysis.statistics import formatting
from study.analysis.statistics.difference import Side, difference
from study.spec import StudySpec

ALIGNED, CONFLICTING = "val/aligned_accuracy", "val/conflicting_accuracy"
ERROR = f"{CONFLICTING}_standard_error"

BLIND = 0.1
"""Standard error of the accuracy on conflicting samples from which on gains of 20 points may not be seen."""


def why(spec: StudySpec, reference: Side, best: Side) -> str | None:
    """A sentence; None if the search gained something, or nothing is known of samples that conflict with the bias."""
    gain = difference(best.values(spec.metric), reference.values(spec.metric), best.among)
    if gain is None or (gain.clear and spec.better(gain.value, 0.0)):
        return None
    aligned, conflicting, error = (reference.spread(name) for name in (ALIGNED, CONFLICTING, ERROR))
    if aligned is None:
        return None
    if conflicting is None:
        return "No validation sample conflicts with the bias: what a method gains on such samples cannot be seen."
    if error is None:
        return None
    accuracy = formatting.mean(CONFLICTING, conflicting)
    if error.mean >= BLIND:
        return (
            f"Few validation samples conflict with the bias: the standard error of {CONFLICTING} is "
            f"{100 * error.mean:.0f} points, and a gain of less than twice that may not be seen."
        )
    if aligned.mean - conflicting.mean > 2 * error.mean:
        return None
    return (
        f"The bias costs the baseline little: {CONFLICTING} is {accuracy}, {ALIGNED} "
        f"{formatting.mean(ALIGNED, aligned)}. There is little to gain."
    )
