"""The table of metrics: each is there once, and its direction is the one that the papers mean."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from study import metrics
from study.data import Facts
from study.metrics import METRICS
from study.metrics.metric_format import format_metric, format_metric_range

LOWER = {"equalized_odds", "equalized_odds_difference", "equal_opportunity", "demographic_parity", "accuracy_parity"}
LOSSES = {f"{kind}log_loss" for kind in ("", "balanced_", "unbiased_", "shrunk_unbiased_", "inferred_unbiased_")}
LOWER |= LOSSES | {"loss"}


def test_which_direction_is_better() -> None:
    assert {name for name, metric in METRICS.items() if metric.better == "min"} == LOWER
    assert {name for name, metric in METRICS.items() if metric.better is None} == {"standard_error"}


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("prefix", ["", "lbfgs_", "biased_encoder_", "biased_encoder_knn_"])
def test_a_prefix_changes_nothing(name: str, prefix: str) -> None:
    assert metrics.find_metric(f"val/{prefix}{name}") is METRICS[name]


@pytest.mark.parametrize(
    "name", ["time/epoch", "train/floored_share", "val/", "accuracy_of", "val/inaccuracy", "rmses"]
)
def test_of_any_other_name_nothing_is_known(name: str) -> None:
    assert metrics.find_metric(name) is None
    assert metrics.metric_direction(name) is None
    assert not metrics.is_fraction_metric(name)


def test_shares_are_between_0_and_1() -> None:
    shares = {name for name, metric in METRICS.items() if metric.unit == "share"}
    assert shares == {*metrics.searchable_metrics(), "standard_error"} - LOSSES
    assert {(METRICS[name].min_value, METRICS[name].max_value) for name in shares} == {(0.0, 1.0)}
    assert metrics.is_fraction_metric("test/mlp_accuracy")
    assert not metrics.is_fraction_metric("test/condition_mse")


@given(st.integers(2, 20), st.none() | st.integers(2, 20), st.none() | st.integers(0, 3))
def test_what_data_can_have(classes: int, groups: int | None, condition: int | None) -> None:
    facts = Facts(classes, groups, (3, 8, 8), condition)
    there = metrics.available_metrics(facts)
    named = [name for name in there if name in metrics.CELLS_BY_GROUP_METRIC]
    assert len(named) == (classes * (groups or 0) if classes * (groups or 0) <= metrics.MAX_GROUP_METRICS else 0)
    assert ("worst_group_accuracy" in there) == (groups is not None)
    assert METRICS["condition_mse"].is_available(facts) == (condition is not None)


def test_a_standard_error_is_a_share_that_is_neither_better_nor_worse() -> None:
    for name in ("accuracy", "shrunk_worst_group_accuracy"):
        assert metrics.find_metric(f"val/{name}_standard_error") is METRICS["standard_error"]
        assert metrics.metric_direction(f"val/{name}_standard_error") is None
        assert metrics.is_fraction_metric(f"val/{name}_standard_error")
    assert not metrics.is_fraction_metric("val/log_loss_standard_error")
    assert "standard_error" not in metrics.searchable_metrics()


def test_inferred_groups_need_no_bias_label_but_a_network_that_finds_them() -> None:
    facts = Facts(3, None, (3, 8, 8))
    inferred = {name for name, metric in METRICS.items() if metric.needs_inferred_groups}
    accuracies = {f"inferred_{name}_accuracy" for name in ("unbiased", "conflicting", "worst_group")}
    assert inferred == accuracies | {"inferred_unbiased_log_loss"}
    assert set(metrics.available_metrics(facts, inferred=True)) - set(metrics.available_metrics(facts)) == inferred


def test_the_table_loads_no_library() -> None:
    asked = "import sys; before = set(sys.modules); import study.metrics; print(*sorted(set(sys.modules) - before))"
    asked = f"import typing, dataclasses, functools, math; {asked}"
    told = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert {name.split(".")[0] for name in told.stdout.split()} <= {"study"}


@pytest.mark.parametrize(
    ("metric", "numbers", "told"),
    [
        ("test/worst_group_accuracy", (0.7623, 0.0131), "76.2 ± 1.3%"),
        ("val/equalized_odds", (0.1234, None), "0.123"),
        ("val/loss", (0.00042, 0.0), "0.0004 ± 0.000"),
        ("val/params", (530.0, 0.0), "530"),
        ("val/params", (2378.0, None), "2378"),
        ("val/params", (530.0, 1.5), "530.0 ± 1.5"),
        ("val/weights", (30.6667, 1.5275), "30.7 ± 1.5"),
        ("val/weights", (30.6667, 0.01), "30.7 ± 0.0"),
        ("val/log_loss", (0.345, 0.00001), "0.345 ± 0.000"),
        ("val/log_loss", (0.0004, 0.00001), "0.0004 ± 1e-05"),
        ("val/weights", (1530.5, 12.2), "1530 ± 12"),
        ("val/log_loss", (1.1825, 0.0131), "1.183 ± 0.013"),
        ("val/equalized_odds", (1.0, 0.0), "1.000 ± 0.000"),
    ],
)
def test_people_are_shown_accuracies_in_percent_and_all_else_so_that_it_shows(
    metric: str, numbers: tuple[float, float | None], told: str
) -> None:
    assert format_metric(metric, *numbers) == told


def test_an_interval_is_printed_in_the_same_unit() -> None:
    assert format_metric_range("val/accuracy", 0.5, 0.625) == "50.0 to 62.5%"
    assert format_metric_range("val/loss", 0.0004, 1.5) == "0.0004 to 1.500"
    assert format_metric_range("val/weights", 27.1, 34.25) == "27.1 to 34.2"
