"""Selection rules: by which figure of the validation split a configuration can be chosen, and what that figure needs.

A rule is a metric of the table, or one under a limit of another, so that it can be searched by (`search.metric`,
`search.constraints`), stopped by and exported by (`study export --by`, `--where`). No rule reads the test split.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from study.metrics import available

if TYPE_CHECKING:
    from study.data.dataset import Facts

Need = Literal["nothing", "classes", "inferred groups", "bias labels"]
"""What must be known of the validation samples beside their classes: nothing, that classes differ, groups that a bias
model finds, or bias labels."""


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        metric: name in `METRICS`, the larger the better.
        needs: see `Need`.
        limit: of another metric, as `equalized_odds <= 0.1`; None: there is none.
    """

    metric: str
    needs: Need
    limit: str | None = None

    @property
    def name(self) -> str:
        """In words: the metric, and its limit if there is one."""
        return self.metric if self.limit is None else f"{self.metric} where {self.limit}"

    def possible(self, facts: "Facts", inferred: bool = False) -> bool:
        """Whether a split with these facts has what the rule needs; `inferred`: whether groups are inferred."""
        names = [self.metric, *([self.limit.split()[0]] if self.limit else [])]
        return set(names) <= set(available(facts, inferred))


RULES = (
    Rule("accuracy", "nothing"),
    Rule("worst_class_accuracy", "classes"),
    Rule("balanced_accuracy", "classes"),
    Rule("inferred_unbiased_accuracy", "inferred groups"),
    Rule("inferred_conflicting_accuracy", "inferred groups"),
    Rule("inferred_worst_group_accuracy", "inferred groups"),
    Rule("unbiased_accuracy", "bias labels"),
    Rule("conflicting_accuracy", "bias labels"),
    Rule("worst_group_accuracy", "bias labels"),
    Rule("shrunk_unbiased_accuracy", "bias labels"),
    Rule("shrunk_worst_group_accuracy", "bias labels"),
    Rule("accuracy", "bias labels", "equalized_odds <= 0.1"),
)
"""Those that need least first."""

DEBIASED = (
    "worst_group_accuracy",
    "conflicting_accuracy",
    "unbiased_accuracy",
    "equalized_odds",
    "equal_opportunity",
    "demographic_parity",
    "accuracy_parity",
)
"""Metrics that need bias labels, in the order in which results begin with them."""
