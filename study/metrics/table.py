"""Every metric that a trial reports, in one table: which direction is better, what its numbers are, what it needs.

Standard library only: what reads a study, or checks a study file, asks here and loads no PyTorch. How a metric is
computed stands in `study.training.metrics` and `study.training.probes`, joined by name.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from study.data.dataset import Facts


Direction = Literal["max", "min"]

NAMED_GROUPS = 16
"""Most (class, bias class) cells of a data set for which each cell's accuracy is a metric of its own."""


def _always(facts: "Facts") -> bool:
    return True


def _biased(facts: "Facts") -> bool:
    return bool(facts.bias_classes)


def _alignable(facts: "Facts") -> bool:
    return facts.bias_classes == facts.classes


def _binary(facts: "Facts") -> bool:
    return facts.classes == 2


def _binary_biased(facts: "Facts") -> bool:
    return _binary(facts) and _biased(facts)


def _beyond_five(facts: "Facts") -> bool:
    return facts.classes >= 6


def _conditioned(facts: "Facts") -> bool:
    return facts.condition is not None


def _has_group(facts: "Facts", of_class: int, of_bias: int) -> bool:
    groups = facts.bias_classes or 0
    return of_class < facts.classes and of_bias < groups and facts.classes * groups <= NAMED_GROUPS


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        about: what it is, in a line.
        better: which direction is; None: neither.
        unit: `share`: a fraction of one (accuracies, rates, gaps), which papers print in percent; `number`: without a
            unit; `squared`: of the continuous attribute, squared.
        low, high: its least and its largest value; None: no bound.
        source: what it is computed from: `predictions`, in each epoch; `held out`, likewise, of the validation and the
            test split alone; `features`, in the last epoch where `train.final` asks for it; `training` itself, in each
            epoch and on no further split.
        possible: whether a split with these facts can have it.
        needs_scores: whether predictions are not enough: it ranks classes or samples.
        of_inferred: whether it is of the groups that `train.inferred_groups` finds, without which nobody has it.
    """

    about: str
    better: Direction | None = "max"
    unit: Literal["share", "number", "squared"] = "share"
    low: float | None = 0.0
    high: float | None = 1.0
    source: Literal["predictions", "held out", "features", "training"] = "predictions"
    possible: Callable[["Facts"], bool] = _always
    needs_scores: bool = False
    of_inferred: bool = False


Inferred = partial(Metric, of_inferred=True)

GROUPS = {f"group_{y}_{s}_accuracy": (y, s) for y in range(NAMED_GROUPS) for s in range(NAMED_GROUPS // (y + 1))}
"""The metrics of one (class, bias class) cell each, with the cell."""

METRICS: Mapping[str, Metric] = {
    "accuracy": Metric("Share of right predictions."),
    "top5_accuracy": Metric(
        "Share of samples whose class is among the five highest scores.", possible=_beyond_five, needs_scores=True
    ),
    "balanced_accuracy": Metric("Mean of the classes' accuracies."),
    "worst_class_accuracy": Metric("Smallest accuracy of a class."),
    "auc": Metric("Area under the ROC curve of the second class's score.", possible=_binary, needs_scores=True),
    "aligned_accuracy": Metric("Accuracy where the bias class is the class.", possible=_alignable),
    "conflicting_accuracy": Metric("Accuracy where the bias class is not the class.", possible=_alignable),
    "unbiased_accuracy": Metric("Mean of the accuracies of the (class, bias class) cells.", possible=_biased),
    "worst_group_accuracy": Metric("Smallest accuracy of a (class, bias class) cell.", possible=_biased),
    "shrunk_unbiased_accuracy": Metric(
        "Mean of the accuracies of all (class, bias class) cells, small ones drawn towards the mean of all "
        "conflicting, or all aligned, cells.",
        possible=_biased,
    ),
    "shrunk_worst_group_accuracy": Metric("The smallest of those.", possible=_biased),
    "inferred_unbiased_accuracy": Inferred("`shrunk_unbiased_accuracy` of the cells of class and inferred group."),
    "inferred_conflicting_accuracy": Inferred("Accuracy where the inferred group is not the class."),
    "inferred_worst_group_accuracy": Inferred(
        "`shrunk_worst_group_accuracy` of the cells of class and inferred group."
    ),
    "equalized_odds": Metric(
        "Mean gap between bias classes of the rate of an output, given the class (FSCL paper Eq. 6).",
        "min",
        possible=_biased,
    ),
    "equal_opportunity": Metric(
        "Largest gap between bias classes of the true positive rate.", "min", possible=_binary_biased
    ),
    "demographic_parity": Metric("Largest gap between bias classes of the rate of an output.", "min", possible=_biased),
    "accuracy_parity": Metric("Largest gap between bias classes of the accuracy.", "min", possible=_biased),
    **{
        name: Metric(f"Accuracy of class {y} with bias class {s}.", possible=partial(_has_group, of_class=y, of_bias=s))
        for name, (y, s) in GROUPS.items()
    },
    "standard_error": Metric("Standard error of the metric whose name stands before it.", None, source="held out"),
    "condition_mse": Metric(
        # high is good: the attribute is one that should not be readable (CCL-K paper Table 3)
        "Mean squared error of a ridge regression from the features to the continuous attribute.",
        unit="squared",
        high=None,
        source="features",
        possible=_conditioned,
    ),
    "loss": Metric("What training minimises.", "min", "number", None, None, "training"),
}
"""By name, those of predictions first."""


# Which direction of a metric is better, by its name: the project's own metrics, and those of the field.
#
# Names of the field are those of scikit-learn and torchmetrics. A name is known where it is one of them, or ends with
# one of them behind a `_`, as `worst_group_auroc`; averages (`f1_macro`), ranks (`recall_at_5`), `_score` and capital
# letters (`F1Score`) change nothing. What means another thing in each project, as `score` or `reward`, is not known:
# whoever searches for it says the direction (`search.direction`).


HIGHER = """
    acc accuracy balanced_accuracy subset_accuracy exact_match top1 top3 top5 top10 top_1 top_3 top_5 top_10 top_k
    f1 fbeta f_beta f_measure dice iou miou mean_iou giou jaccard
    precision recall sensitivity specificity tpr tnr true_positive_rate true_negative_rate hit_rate mrr
    positive_predictive_value negative_predictive_value ppv npv
    auc auroc roc_auc auprc aupr pr_auc average_precision map mean_average_precision reciprocal_rank ndcg dcg
    mcc matthews_corrcoef kappa cohen_kappa informedness youden
    r2 explained_variance d2_absolute_error d2_pinball d2_tweedie d2_log_loss d2_brier pearson spearman kendall
    pearson_corrcoef spearman_corrcoef concordance_corrcoef kendall_rank_corrcoef
    log_likelihood loglikelihood
    bleu sacre_bleu chrf rouge rouge1 rouge2 rougel rougelsum meteor bert bertscore bert_score
    psnr ssim ms_ssim vif inception inception_score clip_score pesq stoi snr sdr si_sdr si_snr
    silhouette calinski_harabasz adjusted_rand rand adjusted_mutual_info normalized_mutual_info mutual_info nmi ami ari
    homogeneity completeness v_measure fowlkes_mallows
    win_rate success_rate
"""
"""Metrics of the field of which more is better."""

LOWER = """
    loss logloss log_loss error err error_rate misclassification hinge nll negative_log_likelihood cross_entropy
    crossentropy bce perplexity ppl bits_per_byte bits_per_character bpc bpd
    brier ece mce ace calibration_error
    wer cer mer word_error_rate char_error_rate match_error_rate edit_distance ter word_information_lost
    fid kid frechet_inception_distance kernel_inception_distance lpips
    mse mae rmse msle rmsle mape smape wmape medae deviance poisson_deviance gamma_deviance tweedie_deviance
    hamming hamming_distance hausdorff hausdorff_distance kl_divergence js_divergence davies_bouldin
    fpr fnr false_positive_rate false_negative_rate false_discovery_rate eer hter fpr95 regret
    equalized_odds_difference equal_opportunity_difference demographic_parity_difference
    equalized_odds_gap equal_opportunity_gap demographic_parity_gap accuracy_parity_gap statistical_parity_difference
"""
"""Metrics of the field of which less is better."""

FIELD: dict[str, Direction] = {**dict.fromkeys(HIGHER.split(), "max"), **dict.fromkeys(LOWER.split(), "min")}
"""Direction by name, the names of scikit-learn and torchmetrics."""

TURNED = {"neg", "negative", "minus"}
"""Words before a name that turn its direction round: `neg_mean_squared_error` of scikit-learn is better when higher."""

OBSCURE = {
    "inverse",
    "inverted",
    "no",
    "non",
    "one",
    "reduction",
    "saved",
    "adversary",
    "adversarial",
    "bias",
    "attack",
}
"""Words before a name with which nobody but the user knows its direction: `bias_accuracy` may be that of reading the
bias from the features."""

WHOLE_ONLY = {
    "map",
    "rand",
    "top_k",
    "vif",
    "ami",
    "ari",
    "nmi",
    "ace",
    "mce",
    "ter",
    "mer",
    "completeness",
    "homogeneity",
}
"""Names that say nothing where another word stands before them."""

_AVERAGED = re.compile(r"_(macro|micro|weighted|samples|binary|ovr|ovo|score|at_(\d+|k))$")


def better(reported: str) -> Direction | None:
    """The direction of a reported metric that is better, by its name alone; None: neither, or it is not known."""
    for name in _forms(reported.split("/")[-1]):
        parts = name.split("_")
        for start in range(len(parts)):
            end, before = "_".join(parts[start:]), set(parts[:start])
            if end in METRICS or (end in FIELD and not (before and end in WHOLE_ONLY)):
                known = METRICS[end].better if end in METRICS else FIELD[end]
                if end in METRICS and known == "min":  # a gap between groups is better small, of the bias network, too
                    before -= {"bias"}
                return None if before & OBSCURE else _turned(known) if before & TURNED else known
    return None


def is_certain(reported: str) -> bool:
    """Return whether the whole name is a known one, so that its direction can be no other."""
    return any(name in METRICS or name in FIELD for name in _forms(reported.split("/")[-1]))


def _turned(direction: Direction | None) -> Direction | None:
    return {"max": "min", "min": "max", None: None}[direction]


def _forms(name: str) -> dict[str, None]:
    """A name, and how the tables may have it: small letters, words apart, without averages and `_score`."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return dict.fromkeys((name, _shortened(name.lower()), _shortened(apart)))


def _shortened(name: str) -> str:
    while name not in FIELD and (shorter := _AVERAGED.sub("", name)) != name:
        name = shorter
    return name
