"""Selection rules: by which figure of the validation split a configuration can be chosen, and what that figure needs.

A rule is a metric of the table, perhaps under a limit on another, so that it can be searched by (`search.metric`,
`search.constraints`), stopped by and exported by (`study export --by`, `--where`). No rule reads the test split.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from study.metrics import GAP_METRICS, available_metrics

if TYPE_CHECKING:
    from study.data.dataset import Facts

RequiredLabels = Literal["nothing", "classes", "inferred groups", "bias labels"]
"""What a rule needs of the validation samples beside their classes: nothing, several classes, groups that a bias model
infers, or bias labels.
"""


@dataclass(frozen=True)
class SelectionRule:
    """A selection rule.

    Attributes:
        metric: name in `METRICS`, the larger the better.
        required_labels: see `RequiredLabels`.
        limit: of another metric, as `equalized_odds <= 0.1`; None: there is none.
    """

    metric: str
    required_labels: RequiredLabels
    limit: str | None = None

    @property
    def name(self) -> str:
        """The rule in words: the metric, and its limit if there is one."""
        return self.metric if self.limit is None else f"{self.metric} where {self.limit}"

    def is_available(self, facts: "Facts", inferred: bool = False) -> bool:
        """Tell whether a split with these facts has what the rule needs; `inferred`: whether groups are inferred."""
        names = [self.metric, *([self.limit.split()[0]] if self.limit else [])]
        return set(names) <= set(available_metrics(facts, inferred))


SELECTION_RULES = (
    SelectionRule("accuracy", "nothing"),
    SelectionRule("worst_class_accuracy", "classes"),
    SelectionRule("balanced_accuracy", "classes"),
    SelectionRule("inferred_unbiased_accuracy", "inferred groups"),
    SelectionRule("inferred_conflicting_accuracy", "inferred groups"),
    SelectionRule("inferred_worst_group_accuracy", "inferred groups"),
    SelectionRule("unbiased_accuracy", "bias labels"),
    SelectionRule("conflicting_accuracy", "bias labels"),
    SelectionRule("worst_group_accuracy", "bias labels"),
    SelectionRule("shrunk_unbiased_accuracy", "bias labels"),
    SelectionRule("shrunk_worst_group_accuracy", "bias labels"),
    SelectionRule("accuracy", "bias labels", "equalized_odds <= 0.1"),
)
"""Rules, those that need least first."""

BIAS_LABEL_METRICS = ("worst_group_accuracy", "conflicting_accuracy", "unbiased_accuracy", *GAP_METRICS)
"""Metrics that need bias labels."""
