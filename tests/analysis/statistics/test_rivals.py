"""The best against the runner-up, and the set of those that cannot be told from it."""

import pytest

from study.analysis.statistics.rivals import find_rivals
from study.ranking import Results
from study.ranking.difference import selection_adjusted_t
from study.spec import load_study


def study_of(writer, *values: tuple[float, ...], metric: str = "val/accuracy"):
    """A baseline, and configurations in the order of their search values, each on fresh seeds."""
    study = writer()
    study.trial("baseline", [0.5], metric=metric)
    for place in range(len(values)):
        value = 0.9 - 0.01 * place
        study.trial("search", [value], params={"method.alpha": 0.1 + place / 100}, metric=metric)
    for number, of_seeds in enumerate([(0.5, 0.51, 0.52), *values]):
        for seed, value in enumerate(of_seeds, 1):
            study.trial("confirm", [value], seed=seed, repeats=number, metric=metric)
    return study.record()


@pytest.fixture(scope="module")
def of_four():
    return load_study("fairkl_digits", ["search.confirm={top: 4, seeds: 3}"])


CLEAR = ((0.80, 0.81, 0.82), (0.79, 0.805, 0.80), (0.30, 0.305, 0.33), (0.78, 0.83, 0.79))


def test_what_cannot_be_told_from_the_best_and_the_runner_up_in_pairs(of_four, writer):
    found = find_rivals(Results(of_four, study_of(writer, *CLEAR)))
    assert (found.undecided_trials, found.runner_up.trial_number) == ((4, 2), 4)
    assert (found.difference_to_runner_up.is_paired, found.difference_to_runner_up.n_candidates) == (True, 4)
    assert found.difference_to_runner_up.value == pytest.approx(0.01)
    reach = selection_adjusted_t(0.975, 2, 4) * 0.026457513 / 3**0.5  # 0.02, -0.02 and 0.03 by seed
    assert found.difference_to_runner_up.interval == pytest.approx((0.01 - reach, 0.01 + reach))


def test_where_less_is_better(writer):
    spec = load_study("fairkl_digits", ["search.confirm={top: 2, seeds: 3}", "search.metric=val/equalized_odds"])
    values = ((0.10, 0.11, 0.12), (0.50, 0.52, 0.53))
    found = find_rivals(Results(spec, study_of(writer, *values, metric="val/equalized_odds")))
    assert found.undecided_trials == ()
    assert found.difference_to_runner_up.interval[1] < 0


def test_on_one_seed_nothing_is_told_apart(spec, writer):
    study = writer()
    for value in (0.1, 0.9, 0.4):
        study.trial("search", [value])
    found = find_rivals(Results(spec, study.record()))
    assert found.undecided_trials == (2, 0)
    assert found.difference_to_runner_up.interval is None


def test_without_two_there_is_nothing_to_say(spec, writer):
    study = writer()
    study.trial("search", [0.5])
    assert find_rivals(Results(spec, study.record())) is None
    assert find_rivals(Results(spec, writer().record())) is None
