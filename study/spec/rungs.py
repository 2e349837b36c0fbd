"""When early stopping compares trials, and what that should save."""

from collections.abc import Sequence
from dataclasses import dataclass

from study.spec.schema import EarlyStoppingOptions


@dataclass(frozen=True)
class RungSchedule:
    """When a rule compares trials of so many epochs: `asha` at rungs, from which one in `reduction` goes on."""

    rule: EarlyStoppingOptions
    epochs: int

    @property
    def grace_epochs(self) -> int:
        """First epoch after which it may stop a trial."""
        return max(1, round(self.epochs / 2)) if self.rule.grace is None else self.rule.grace

    @property
    def rung_epochs(self) -> Sequence[int]:
        """Epochs after which trials are compared, all before the last."""
        rungs, rung = [], self.grace_epochs
        while rung < self.epochs and self.rule.name == "asha":
            rungs.append(rung)
            rung *= self.rule.reduction
        return rungs

    @property
    def expected_epochs(self) -> float:
        """Mean epochs of a searched trial if each rung lets one in `reduction` go on."""
        total, share, done = 0.0, 1.0, 0
        for rung in (*self.rung_epochs, self.epochs):
            total += share * (rung - done)
            share, done = share / self.rule.reduction, rung
        return total

    @property
    def expected_complete_share(self) -> float:
        """Share of searched trials that run to their end, if each rung lets one in `reduction` go on."""
        return 1 / self.rule.reduction ** len(self.rung_epochs)

    @property
    def describe_in_words(self) -> str:
        """Rule in a line, for plan and report."""
        if self.rule.name != "asha":
            return self.rule.name
        if not self.rung_epochs:
            return "asha, no rungs before the last epoch"
        *front, last = map(str, self.rung_epochs)
        at = f"epochs {', '.join(front)} and {last}" if front else f"epoch {last}"
        return f"asha, at {at} the best 1 in {self.rule.reduction} goes on"


def with_explicit_grace(rule: EarlyStoppingOptions, epochs: int) -> EarlyStoppingOptions:
    """Return a rule with its `grace` written out."""
    return rule if rule.name == "none" else rule.model_copy(update={"grace": RungSchedule(rule, epochs).grace_epochs})
