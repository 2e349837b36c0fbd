"""Every metric that a trial reports, in one table: which direction is better, its unit, and which data can have it.

Standard library only: whatever reads a study, or checks a study file, uses this without loading PyTorch. How a metric
is computed is in `study.training.metrics` and `study.training.probes`, joined by name.

A reported name is `SPLIT/NAME`. The name of a further encoder, of a probe, or both stand before a metric's own:
`test/lbfgs_accuracy`, `val/biased_encoder_worst_group_accuracy`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from study.data.dataset import Facts

Direction = Literal["max", "min"]

MAX_GROUP_METRICS = 25
"""Largest number of (class, bias class) cells of a data set for which each cell's accuracy is a metric of its own."""


def _has_group(facts: "Facts", of_class: int, of_bias: int) -> bool:
    groups = facts.bias_classes or 0
    return of_class < facts.classes and of_bias < groups and facts.classes * groups <= MAX_GROUP_METRICS


def _has_groups(facts: "Facts") -> bool:
    return bool(facts.bias_classes)


@dataclass(frozen=True)
class Metric:
    """A metric.

    Attributes:
        description: what it is, in a line.
        better: which direction is; None: neither.
        unit: `share`: a fraction of one (accuracies, rates, gaps), which papers print in percent; `number`: without a
            unit, or, of log losses, in nats; `squared`: of the continuous attribute, squared.
        min_value, max_value: its least and its largest value; None: no bound.
        source: what it is computed from: `predictions`, in each epoch; `held out`, also predictions in each epoch, but
            of the validation and the test split alone; `features`, in the last epoch where `train.final` asks for it;
            `training` itself, in each epoch and on no further split.
        is_available: whether a split with these facts can have it.
        needs_scores: whether predictions are not enough: it ranks classes or samples, or needs their probabilities.
        needs_inferred_groups: whether it is about the groups that `train.inferred_groups` infers, without which no
            split has it.
    """

    description: str
    better: Direction | None = "max"
    unit: Literal["share", "number", "squared"] = "share"
    min_value: float | None = 0.0
    max_value: float | None = 1.0
    source: Literal["predictions", "held out", "features", "training"] = "predictions"
    is_available: Callable[["Facts"], bool] = lambda facts: True
    needs_scores: bool = False
    needs_inferred_groups: bool = False


InferredGroupMetric = partial(Metric, needs_inferred_groups=True)
LogLossMetric = partial(Metric, better="min", unit="number", max_value=None, needs_scores=True)
GroupMetric = partial(Metric, is_available=_has_groups)
BiasAlignmentMetric = partial(Metric, is_available=lambda facts: bool(facts.bias_classes) and facts.aligned is not None)

CELLS_BY_GROUP_METRIC = {
    f"group_{y}_{s}_accuracy": (y, s) for y in range(MAX_GROUP_METRICS) for s in range(MAX_GROUP_METRICS // (y + 1))
}
"""Metrics of one (class, bias class) cell each, with the cell."""

METRICS: Mapping[str, Metric] = {
    "accuracy": Metric("Share of right predictions."),
    "top5_accuracy": Metric(
        "Share of samples whose class is among the five highest scores.",
        is_available=lambda facts: facts.classes >= 6,
        needs_scores=True,
    ),
    "balanced_accuracy": Metric("Mean of the classes' accuracies."),
    "worst_class_accuracy": Metric("Smallest accuracy of a class."),
    "auc": Metric(
        "Area under the ROC curve of the second class's score.",
        is_available=lambda facts: facts.classes == 2,
        needs_scores=True,
    ),
    "aligned_accuracy": BiasAlignmentMetric("Accuracy where the bias class is one of the class's own."),
    "conflicting_accuracy": BiasAlignmentMetric("Accuracy where it is not."),
    "unbiased_accuracy": GroupMetric("Mean of the accuracies of the (class, bias class) cells."),
    "worst_group_accuracy": GroupMetric("Smallest accuracy of a (class, bias class) cell."),
    "shrunk_unbiased_accuracy": GroupMetric(
        "Mean of the accuracies of all (class, bias class) cells, small ones drawn towards the mean of all "
        "conflicting, or all aligned, cells; where no bias class is a class's own, towards that of their class."
    ),
    "shrunk_worst_group_accuracy": GroupMetric("The smallest of those."),
    "inferred_unbiased_accuracy": InferredGroupMetric(
        "`shrunk_unbiased_accuracy` of the cells of class and inferred group."
    ),
    "inferred_conflicting_accuracy": InferredGroupMetric("Accuracy where the inferred group is not the class."),
    "inferred_worst_group_accuracy": InferredGroupMetric(
        "`shrunk_worst_group_accuracy` of the cells of class and inferred group."
    ),
    "log_loss": LogLossMetric(
        "Mean of -log p, p being the probability that the scores give the sample's class, in nats."
    ),
    "balanced_log_loss": LogLossMetric("Mean of the classes' log losses."),
    "unbiased_log_loss": LogLossMetric(
        "Mean of the log losses of the (class, bias class) cells.", is_available=_has_groups
    ),
    "shrunk_unbiased_log_loss": LogLossMetric(
        "Mean of the log losses of all (class, bias class) cells, small ones drawn towards similar ones.",
        is_available=_has_groups,
    ),
    "inferred_unbiased_log_loss": LogLossMetric(
        "`shrunk_unbiased_log_loss` of the cells of class and inferred group.", needs_inferred_groups=True
    ),
    "equalized_odds": GroupMetric(
        "Mean gap between bias classes of the rate of an output, given the class (FSCL paper Eq. 6).", "min"
    ),
    "equalized_odds_difference": GroupMetric(
        "Largest gap between bias classes of the rate of an output, given the class, as fairlearn defines it: never "
        "below `equalized_odds`.",
        "min",
    ),
    "equal_opportunity": Metric(
        "Largest gap between bias classes of the true positive rate.",
        "min",
        is_available=lambda facts: facts.classes == 2 and bool(facts.bias_classes),
    ),
    "demographic_parity": GroupMetric("Largest gap between bias classes of the rate of an output.", "min"),
    "accuracy_parity": GroupMetric("Largest gap between bias classes of the accuracy.", "min"),
    **{
        name: Metric(
            f"Accuracy of class {y} with bias class {s}.", is_available=partial(_has_group, of_class=y, of_bias=s)
        )
        for name, (y, s) in CELLS_BY_GROUP_METRIC.items()
    },
    "standard_error": Metric("Standard error of the metric whose name stands before it.", None, source="held out"),
    "condition_mse": Metric(
        # high is good: the attribute is one that should not be readable (CCL-K paper Table 3)
        "Mean squared error of a ridge regression from the features to the continuous attribute.",
        unit="squared",
        max_value=None,
        source="features",
        is_available=lambda facts: facts.condition is not None,
    ),
    "loss": Metric("What training minimises.", "min", "number", None, None, "training"),
}
"""Metrics by name, those of predictions first."""

EPOCH_PHASES = ("data", "training", "evaluation")
"""Phases that an epoch's time is divided into: each is reported as `time/PHASE`, the whole as `time/epoch`."""


def find_metric(reported: str) -> Metric | None:
    """Find the metric that a reported name is or ends with, the longest one; None: it is not in the table."""
    parts = reported.split("/")[-1].split("_")
    ends = ("_".join(parts[start:]) for start in range(len(parts)))
    return next((METRICS[end] for end in ends if end in METRICS), None)


def metric_direction(reported: str) -> Direction | None:
    """Return the direction in which a reported metric is better; None: neither, or it is not in the table."""
    metric = find_metric(reported)
    return metric.better if metric else None


MIN_SPELLING_SIMILARITY = 0.85
"""Least likeness of two names, of 1, at which one may be a slip of the other: a function may call a metric anything."""


def suggest_metric_spelling(reported: str, others: Iterable[str] = ()) -> str | None:
    """Return the metric whose name a function's metric has but for a slip, as `val/acuracy`; None: there is none.

    A name that is in the table, or ends with one of it, is none.

    Args:
        others: further names that may be meant, as those of the same search. One that differs in a number or in its
            last word alone, as `val/recall_a` and `val/recall_b`, is not meant.
    """
    from difflib import get_close_matches

    if find_metric(reported):
        return None
    split = reported.rpartition("/")[0]
    known = [f"{split}/{other}" for other in METRICS if other not in CELLS_BY_GROUP_METRIC]
    own = [other for other in others if _shared_name_stem(reported, other) is None]
    close = get_close_matches(reported.lower(), [*own, *known], n=1, cutoff=MIN_SPELLING_SIMILARITY)
    return close[0] if close else None


def _shared_name_stem(name: str, other: str) -> str | None:
    """Return what two names are without their numbers, or without their last words, where that is the same."""
    stems = [(re.sub(r"\d+", "", one), one.rpartition("_")[0]) for one in (name, other)]
    return next((first for first, second in zip(*stems, strict=True) if first and first == second), None)


def lower_is_better(reported: str) -> bool:
    """Tell whether the smaller of two values is better; false where neither direction is."""
    return metric_direction(reported) == "min"


def is_fraction_metric(reported: str) -> bool:
    """Tell whether its numbers, or those it is the error of, are fractions of one, which papers print in percent."""
    metric = find_metric(reported.removesuffix("_standard_error"))
    return metric is not None and metric.unit == "share"


def is_gap_metric(reported: str) -> bool:
    """Tell whether it is a gap between groups: of few samples it is too large on average, and no interval holds.

    The difference of two configurations' gaps, which are too large alike, has one.
    """
    return is_fraction_metric(reported) and lower_is_better(reported)


GAP_METRICS = tuple(filter(is_gap_metric, METRICS))
"""Metrics that are gaps between groups, by name."""


def add_accuracies_of_log_losses(names: Iterable[str]) -> list[str]:
    """Return metrics, behind each log loss with the accuracy that is over the same samples and cells."""
    return [each for name in names for each in dict.fromkeys((name, name.replace("log_loss", "accuracy")))]


def is_percent_metric(reported: str) -> bool:
    """Tell whether people are shown it in percent: `val/accuracy`, `test/worst_group_accuracy`; gaps are not."""
    return reported.rsplit("/", 1)[-1].endswith("accuracy")


STANDARD_ERROR_NOTE = "±: standard error, as the split is a sample"
"""What stands below metrics of one model on a split that are printed with their standard errors."""


def is_standard_error(reported: str) -> bool:
    """Tell whether it is the standard error of another metric of the same trial."""
    return find_metric(reported) is METRICS["standard_error"]


def searchable_metrics() -> list[str]:
    """List the metrics that every epoch has on each split, whatever is trained: those that a search can use."""
    return [name for name, metric in METRICS.items() if metric.source == "predictions"]


def available_metrics(facts: "Facts", inferred: bool = False) -> list[str]:
    """List the searchable metrics that a split with these facts can have.

    Args:
        inferred: whether groups are inferred, as `train.inferred_groups` says.
    """
    return [
        name
        for name in searchable_metrics()
        if METRICS[name].is_available(facts) and METRICS[name].needs_inferred_groups <= inferred
    ]
