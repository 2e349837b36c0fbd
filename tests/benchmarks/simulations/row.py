"""One line of the table of statements: what is said, on which simulated truth, how often it is right."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """How often a statement of the software was right, or wrong, on simulated studies.

    Attributes:
        statement: as it is printed, or the name of the interval: `better beyond the spread over seeds`.
        where: the commands and pages that print it: `report, compare`.
        truth: what was simulated: `no difference; best of top 5, 3 seeds`.
        nominal: what is promised, as text: `at most 2.5%`, `95%`.
        low, high: between which shares of the simulations it must be found for the promise to hold.
        found: the share of the simulations, or the figure that is promised.
        draws: simulations behind `found`; 0 where it is no share, so that it has no error of sampling.
    """

    statement: str
    where: str
    truth: str
    nominal: str
    low: float
    high: float
    found: float
    draws: int

    @property
    def standard_error(self) -> float:
        """Of `found` as a share of `draws` simulations."""
        return math.sqrt(self.found * (1 - self.found) / self.draws) if self.draws else 0.0

    @property
    def holds(self) -> bool:
        """Whether the promise is kept, two standard errors allowed for the simulation itself."""
        reach = 2 * self.standard_error
        return self.low - reach <= self.found <= self.high + reach
