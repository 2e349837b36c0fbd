"""The table of metrics: each is there once, and its direction is the one that the papers mean."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study import metrics
from study.data import Facts
from study.metrics import METRICS

LOWER = {"equalized_odds", "equal_opportunity", "demographic_parity", "accuracy_parity", "loss"}


def test_which_direction_is_better() -> None:
    assert {name for name, metric in METRICS.items() if metric.better == "min"} == LOWER
    assert {name for name, metric in METRICS.items() if metric.better is None} == {"standard_error"}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("prefix", ["", "lbfgs_", "biased_encoder_", "biased_encoder_knn_"])
def test_a_prefix_changes_nothing(name: str, prefix: str) -> None:
    assert metrics.find(f"val/{prefix}{name}") is METRICS[name]


@pytest.mark.parametrize(
    "name", ["time/epoch", "train/floored_share", "val/", "accuracy_of", "val/inaccuracy", "rmses"]
)
def test_of_any_other_name_nothing_is_known(name: str) -> None:
    assert metrics.find(name) is None
    assert metrics.better(name) is None
    assert not metrics.is_share(name)


@pytest.mark.parametrize("name", ["mse", "val/my_error", "val/log_loss", "val/rmse"])
def test_of_errors_and_losses_lower_is_better_whatever_they_are_of(name: str) -> None:
    assert metrics.lower_is_better(name)
    assert not metrics.lower_is_better("val/my_errors")


MORE = (
    "f1 F1Score f1_macro precision recall_at_5 auroc roc_auc average_precision r2 R2 iou mIoU jaccard dice bleu rouge"
)
MORE += (
    " mcc kappa cohen_kappa_score accuracy balanced_accuracy top5 top_1 rougeL auroc_at_k neg_mean_squared_error psnr"
)
LESS = "loss logloss log_loss nll cross_entropy perplexity brier brier_score brier_score_loss ece wer cer"
LESS += " mer calibration_error fid kid mse mae rmse mape hinge hinge_loss error error_rate hamming demographic_parity"
LESS += " equalized_odds MeanSquaredError top5_error negative_log_likelihood neg_log_likelihood"
LESS += " false_positive_rate equalized_odds_gap"
UNKNOWN = "score reward my_score gap accuracy_gap x my_errors bias_accuracy inverse_loss cosine_similarity saliency_map"


@pytest.mark.parametrize("name", MORE.split())
def test_of_these_more_is_better(name: str) -> None:
    assert metrics.better(f"val/{name}") == "max"


@pytest.mark.parametrize("name", LESS.split())
def test_of_these_less_is_better(name: str) -> None:
    assert metrics.better(f"val/{name}") == "min"


@pytest.mark.parametrize("name", UNKNOWN.split())
def test_of_these_nobody_can_say_which_is_better(name: str) -> None:
    assert metrics.better(f"val/{name}") is None


def test_no_scorer_of_scikit_learn_is_turned_round() -> None:
    from sklearn.metrics import get_scorer_names

    found = {name: metrics.better(f"val/{name}") for name in get_scorer_names()}
    assert "min" not in found.values(), "a scorer's larger values are the better ones"
    unknown = {name for name, direction in found.items() if direction is None}
    assert unknown <= {"positive_likelihood_ratio", "neg_negative_likelihood_ratio"}


def test_shares_are_between_0_and_1() -> None:
    shares = {name for name, metric in METRICS.items() if metric.unit == "share"}
    assert shares == {*metrics.searchable(), "standard_error"}
    assert {(METRICS[name].low, METRICS[name].high) for name in shares} == {(0.0, 1.0)}
    assert metrics.is_share("test/mlp_accuracy")
    assert not metrics.is_share("test/condition_mse")


@given(st.integers(2, 20), st.none() | st.integers(2, 20), st.none() | st.integers(0, 3))
def test_what_data_can_have(classes: int, groups: int | None, condition: int | None) -> None:
    facts = Facts(classes, groups, (3, 8, 8), condition)
    there = metrics.available(facts)
    named = [name for name in there if name in metrics.GROUPS]
    assert len(named) == (classes * (groups or 0) if classes * (groups or 0) <= 16 else 0)
    assert ("worst_group_accuracy" in there) == (groups is not None)
    assert METRICS["condition_mse"].possible(facts) == (condition is not None)


def test_a_standard_error_is_a_share_that_is_neither_better_nor_worse() -> None:
    for name in ("accuracy", "shrunk_worst_group_accuracy"):
        assert metrics.find(f"val/{name}_standard_error") is METRICS["standard_error"]
        assert metrics.better(f"val/{name}_standard_error") is None
        assert metrics.is_share(f"val/{name}_standard_error")
    assert "standard_error" not in metrics.searchable()


def test_inferred_groups_need_no_bias_label_but_a_network_that_finds_them() -> None:
    facts = Facts(3, None, (3, 8, 8))
    inferred = {name for name, metric in METRICS.items() if metric.of_inferred}
    assert inferred == {f"inferred_{name}_accuracy" for name in ("unbiased", "conflicting", "worst_group")}
    assert set(metrics.available(facts, inferred=True)) - set(metrics.available(facts)) == inferred


def test_the_table_loads_no_library() -> None:
    asked = "import sys; before = set(sys.modules); import study.metrics; print(*sorted(set(sys.modules) - before))"
    asked = f"import typing, dataclasses, functools; {asked}"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert {name.split(".")[0] for name in told.stdout.split()} <= {"study"}
