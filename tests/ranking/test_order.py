"""Which configuration is best."""

import math
import statistics
from typing import Any

import numpy as np
import pytest
import torch
from helpers import Told, quickstart, record
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri

from study import ranking
from study.home.record import StudyRecord
from study.ranking import Results, SeedStatistics, seed_statistics
from study.ranking.trial_statistics import statistics_of_single_evaluation
from study.training.standard_errors import binomial_error

SPEC = quickstart("search.confirm={top: 2, seeds: 2}")
FAIR = quickstart("search.confirm={top: 2, seeds: 2}", "search.metric=val/equalized_odds")
ALONE = quickstart("search.confirm={top: 0}")


def numbers(found: list[ranking.Candidate]) -> list[int]:
    return [one.trial.number for one in found]


def test_one_value_has_no_deviation_and_none_no_spread() -> None:
    assert seed_statistics([0.5]) == SeedStatistics(0.5, None, 1)
    assert seed_statistics([None]) is None
    assert seed_statistics([]) is None


def test_the_last_epoch_counts_not_the_best() -> None:
    found = record(Told("search", [0.9, 0.1]), Told("search", [0.1, 0.2]))
    assert numbers(Results(ALONE, found).ranked_by_search_value) == [1, 0]


def test_where_less_is_better_the_least_is_best() -> None:
    odds = [Told("search", [value], metric="val/equalized_odds") for value in (0.3, 0.1, 0.2)]
    assert numbers(Results(FAIR, record(*odds)).ranked_all) == [1, 2, 0]


def confirmed(*states: str) -> StudyRecord:
    """A lucky trial 1, a steady trial 2, a third; their repeats and the baseline's on two seeds."""
    values = {0: [0.3, 0.3], 1: [0.5, 0.5], 2: [0.8, 0.6]}
    trials = [Told("baseline", [0.3]), Told("search", [0.9]), Told("search", [0.8]), Told("search", [0.7])]
    repeats = [(number, seed, value) for number, pair in values.items() for seed, value in enumerate(pair, 1)]
    for (number, seed, value), state in zip(repeats, states, strict=False):
        trials.append(Told("confirm", [value], state, seed=seed, repeats=number))
    return record(*trials)


def test_confirmed_means_decide_once_all_are_confirmed() -> None:
    found = Results(SPEC, confirmed(*["complete"] * 6)).ranked_all
    assert numbers(found) == [2, 1, 0, 3]
    assert found[0].confirm_statistics == SeedStatistics(pytest.approx(0.7), pytest.approx(0.02**0.5), 2)
    assert [trial.seed for trial in found[0].confirm_trials] == [1, 2]


@pytest.mark.parametrize(
    "states", [[], ["complete"] * 5, ["complete"] * 5 + ["running"], ["complete"] * 5 + ["waiting"]]
)
def test_before_that_the_search_decides(states: list[str]) -> None:
    assert numbers(Results(SPEC, confirmed(*states)).ranked_all) == [1, 2, 3, 0]


def test_a_confirmation_that_failed_has_ended_and_its_mean_is_of_the_others() -> None:
    found = Results(SPEC, confirmed(*["complete"] * 5, "failed")).ranked_all
    assert numbers(found) == [2, 1, 0, 3]
    assert found[0].confirm_statistics == SeedStatistics(0.8, None, 1)


def test_a_configuration_none_of_whose_confirmations_completed_is_behind() -> None:
    found = Results(SPEC, confirmed("complete", "complete", "failed", "failed", "complete", "complete")).ranked_all
    assert numbers(found) == [2, 0, 1, 3]


def test_a_baseline_that_nothing_beats_is_best() -> None:
    found = record(Told("baseline", [0.9]), Told("search", [0.5]))
    assert numbers(Results(ALONE, found).ranked_all) == [0, 1]
    assert numbers(Results(ALONE, found).ranked_search) == [1]
    baseline = Results(ALONE, found).baseline
    assert baseline is not None
    assert baseline.trial.number == 0


def test_what_is_to_confirm() -> None:
    found = confirmed()
    assert [trial.number for trial in Results(SPEC, found).confirmation.trials_to_confirm()] == [0, 1, 2]
    assert [trial.number for trial in Results(SPEC, found).confirmation.trials_to_confirm(top=False)] == [0]
    assert Results(ALONE, found).confirmation.trials_to_confirm() == []


def test_spreads_are_of_validation_and_of_test_metrics_that_were_read() -> None:
    trials = record(
        Told("search", [0.3, 0.9]),
        Told("confirm", [0.1, 0.5], seed=1, repeats=0, tested={"test/accuracy": 0.4}),
        Told("confirm", [0.2, 0.7], seed=2, repeats=0),
    ).trials
    found = ranking.statistics_by_metric(SPEC.objective, list(trials.values())[1:])
    assert set(found) == {"val/accuracy", "test/accuracy"}
    assert found["val/accuracy"] == SeedStatistics(pytest.approx(0.6), pytest.approx(0.02**0.5), 2)
    assert found["test/accuracy"] == SeedStatistics(0.4, None, 1)
    assert ranking.statistics_by_metric(SPEC.objective, []) == {}


VALUE = st.floats(0, 1) | st.sampled_from([0.5, 0.25])
TRIALS = st.lists(st.tuples(st.sampled_from(["complete", "complete", "pruned", "failed"]), VALUE), max_size=8)


@given(TRIALS)
def test_ranked_is_every_complete_trial_once_in_order(drawn: list[tuple[str, float]]) -> None:
    found = record(*(Told("search", [value], state) for state, value in drawn))
    ranked = Results(ALONE, found).ranked_all
    assert sorted(numbers(ranked)) == [number for number, (state, _) in enumerate(drawn) if state == "complete"]
    order: list[Any] = [(-one.search_value, one.trial.number) for one in ranked]
    assert order == sorted(order)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=6))
def test_spread_is_that_of_the_statistics_module(values: list[float]) -> None:
    found = seed_statistics(values)
    assert found == SeedStatistics(statistics.fmean(values), statistics.stdev(values), len(values))


@given(TRIALS, st.lists(VALUE, min_size=6, max_size=6))
def test_a_part_of_the_confirmation_changes_no_order(drawn: list[tuple[str, float]], means: list[float]) -> None:
    trials = [Told("baseline", [0.4]), *(Told("search", [value], state) for state, value in drawn)]
    before = Results(SPEC, record(*trials)).ranked_all
    chosen = Results(SPEC, record(*trials)).confirmation.trials_to_confirm()
    repeats = [(one.number, seed) for one in chosen for seed in (1, 2)]
    more = [
        Told("confirm", [value], seed=seed, repeats=number)
        for (number, seed), value in zip(repeats[:-1], means, strict=False)
    ]
    assert numbers(Results(SPEC, record(*trials, *more)).ranked_all) == numbers(before)


@pytest.mark.parametrize(("samples", "seeds", "share"), [(17, 2, 0.5), (17, 3, 0.9), (60, 3, 0.5), (400, 5, 0.9)])
def test_the_interval_of_a_value_holds_for_small_splits_and_few_seeds(samples: int, seeds: int, share: float) -> None:
    """Networks of several seeds, alike in which samples they find hard: what they are right on, of all that there are,
    lies in the interval as often as it says or a little more often; within the spread over seeds it lies rarely."""
    rng, times, of_seeds, of_items = np.random.default_rng(0), 400, 0.2, 1.5
    scale = (1 + of_seeds**2 + of_items**2) ** 0.5
    hard = rng.normal(0, of_items, (times, 1, samples)) + rng.normal(0, of_seeds, (times, seeds, 1))
    right = (ndtri(share) * scale + hard + rng.normal(size=(times, seeds, samples)) > 0).sum(2)
    errors = binomial_error(torch.from_numpy(right).double(), torch.full(right.shape, float(samples)).double()).mean(1)
    found = [
        SeedStatistics(float(row.mean()), float(row.std(ddof=1)), seeds, float(error))
        for row, error in zip(right / samples, errors, strict=True)
    ]
    ends = [spread.confidence_interval() or (0.0, 0.0) for spread in found]
    assert 0.93 <= sum(low <= share <= high for low, high in ends) / times <= 0.998
    assert all(0 <= low <= high <= 1 for low, high in ends)
    assert sum(abs(spread.mean - share) <= (spread.standard_deviation or 0) for spread in found) / times < 0.9


def test_the_interval_of_a_loss_has_no_end_above() -> None:
    def interval(mean: float, deviation: float | None, count: int) -> tuple[float, float]:
        loss = SeedStatistics(mean, deviation, count, split_error=0.2, is_proportion=False, min_value=0.0)
        return loss.confidence_interval() or (0.0, 0.0)

    low, high = interval(1.4, 0.1, 3)
    assert low * high == pytest.approx(1.4**2), "of the logarithm, so that it reaches further up"
    assert 1.96 * 0.208 / 1.4 < math.log(high / 1.4) < 2.2 * 0.208 / 1.4
    assert interval(0.1, None, 1) == (0.0, pytest.approx(0.492, abs=1e-3))


@pytest.mark.parametrize(("samples", "least"), [(15, 0.9), (100, 0.93)])
def test_the_interval_of_a_mean_of_skewed_losses_holds(samples: int, least: float) -> None:
    """To each side alike it held in 88% of few: a mean without the rare large losses has too small an error, too."""
    draws = np.random.default_rng(0).exponential(1.0, (2000, samples))
    errors = draws.std(1, ddof=1) / samples**0.5
    found = [
        SeedStatistics(mean, None, 1, split_error=error, is_proportion=False, min_value=0.0).confidence_interval()
        for mean, error in zip(draws.mean(1).tolist(), errors.tolist(), strict=True)
    ]
    assert sum(low <= 1 <= high for low, high in filter(None, found)) / len(draws) >= least


def test_the_interval_of_a_metric_of_the_users_own_may_be_below_zero() -> None:
    """As of a reward or an explained variance."""
    own = statistics_of_single_evaluation({"val/reward": -3.0, "val/reward_standard_error": 0.1}, "val/reward", 1)
    assert own.confidence_interval() == (pytest.approx(-3.196, abs=1e-3), pytest.approx(-2.804, abs=1e-3))
