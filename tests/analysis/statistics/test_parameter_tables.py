"""Tables of parameters. The expected numbers are worked out by hand."""

import math
from typing import Any

import pandas as pd
import pytest
from helpers import Told, quickstart, record
from hypothesis import given, settings
from hypothesis import strategies as st

from study.analysis import ablation, sensitivity, trials_frame
from study.analysis.statistics.parameter_tables import CELL_STATISTICS, MetricCell, metric_cell_of_trials
from study.errors import UserError
from study.ranking import Results, seed_statistics

SPEC = quickstart()
METRIC = "val/accuracy"


def told(alpha: float, value: float | None, seed: int = 0, state: str = "complete", **given: Any) -> Told:
    params = {"method.alpha": alpha, "method.lambda": given.pop("lambda_", 0.5), "method.epsilon": 0.0}
    return Told(given.pop("stage", "search"), [0.1, value], state, params, seed, **given)


def frame(*trials: Told) -> pd.DataFrame:
    return trials_frame(Results(SPEC, record(*trials)))


def test_mean_deviation_and_seeds_of_one_configuration() -> None:
    found = ablation(
        frame(*(told(0.1, value, seed) for seed, value in enumerate((0.5, 0.6, 0.8)))), "method.alpha", METRIC
    )
    row = found.loc[0.1]
    assert row["mean"] == pytest.approx(1.9 / 3)
    assert row["sd"] == pytest.approx(((0.4**2 + 0.1**2 + 0.5**2) / 9 / 2) ** 0.5)  # deviations in thirds
    assert (row["n"], row["over"], row["seeds"], row["values"]) == (3, "seeds", (0, 1, 2), (0.5, 0.6, 0.8))
    assert found.columns.name == METRIC
    assert tuple(found.columns) == CELL_STATISTICS


def test_of_several_configurations_each_counts_once_with_its_mean() -> None:
    trials = [told(0.1, 0.4, 0), told(0.1, 0.6, 1), told(0.1, 0.8, 0, lambda_=1.0)]
    row = ablation(frame(*trials), "method.alpha", METRIC).loc[0.1]
    assert (row["values"], row["over"], row["n"], row["seeds"]) == ((0.5, 0.8), "configurations", 2, (0, 1))
    assert (row["mean"], row["sd"]) == (pytest.approx(0.65), pytest.approx(0.045**0.5))


def test_what_did_not_run_to_the_end_is_counted_and_in_no_mean() -> None:
    trials = [told(0.1, 0.5), *(told(0.1, 0.9, state=state) for state in ("pruned", "pruned", "failed", "running"))]
    row = ablation(frame(*trials), "method.alpha", METRIC).loc[0.1]
    assert row[["mean", "n", "pruned", "failed", "open"]].to_list() == [0.5, 1, 2, 1, 1]
    assert math.isnan(row["sd"])


def test_a_metric_that_is_not_a_number_is_unread() -> None:
    row = ablation(frame(told(0.1, None), told(0.1, 0.5, 1)), "method.alpha", METRIC).loc[0.1]
    assert row[["n", "unread", "seeds"]].to_list() == [1, 1, (1,)]


def test_the_same_configuration_and_seed_counts_once() -> None:
    row = ablation(frame(told(0.1, 0.5), told(0.1, 0.5), told(0.1, 0.7, 1)), "method.alpha", METRIC).loc[0.1]
    assert row[["mean", "n", "repeated"]].to_list() == [pytest.approx(0.6), 2, 1]


def test_replicates_count_with_their_trial_and_confirmed_ones_without_it() -> None:
    searched = [told(0.1, 0.9), told(0.1, 0.5, 1, stage="replicate", repeats=0)]
    assert ablation(frame(*searched), "method.alpha", METRIC).loc[0.1, "values"] == (0.9, 0.5)
    fresh = [told(0.1, value, seed, stage="confirm", repeats=0) for seed, value in ((2, 0.6), (3, 0.4))]
    assert ablation(frame(*searched, *fresh), "method.alpha", METRIC).loc[0.1, "values"] == (0.6, 0.4)


def test_configurations_of_an_ablation_are_no_part_of_a_table() -> None:
    trials = [told(0.1, 0.9), told(0.2, 0.5), told(0.3, 0.1, 1, stage="ablation", repeats=1)]
    assert ablation(frame(*trials), "method.alpha", METRIC).index.to_list() == [0.1, 0.2]


def test_a_test_metric_is_that_of_the_trials_that_were_read() -> None:
    trials = [told(0.1, 0.9), told(0.1, 0.6, 1, stage="confirm", repeats=0, tested={"test/accuracy": 0.55})]
    row = ablation(frame(*trials), "method.alpha", "test/accuracy").loc[0.1]
    assert row[["mean", "n", "unread"]].to_list() == [0.55, 1, 1]


def test_sensitivity_is_the_matrix_of_two_parameters() -> None:
    trials = [told(0.1, 0.5), told(1.0, 0.6), told(0.1, 0.7, lambda_=1.0)]
    found = sensitivity(frame(*trials), "method.alpha", "method.lambda", METRIC)
    expected = pd.DataFrame(
        [[0.5, 0.7], [0.6, math.nan]],
        pd.Index([0.1, 1.0], name="method.alpha"),
        pd.Index([0.5, 1.0], name="method.lambda"),
    )
    pd.testing.assert_frame_equal(found["mean"], expected)
    assert found["n"].to_numpy().tolist() == [[1, 1], [1, 0]]
    assert found.columns.names == [METRIC, "method.lambda"]


def test_columns_of_two_parameters_are_their_combinations_that_there_are() -> None:
    trials = [told(0.1, 0.5), told(1.0, 0.6), told(0.1, 0.7, lambda_=1.0)]
    found = sensitivity(frame(*trials), "method.epsilon", ["method.lambda", "method.alpha"], METRIC)
    assert list(found["mean"].columns) == [(0.5, 0.1), (0.5, 1.0), (1.0, 0.1)]


def test_random_trials_are_binned() -> None:
    trials = [told(10 ** (-3 + 0.3 * place), 0.5 + 0.01 * place) for place in range(11)]
    found = ablation(frame(*trials), "method.alpha", METRIC, bins=3)
    assert list(found.index) == ["[0.001, 0.0106)", "[0.0106, 0.105)", "[0.105, 1.0)"]
    assert list(found["n"]) == [4, 3, 4]
    assert found["mean"].iloc[-1] == pytest.approx((0.57 + 0.58 + 0.59 + 0.60) / 4)


def test_a_metric_that_no_trial_has_yet_gives_empty_cells() -> None:
    found = ablation(frame(told(0.1, 0.5)), "method.alpha", "test/lbfgs_accuracy")
    assert found.loc[0.1, ["n", "unread"]].to_list() == [0, 1]


def test_equal_numbers_are_one_configuration_and_true_is_not_1() -> None:
    assert metric_cell_of_trials(frame(told(1.0, 0.6), told(1, 0.7)), METRIC).repeated == 1
    assert metric_cell_of_trials(frame(told(1, 0.6), told(True, 0.7)), METRIC).values == (0.6, 0.7)
    assert metric_cell_of_trials(frame(), METRIC) == MetricCell(METRIC)


@pytest.mark.parametrize(
    ("by", "metric", "said"),
    [
        ("method.alhpa", METRIC, "'method.alhpa' is not a parameter that differs .* Did you mean 'method.alpha'"),
        ("state", METRIC, "'state' is not a parameter"),
        ("method.alpha", "val/acuracy", "'val/acuracy' is not a metric. Did you mean 'val/accuracy'"),
        ("method.alpha", "accuracy", "'accuracy' is not a metric"),
    ],
)
def test_what_is_not_there_is_refused(by: str, metric: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        ablation(frame(told(0.1, 0.5)), by, metric)


def test_a_parameter_for_rows_and_columns_is_refused() -> None:
    with pytest.raises(UserError, match=r"method\.alpha given for rows and for columns: give it for one of them"):
        sensitivity(frame(told(0.1, 0.5)), "method.alpha", ["method.alpha", "method.lambda"], METRIC)


VALUES = st.none() | st.sampled_from([0.5, 0.6]) | st.floats(0, 1)
STATES = st.sampled_from(["complete", "complete", "pruned", "failed", "running", "waiting"])
TRIALS = st.lists(
    st.builds(
        lambda alpha, lambda_, value, seed, state: told(alpha, value, seed, state, lambda_=lambda_),
        st.sampled_from([0.1, 1.0]) | st.floats(0.001, 1),
        st.sampled_from([0.5, 1.0]),
        VALUES,
        st.integers(0, 2),
        STATES,
    ),
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=15)
@given(TRIALS)
def test_every_trial_is_in_one_cell_and_counted_once(trials: list[Told]) -> None:
    found = sensitivity(frame(*trials), "method.alpha", "method.lambda", METRIC)
    if not trials:
        return
    whole = ablation(frame(*trials), "method.epsilon", METRIC).iloc[0]
    for count in ("pruned", "failed", "open", "unread"):
        assert found[count].to_numpy().sum() == whole[count]
    complete = sum(trial.state == "complete" for trial in trials)
    read = [trial for trial in trials if trial.state == "complete" and trial.values[-1] is not None]
    assert whole["unread"] == complete - len(read)
    assert whole["repeated"] == len(read) - len({(*trial.params.values(), trial.seed) for trial in read})
    assert whole[["pruned", "failed", "open"]].sum() == len(trials) - complete


@settings(max_examples=15)
@given(TRIALS)
def test_statistics_are_those_of_the_values(trials: list[Told]) -> None:
    found = ablation(frame(*trials), ["method.alpha", "method.lambda"], METRIC)
    for _, row in found.iterrows():
        expected = seed_statistics(row["values"])
        if expected is None:
            assert row["n"] == 0
            assert math.isnan(row["mean"])
            continue
        assert (row["mean"], row["n"]) == (expected.mean, expected.count)
        assert (
            math.isnan(row["sd"]) if expected.standard_deviation is None else row["sd"] == expected.standard_deviation
        )
        assert row["over"] == "configurations" or len(row["seeds"]) == row["n"]
