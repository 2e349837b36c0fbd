"""The configuration of a trial."""

from helpers import quickstart


def test_the_studys_seed_is_the_trials_unless_another_is_given() -> None:
    spec = quickstart("train.seed=7")
    assert spec.trial_config({}).train.seed == 7
    assert spec.trial_config({}, seed=0).train.seed == 0
