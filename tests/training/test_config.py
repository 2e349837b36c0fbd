"""The configuration of a trial."""

from helpers import quickstart

from study.training.config import TrialConfig


def test_the_studys_seed_is_the_trials_unless_another_is_given() -> None:
    spec = quickstart("train.seed=7")
    assert spec.trial_config({}).train.seed == 7
    assert spec.trial_config({}, seed=0).train.seed == 0


def test_a_configuration_of_a_version_with_keys_that_were_removed_can_be_read() -> None:
    config = quickstart().trial_config({})
    now = config.to_document()
    before = {**now, "train": {**now["train"], "keep_epochs": [], "compile": False}}
    assert TrialConfig.from_document(before) == config
