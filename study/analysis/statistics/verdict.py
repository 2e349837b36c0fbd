"""Whether a number of ours is that of a paper, by a test that says what it can and cannot tell."""

from dataclasses import dataclass
from typing import Literal

from study.analysis.statistics.difference import Difference, difference
from study.metrics import is_share
from study.ranking import Spread

MARGIN = 0.01
"""Of shares: a difference of one percentage point is of no consequence, unless another margin is asked for."""

RELATIVE = 0.05
"""The same of other numbers, as a part of the printed one."""

Word = Literal["agrees", "differs", "cannot tell"]


@dataclass(frozen=True)
class Verdict:
    """What a comparison came to.

    Attributes:
        word: see `verdict`.
        difference: ours minus theirs with its 95% interval; None where one side has no number.
        reason: what the word rests on.
    """

    word: Word
    difference: Difference | None
    reason: str


def verdict(ours: Spread | None, theirs: Spread | None, margin: float = MARGIN) -> Verdict:
    """Compare two means by their spreads and counts: Welch's t on the difference, with an equivalence margin.

    - agrees: the 90% interval of the difference lies within ± `margin` (two one-sided tests at 5%, Schuirmann 1987):
      a larger difference is ruled out. That no difference was found is not enough.
    - differs: not so, and the 95% interval of the difference leaves out zero.
    - cannot tell: neither, or a side has fewer than two values or no known spread. Few seeds end here.

    Args:
        ours: None for a missing cell.
        theirs: printed; without a deviation where the paper gives no spread or not how many values it is of.
        margin: in the unit of the means.
    """
    wide, narrow = difference(ours, theirs), difference(ours, theirs, confidence=0.90)
    if wide is None or narrow is None:
        return Verdict("cannot tell", None, "a number is missing")
    if wide.interval is None or narrow.interval is None:
        side = "ours" if ours is not None and ours.deviation is None else "theirs"
        return Verdict("cannot tell", wide, f"the spread of {side} is not known")
    if -margin <= narrow.interval[0] and narrow.interval[1] <= margin:
        return Verdict("agrees", wide, "a difference beyond the margin is ruled out")
    if wide.clear:
        return Verdict("differs", wide, "the 95% interval of the difference leaves out zero")
    return Verdict("cannot tell", wide, "the interval holds zero and differences beyond the margin")


def margin_of(metric: str, theirs: Spread | None, share: float = MARGIN) -> float:
    """The margin for a printed number: `share` where the metric is one, else a part of the number."""
    if is_share(metric) or theirs is None:
        return share
    return RELATIVE * abs(theirs.mean)


def rule(share: float = MARGIN) -> str:
    """The rule in a sentence, to stand under a table."""
    return (
        f"Verdicts (Welch's t): agrees where the 90% interval of the difference lies within {100 * share:g} points of "
        f"percent to each side ({RELATIVE:.0%} of a printed number that is no percentage); differs where it does not "
        "and the 95% interval leaves out zero; else, or with fewer than two values or no known spread on a side, it "
        "cannot be told."
    )
