"""Which direction of a metric is better, by its name: the project's own metrics, and those of the field.

Names of the field are those of scikit-learn and torchmetrics. A name is known where it is one of them, or ends with one
of them behind a `_`, as `worst_group_auroc`; averages (`f1_macro`), ranks (`recall_at_5`), `_score` and capital letters
(`F1Score`) change nothing. What means another thing in each project, as `score` or `reward`, is not known: whoever
searches for it says the direction (`search.direction`).
"""

import re

from study.metrics.table import METRICS, Direction

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
    """Whether the whole name is a known one, so that its direction can be no other."""
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
