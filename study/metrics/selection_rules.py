"""Selection rules: by which figure of the validation split a configuration can be chosen, and what that figure needs.

A rule is a metric of the table, perhaps under a limit on another, so that it can be searched by (`search.metric`,
`search.constraints`), stopped by and exported by (`study export --by`, `--where`). No rule reads the test split.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from study.metrics import GAP_METRICS, available_metrics, with_accuracies

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

SUMMARY_METRICS = ("accuracy", "aligned_accuracy", "conflicting_accuracy", "worst_group_accuracy", "equalized_odds")
"""Metrics that a summary shows beside the study's own: what a gain costs, and where."""

RARE_CLASS_SHARE = 0.5
"""Share of an equal part of the samples below which a class is rare: a summary shows the worst class then, too."""

MIN_SHOWN_GROUP_SAMPLES = 10
"""Samples of a group from which on its accuracy is shown in a summary: with 4 samples it is 0, 25, 50, 75 or 100%."""


def summary_metrics(
    study_metrics: Sequence[str], available: Collection[str], cells: Mapping[str, Sequence[Sequence[int]]]
) -> list[str]:
    """List the reported names that a summary shows.

    They are the study's own metrics on test, then on validation, a log loss with the accuracy of the same samples, then
    `SUMMARY_METRICS` on test, where that was read, else on validation; of classes of which one is rare the worst, too.

    Args:
        study_metrics: names of the study's metrics, as `val/accuracy`.
        available: the reported names that there are.
        cells: for each split that is known, how many samples each class has with each bias class.
    """
    split = "test" if any(name.startswith("test/") for name in available) else "val"
    classes = [sum(row) for row in cells.get(split) or ()] or [0]
    equal_part = sum(classes) / len(classes)
    is_one_rare = MIN_SHOWN_GROUP_SAMPLES <= min(classes) < RARE_CLASS_SHARE * equal_part
    sizes = [size for row in cells.get(split) or () for size in row if size]
    too_small = {"worst_group_accuracy"} if sizes and min(sizes) < MIN_SHOWN_GROUP_SAMPLES else set()
    names = [f"{where}/{name.split('/')[1]}" for name in with_accuracies(study_metrics) for where in ("test", "val")]
    names += [f"{split}/{name}" for name in SUMMARY_METRICS if name not in too_small]
    names += [f"{split}/worst_class_accuracy"] * is_one_rare
    return [name for name in dict.fromkeys(names) if name in available]
