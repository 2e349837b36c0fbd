"""Constraints of a study: a metric, its limit, and by how much a value breaks it."""

import math
import re
from dataclasses import dataclass
from typing import Literal

from study.metrics import METRICS
from study.metrics.metric_format import format_metric

CONSTRAINT_PATTERN = re.compile(r"\s*([\w/]+)\s*(<=|>=)\s*([-+.\deE]+)\s*")

SIGNIFICANT_DIGITS = 12


def round_to_significant_digits(value: float) -> float:
    """Round a value to `SIGNIFICANT_DIGITS` significant digits, which drops the noise of its computation."""
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


@dataclass(frozen=True)
class MetricConstraint:
    """Limit on a metric, which the best should keep, written as `val/equalized_odds <= 0.05`."""

    metric: str
    comparison: Literal["<=", ">="]
    limit: float

    @classmethod
    def from_text(cls, text: str) -> "MetricConstraint":
        """Read a constraint.

        Raises:
            ValueError: not of that form.
        """
        match = CONSTRAINT_PATTERN.fullmatch(text)
        try:
            if match:
                return cls(match[1], "<=" if match[2] == "<=" else ">=", float(match[3]))
        except ValueError:
            pass
        raise ValueError("allowed is METRIC <= NUMBER or METRIC >= NUMBER, as val/equalized_odds <= 0.05")

    def violation_of(self, value: float) -> float:
        """Return by how much a value breaks the constraint; below 0, how much room it leaves."""
        value = round_to_significant_digits(value)
        return value - self.limit if self.comparison == "<=" else self.limit - value

    def violation_text(self, violation: float) -> str:
        """Return the constraint with what breaks it by so much: `val/equalized_odds <= 0.05 by 0.2 (it has 0.250)`."""
        return f"{self} by {violation:.4g} (it has {format_metric(self.metric, self.value_at_violation(violation))})"

    def value_at_violation(self, violation: float) -> float:
        """Return the value that breaks the constraint by so much."""
        return self.limit + violation if self.comparison == "<=" else self.limit - violation

    def why_pointless(self) -> str | None:
        """Return why no value, or every value, keeps the constraint: its limit is out of the metric's range.

        None where it is not, or where the metric is not in the table, so that its range is not known.
        """
        metric = METRICS.get(self.metric.removeprefix("val/"))
        if metric is None:
            return None
        least = -math.inf if metric.min_value is None else metric.min_value
        most = math.inf if metric.max_value is None else metric.max_value
        above = self.comparison == ">="
        if least <= self.limit <= most:
            return None
        who = "no value keeps it" if above is (self.limit > most) else "every value keeps it"
        between = f"between {least:g} and {most:g}" if math.isfinite(most) else f"{least:g} or more"
        is_percent = metric.unit == "share" and 1 < self.limit <= 100
        meant = f"; {self.limit:g}% is {self.limit / 100:g}" * is_percent
        return f"{who}: {self.metric} is {between}{meant}"

    def __str__(self) -> str:
        return f"{self.metric} {self.comparison} {self.limit:g}"
