"""Curves are compared with enumeration, and what is no independent draw is refused with its reason."""

import math
from dataclasses import replace
from itertools import combinations
from statistics import fmean

import numpy as np
import pytest
from benchmarks.simulations import tuning_curves
from helpers import Told, quickstart, record
from hypothesis import given
from hypothesis import strategies as st

from study.analysis.statistics.compare_studies import BetterFrom, better_from, compared, printed_budgets, to_documents
from study.analysis.statistics.tuning_curve import Draws, curve, draws
from study.commands.final_training import final_study
from study.spec import StudySpec

RANDOM = ("search.sampler=random", "search.early_stopping.name=none", "search.confirm={top: 0}")
SPEC = quickstart(*RANDOM)


def searched(*values: float | None, **further: float) -> list[Told]:
    """A baseline and a trial for each value; None: it fails."""
    told = [
        Told(
            "search", [value], "failed" if value is None else "complete", {"method.alpha": place / 100}, tested=further
        )
        for place, value in enumerate(values, 1)
    ]
    return [Told("baseline", [0.99]), *told]


VALUES = (0.5, 0.7, 0.6, 0.8, 0.75, 0.55)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_the_mean_is_that_over_all_subsets(values: list[float]) -> None:
    frame = curve(Draws("val/accuracy", np.array(values), 1.0, 0.0))
    for size in range(1, len(values) + 1):
        assert frame["mean"][size] == pytest.approx(fmean(max(chosen) for chosen in combinations(values, size)))
    assert (frame["low"] <= frame["median"]).all()
    assert (frame["median"] <= frame["high"]).all()
    for name in ("low", "high", "mean_low", "mean_high"):
        assert (np.diff(frame[name]) >= -1e-12).all()


def test_a_metric_of_which_less_is_better_is_the_mirror() -> None:
    values = np.array(VALUES)
    up = curve(Draws("val/accuracy", values, 4.0, 0.5))
    down = curve(Draws("val/equalized_odds", values - 1, 4.0, 0.5))  # gains of 1 - values
    assert list(down["median"]) == pytest.approx(list(1 - up["median"]))
    assert list(down["high"]) == pytest.approx(list(1 - up["low"]))
    assert list(down["mean_low"]) == pytest.approx(list(1 - up["mean_high"]))
    assert list(up["epochs"]) == [4.0 * k for k in range(1, 7)]


def test_draws_are_the_samplers_own_trials() -> None:
    given = quickstart(*RANDOM, "search.enqueue=[{method.alpha: 0.01, method.lambda: 0.5, method.epsilon: 0.0}]")
    found = draws(given, record(*searched(0.9, *VALUES)))
    assert isinstance(found, Draws)
    assert sorted(found.gains) == sorted(VALUES)


def test_a_failed_trial_and_one_that_misses_a_limit_found_nothing() -> None:
    limited = quickstart(*RANDOM, "search.constraints=['val/accuracy <= 0.78']")
    found = draws(limited, record(*searched(*VALUES, None)))
    assert isinstance(found, Draws)
    assert sorted(found.gains) == [-math.inf, -math.inf, 0.5, 0.55, 0.6, 0.7, 0.75]
    frame = curve(found)
    assert frame["low"][1] == -math.inf
    assert frame["mean"].isna().all()


def test_the_value_of_replicates_is_their_mean() -> None:
    told = searched(*VALUES)
    told += [Told("replicate", [0.4], seed=1, repeats=number) for number in range(1, 7)]
    found = draws(quickstart(*RANDOM, "search.replicates=2"), record(*told))
    assert isinstance(found, Draws)
    assert list(found.gains) == pytest.approx([(value + 0.4) / 2 for value in VALUES])
    assert found.epochs == 2


def test_test_is_drawn_where_every_trial_read_it() -> None:
    found = draws(SPEC, record(*searched(*VALUES, **{"test/accuracy": 0.4})), "test/accuracy")
    assert isinstance(found, Draws)
    assert set(found.gains) == {0.4}
    assert draws(SPEC, record(*searched(*VALUES)), "test/accuracy") == "test/accuracy is not known of every trial."


@pytest.mark.parametrize(
    ("given", "told", "reason"),
    [
        (["search.sampler=tpe"], searched(*VALUES), "Its sampler is tpe"),
        (["search.sampler=qmc"], searched(*VALUES), "Its sampler is qmc"),
        (["search.metric=[val/accuracy, val/equalized_odds]"], searched(*VALUES), "several metrics"),
        ([], searched(*VALUES[:4]), "drew 4 trials"),
        ([], [*searched(*VALUES), Told("search", [0.3], "pruned")], "Early stopping"),
        ([], [*searched(*VALUES), Told("search", [0.3], "running")], "have not ended"),
        ([], searched(*[None] * 6), "No trial is complete"),
        (["search.space.method.alpha=0.1", "search.space.method.lambda=0.5"], searched(*VALUES), "has 4 cells"),
    ],
)
def test_what_is_no_independent_draw_is_refused(given: list[str], told: list[Told], reason: str) -> None:
    found = draws(quickstart(*RANDOM, *given), record(*told))
    assert isinstance(found, str)
    assert reason in found


@pytest.mark.parametrize("limit", ["plateau", "stop"])
def test_a_search_that_its_values_ended_is_refused(limit: str) -> None:
    told = record(*searched(*VALUES))
    told.enough = limit
    assert draws(SPEC, told) == f"search.{limit} ended it, so how many trials there are depends on their values."


def test_a_final_training_draws_nothing() -> None:
    assert draws(final_study(SPEC, [0, 1]), record(Told("final", [0.5]))) == (
        "A final training draws no configurations."
    )


def test_many_trials_have_an_even_selection_of_budgets() -> None:
    frame = curve(Draws("val/accuracy", np.linspace(0, 1, 3000), 1.0, 0.0))
    assert len(frame) <= 200
    assert frame.index[-1] == 3000


def named(name: str, *values: float) -> tuple[StudySpec, object]:
    return replace(SPEC, name=name), record(*searched(*values))


def test_a_better_search_is_better_from_its_first_trials_on() -> None:
    good, bad = np.linspace(0.8, 0.9, 30), np.linspace(0.1, 0.3, 30)
    found = better_from([named("good", *good), named("bad", *bad)])
    (said,) = found["good"]
    assert (said.first, said.than, said.unit, said.known) == (1, "bad", "trials", 30)
    assert str(said).startswith("than bad from 1 to ")
    (other,) = found["bad"]
    assert str(other) == "cannot be told from good up to 30 trials"


def test_trials_of_different_length_are_compared_by_epochs() -> None:
    found = {
        "long": Draws("val/accuracy", np.linspace(0.8, 0.9, 40), 20.0, 0.0),
        "short": Draws("val/accuracy", np.linspace(0.1, 0.3, 40), 5.0, 0.0),
    }
    said = compared(found, found, "long", "short")
    assert (said.unit, said.first, said.known) == ("epochs", 20, 200)


def test_a_study_without_a_curve_is_not_compared() -> None:
    other = quickstart("search.sampler=tpe")
    found = better_from([named("one", *VALUES), (replace(other, name="two"), record(*searched(*VALUES)))])
    assert found["one"][0].reason == f"two: {draws(other, record(*searched(*VALUES)))}"
    documents = [{"name": name, "tuning": to_documents(said)} for name, said in found.items()]
    assert printed_budgets(documents) == ["", ""]


def test_how_it_is_said() -> None:
    assert str(BetterFrom("a", "b", 3, 8, 8)) == "than b from 3 trials on (known up to 8)"
    assert str(BetterFrom("a", "b", 3, 8, 90, "epochs")) == "than b from 3 to 8 epochs, else it cannot be told"


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["skewed values, beta(5, 2)", "accuracies on 10 samples"])
def test_the_band_holds_on_simulated_searches(shape: str) -> None:
    distribution, samples = tuning_curves.SHAPES[shape]
    for row in tuning_curves.bands(shape, distribution, samples, 10, 150):
        assert row.holds, row


def test_equal_searches_are_told_apart_rarely() -> None:
    assert tuning_curves.false_winners(24, 60).holds
