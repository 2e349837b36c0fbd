"""What more search would gain: exact for an exponential tail, and refused where it cannot be known."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.simulations import remaining_gain as simulated
from helpers import Told, quickstart, record, write_ledger

from study.commands import status
from study.commands.final_training import final_study
from study.errors import UserError
from study.home.folder import Home
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.remaining_gain import SoFar, limit, remaining_gain, sentence

RANDOM = ("search.sampler=random", "search.early_stopping.name=none", "search.confirm={top: 0}")
SPEC = quickstart(*RANDOM)
VALUES = [0.5, 0.52, 0.6, 0.61, 0.63, 0.64, 0.65, 0.66, 0.665, 0.67, 0.68, 0.69]


def told(values: list[float], baseline: float = 0.4, state: str = "complete") -> list[Told]:
    """A baseline and a trial for each value."""
    trials = [Told("search", [value], state, {"method.alpha": place / 100}) for place, value in enumerate(values, 1)]
    return [Told("baseline", [baseline]), *trials]


def searched(values: list[float], baseline: float = 0.4, state: str = "complete") -> StudyRecord:
    """The record of these."""
    return record(*told(values, baseline, state))


@pytest.mark.parametrize("trials", [10, 24])
def test_the_limit_is_exact_for_an_exponential_tail(trials: int) -> None:
    values = np.random.default_rng(trials).exponential(size=(1500, 2 * trials))
    held = [
        one[trials:].max() - one[:trials].max() <= limit(list(one[:trials]), trials, trials, 0.95) for one in values
    ]
    assert np.mean(held) == pytest.approx(0.95, abs=0.017)  # three standard errors


def test_it_is_said_of_as_many_trials_again() -> None:
    found = remaining_gain(Results(SPEC, searched(VALUES)))
    assert (found.trials, found.further, found.confidence, found.reason) == (12, 12, 0.95, None)
    assert found.gain == pytest.approx(limit(VALUES, 12, 12, 0.95))
    assert sentence(SPEC, found) == (
        f"More search of this kind gains at most {found.gain:.4g} with 95% confidence: as many trials again (12) raise "
        "the best val/accuracy, on the seed of the search, by no more."
    )
    odds = quickstart(*RANDOM, "search.metric=val/equalized_odds", "search.replicates=2")
    assert "lower the best val/equalized_odds, on the seeds of the search" in sentence(odds, found)


def test_of_values_that_are_all_the_same_nothing_can_be_said() -> None:
    """As a worst group that no configuration gets right: 0 of it says nothing of the next configurations."""
    found = remaining_gain(Results(SPEC, searched([0.0] * 30, baseline=0.0)))
    assert found.gain is None
    assert found.reason == "All 30 have the same value, 0, so nothing says how far others lie apart."
    assert remaining_gain(Results(SPEC, searched([1.0] * 30))).gain == 0.0, "no accuracy is above 1"


def test_it_grows_with_the_spacings_at_the_top_and_ends_at_the_metrics_bound() -> None:
    near, far = (limit([*VALUES[:-1], top], 12, 12, 0.95) for top in (0.681, 0.75))
    assert near < far
    assert remaining_gain(Results(SPEC, searched([*VALUES, 1.0]))).gain == 0.0
    wide = remaining_gain(Results(SPEC, searched([place / 20 for place in range(1, 20)])))
    assert wide.gain == pytest.approx(0.05)


def test_values_that_tie_at_the_top_may_still_be_beaten_by_a_step() -> None:
    assert limit([0.5, 0.52, *[0.6] * 10], 12, 12, 0.95) == pytest.approx(0.02)


def test_a_given_configuration_that_is_best_is_what_must_be_beaten() -> None:
    alone, beaten = (remaining_gain(Results(SPEC, searched(VALUES, baseline))) for baseline in (0.4, 0.7))
    assert alone.gain is not None
    assert beaten.gain == pytest.approx(max(0.0, 0.69 + alone.gain - 0.7))
    assert remaining_gain(Results(SPEC, searched(VALUES, baseline=1.0))).gain == 0.0
    tpe = remaining_gain(Results(quickstart("search.sampler=tpe"), searched(VALUES, baseline=0.7)))
    assert tpe.gain is None
    assert tpe.reason is not None
    assert tpe.reason.startswith("The best configuration was given to the search")


def test_pruned_trials_are_known_not_to_be_the_best() -> None:
    found = remaining_gain(Results(SPEC, record(*told(VALUES), *[Told("search", [0.3], "pruned")] * 12)))
    assert (found.trials, found.further) == (24, 24)
    assert found.gain == pytest.approx(limit(VALUES, 24, 24, 0.95))


@pytest.mark.parametrize(
    ("given", "trials", "reason"),
    [
        ([], searched(VALUES[:9]), "9 of the sampler's trials have ended, and at least 10 are needed."),
        ([], searched(VALUES, state="pruned"), "0 of them are complete, and at least 4 are needed."),
        (
            ["search.constraints=['val/accuracy <= 0.55']"],
            searched(VALUES),
            "2 of them are complete and keep the constraints, and at least 4 are needed.",
        ),
        (["search.sampler=cmaes"], searched(VALUES), "The estimate was not validated for the sampler cmaes."),
        (["search.metric=[val/accuracy, val/equalized_odds]"], searched(VALUES), "With several metrics"),
    ],
)
def test_what_cannot_be_known_has_a_reason(given: list[str], trials: StudyRecord, reason: str) -> None:
    no_choices = ["search.space.method.epsilon=0.1"] if "search.sampler=cmaes" in given else []
    found = remaining_gain(Results(quickstart(*RANDOM, *no_choices, *given), trials))
    assert found.gain is None
    assert found.reason is not None
    assert found.reason.startswith(reason)
    assert sentence(SPEC, found) == f"What more search would gain is not known. {found.reason}"


def test_neither_a_grid_nor_a_final_training_goes_on() -> None:
    choices = ("search.space.method.alpha={choices: [0.1, 0.2]}", "search.space.method.lambda=0.5")
    grid = quickstart(*choices, "search.sampler=grid")
    assert "A grid ends with its last cell" in str(remaining_gain(Results(grid, searched(VALUES))).reason)
    finals = record(Told("final", [0.5]))
    assert remaining_gain(Results(final_study(SPEC, [0, 1]), finals)).reason == "A final training searches nothing."


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["search.sampler=gp"], "search.stop: given with sampler gp"),
        (["search.metric=[val/accuracy, val/equalized_odds]"], "search.stop: given for several metrics"),
        (["search.trials=21"], "search.stop.trials: 20 given, allowed is less than 20"),
        (["search.stop.gain=0"], "search.stop.gain: 0"),
        (["search.stop.gain=-1.0"], "search.stop.gain: -1.0"),
        (["search.stop.confidence=1.0"], "search.stop.confidence: 1.0"),
        (["search.stop.trials=5"], "search.stop.trials: 5"),
        (["search.stop.by=5"], "search.stop.by: unknown key"),
    ],
)
def test_what_contradicts_it_is_refused(given: list[str], message: str) -> None:
    with pytest.raises(UserError) as raised:
        quickstart("search.trials=50", "search.stop={gain: 0.01}", *given)
    assert message in str(raised.value)


def test_checked_after_each_trial_the_statement_is_more_careful() -> None:
    so_far = SoFar(VALUES, 0.0, len(VALUES))
    once, often = (so_far.gain(SPEC, 0.95, checked_often=often) for often in (False, True))
    assert once < often
    stopping = quickstart(*RANDOM, "search.trials=50", "search.stop={gain: 0.01, confidence: 0.9}")
    said = remaining_gain(Results(stopping, searched(VALUES)))
    assert said.confidence == 0.9
    assert said.gain == pytest.approx(so_far.gain(stopping, 0.9, checked_often=True))


def test_status_says_it(tmp_path: Path) -> None:
    folder = Home(tmp_path).create(SPEC)
    write_ledger(folder.ledger_file, *told(VALUES))
    document = status.document(folder)
    assert document.remaining.gain.further == 12
    assert "More search of this kind gains at most" in " ".join(status.lines(document))


@pytest.mark.slow
def test_simulated_searches_gain_no_more() -> None:
    generator = np.random.default_rng(3)
    for name, values in simulated.independent(generator, 200, 48).items():
        row = simulated.statement(name, values)
        assert row.holds, row
    assert simulated.statement("recorded", simulated.recorded(generator, 200, 48)).holds
    exponential = np.clip(generator.exponential(0.02, (100, 60)) + 0.6, 0, 1)
    assert simulated.ending("an exponential tail", exponential, 0.06).holds
