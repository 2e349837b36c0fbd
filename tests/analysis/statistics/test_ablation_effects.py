"""What each step from the baseline to the best is worth: exact sums, the truth found, the promises kept."""

import numpy as np
import pytest
from benchmarks.simulations import ablations
from benchmarks.simulations.ablations import drawn, of, truths, words, worth
from hypothesis import given, settings
from hypothesis import strategies as st

from study.analysis.statistics.ablation_effects import compute_ablation_effects
from study.ranking.ablation_steps import ablation_configurations

EXACT = {frozenset(): 0.50, frozenset({0}): 0.60, frozenset({1}): 0.55, frozenset({0, 1}): 0.75}
LUCK = {3: 0.0, 4: 0.01, 5: -0.02}


def test_effects_by_hand():
    values = {moved: {seed: mean + luck for seed, luck in LUCK.items()} for moved, mean in EXACT.items()}
    found = compute_ablation_effects(values, words(2))
    worths = {(effect.kind, effect.label): round(effect.difference.value, 9) for effect in found if effect.difference}
    assert worths == {
        ("path", "+ knob 0 = 1"): 0.10,
        ("path", "+ knob 1 = 1"): 0.15,
        ("gain", "best against the baseline"): 0.25,
        ("adding", "knob 0 = 1"): 0.10,
        ("adding", "knob 1 = 1"): 0.05,
        ("removing", "knob 0 = 0"): 0.20,
        ("removing", "knob 1 = 0"): 0.15,
        ("interaction", "knob 0"): 0.10,
        ("interaction", "knob 1"): 0.10,
    }
    assert [round(effect.statistics.mean, 4) for effect in found if effect.kind == "path"] == [0.4967, 0.5967, 0.7467]
    assert found[0].difference is None


@pytest.mark.slow
@given(st.integers(1, 6), st.integers(2, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_the_steps_of_the_path_sum_to_the_gain_whatever_the_values(count: int, seeds: int, at: int):
    rng = np.random.default_rng(at)
    values = {moved: dict(enumerate(rng.uniform(0, 1, seeds))) for moved in ablation_configurations(count)}
    found = compute_ablation_effects(values, words(count))
    (gain,) = of(found, "gain")
    assert sum(effect.difference.value for effect in of(found, "path")) == pytest.approx(gain.difference.value)


def test_without_a_trial_on_one_seed_the_path_still_sums_and_the_others_use_their_seeds():
    rng = np.random.default_rng(0)
    values = drawn(worth(1.0, 0.5, 0.0), 3, 4, rng)
    del values[frozenset({0, 1})][2]
    found = compute_ablation_effects(values, words(3))
    (gain,) = of(found, "gain")
    assert {effect.n_seed_pairs for effect in of(found, "path")} == {gain.n_seed_pairs} == {3}
    assert sum(effect.difference.value for effect in of(found, "path")) == pytest.approx(gain.difference.value)
    assert [effect.n_seed_pairs for effect in of(found, "adding")] == [4, 4, 4]
    assert [effect.n_seed_pairs for effect in of(found, "removing")] == [4, 4, 3]


def test_without_any_trial_of_a_configuration_there_is_no_gain_to_divide():
    values = drawn(worth(1.0, 0.5), 2, 3, np.random.default_rng(0)) | {frozenset({0}): {}}
    found = compute_ablation_effects(values, words(2))
    assert not of(found, "gain")
    assert len(of(found, "adding")) == len(of(found, "removing")) == 1
    assert not of(found, "interaction")


def test_one_step_is_the_whole_gain():
    found = compute_ablation_effects(drawn(worth(1.0), 1, 3, np.random.default_rng(0)), words(1))
    assert [effect.kind for effect in found] == ["path", "path", "gain"]
    assert found[1].difference == found[2].difference


def test_intervals_are_wider_the_more_steps_there_are():
    """The same first step, alone and among five."""
    rng = np.random.default_rng(0)
    values = drawn(worth(1.0, 0.0, 0.0, 0.0, 0.0), 5, 4, rng)
    best = {frozenset(): values[frozenset()], frozenset({0}): values[frozenset({0})]}
    among, alone = (
        of(compute_ablation_effects(each, words(count)), "path")[0].difference
        for each, count in ((values, 5), (best, 1))
    )
    assert among.value == alone.value
    assert among.interval[1] - among.interval[0] > 1.5 * (alone.interval[1] - alone.interval[0])


def test_a_large_worth_is_found_with_its_sign_and_its_interaction():
    truth = worth(20.0, -10.0, both=15.0)
    found = compute_ablation_effects(drawn(truth, 2, 5, np.random.default_rng(2)), words(2))
    for part in ("path", "adding", "removing", "interaction"):
        clear = [effect.difference.is_clear for effect in of(found, part)]
        signs = [np.sign(effect.difference.value) for effect in of(found, part)]
        assert clear == [True, True]
        assert signs == [np.sign(value) for value in truths(truth, 2, part)]


@pytest.mark.slow
@pytest.mark.parametrize("place", range(3))
def test_promises_hold_in_small_simulations(place: int):
    rng = np.random.default_rng(7)
    rows = (
        lambda: ablations.coverage(worth(1.0, 0.5, 0.0, both=1.0), "some", 3, 4, 200, rng),
        lambda: ablations.claims(worth(0.0, 0.0, 0.0), "none", 3, 4, 200, rng),
        lambda: ablations.chosen(5, 5, 200, rng),
    )[place]()
    for row in rows:
        assert row.holds, row
