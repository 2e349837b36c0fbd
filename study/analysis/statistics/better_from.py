"""From which budget one random search is better than another: where the bands of their tuning curves are apart."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.analysis.statistics.tuning_curve import Draws, curve, draws
from study.home.record import StudyRecord
from study.spec import StudySpec

CONFIDENCE = 0.95
"""That all bands of a comparison hold together."""


@dataclass(frozen=True)
class BetterFrom:
    """What the tuning curves of two studies say, by the median of the best of k trials.

    Attributes:
        name, than: of the studies.
        first, last: the longest stretch of budgets over which the first study is better; None: nowhere.
        known: the largest budget that both studies have.
        unit: of the budgets: `trials`, or `epochs` where trials of the two cost differently.
        reason: why there is no curve of one of them.
    """

    name: str
    than: str
    first: int | None = None
    last: int | None = None
    known: int = 0
    unit: str = "trials"
    reason: str | None = None

    def __str__(self) -> str:
        """For people, where there is no `reason`."""
        if self.first is None:
            return f"cannot be told from {self.than} up to {self.known} {self.unit}"
        if self.last == self.known:
            return f"than {self.than} from {self.first} {self.unit} on (known up to {self.known})"
        return f"than {self.than} from {self.first} to {self.last} {self.unit}, else it cannot be told"


def better_from(studies: Sequence[tuple[StudySpec, StudyRecord]]) -> dict[str, list[BetterFrom]]:
    """Each study against each other one, by name."""
    found = {spec.name: draws(spec, record) for spec, record in studies}
    curves = {name: one for name, one in found.items() if isinstance(one, Draws)}
    return {name: [compared(found, curves, name, other) for other in found if other != name] for name in found}


def printed_budgets(documents: Sequence[Mapping[str, Any]]) -> list[str]:
    """The same for people: a text per study, from the documents' `tuning`; empty where no study has a curve to it."""
    found = [[BetterFrom(document["name"], **one) for one in document["tuning"]] for document in documents]
    return ["; ".join(str(one) for one in of_study if not one.reason) for of_study in found]


def to_documents(found: Sequence[BetterFrom]) -> list[dict[str, Any]]:
    """As plain values."""
    return [{key: value for key, value in asdict(one).items() if key != "name"} for one in found]


def compared(found: Mapping[str, Draws | str], curves: Mapping[str, Draws], name: str, other: str) -> BetterFrom:
    """One study against another one of `found`, which shares the allowed error out among its bands."""
    for each in (name, other):
        if each not in curves:
            return BetterFrom(name, other, reason=f"{each}: {found[each]}")
    one, two = curves[name], curves[other]
    each_band = 1 - (1 - CONFIDENCE) / len(found)
    sign = -1 if one.lower_is_better else 1
    ends = [curve(draws, each_band) for draws in (one, two)]
    mine, theirs = ("low", "high") if sign > 0 else ("high", "low")
    by_epochs = one.epochs != two.epochs
    budgets = [frame["epochs"].to_numpy() if by_epochs else frame.index.to_numpy() for frame in ends]
    asked = np.unique(np.concatenate(budgets))
    asked = asked[(asked >= max(b[0] for b in budgets)) & (asked <= min(b[-1] for b in budgets))]
    if not len(asked):
        return BetterFrom(name, other, unit="epochs" if by_epochs else "trials")
    values = [
        sign * frame[end].to_numpy()[np.searchsorted(budget, asked, side="right") - 1]
        for frame, end, budget in zip(ends, (mine, theirs), budgets, strict=True)
    ]
    first, last = _longest(asked, values[0] > values[1])
    return BetterFrom(name, other, first, last, int(asked[-1]), "epochs" if by_epochs else "trials")


def _longest(budgets: NDArray[np.float64], holds: NDArray[np.bool_]) -> tuple[int | None, int | None]:
    """The ends of the longest stretch over which something holds."""
    stretches = np.split(np.arange(len(holds)), np.flatnonzero(np.diff(holds)) + 1)
    places = max((stretch for stretch in stretches if holds[stretch[0]]), key=len, default=None)
    if places is None:
        return None, None
    return math.ceil(budgets[places[0]]), math.floor(budgets[places[-1]])
