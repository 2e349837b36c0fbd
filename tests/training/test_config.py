"""The configuration of a trial."""

import json

from helpers import quickstart

from study.training.config import TrialConfig


def test_a_configuration_survives_json() -> None:
    config = quickstart("train.lr_milestones=[0.5, 0.75]").trial_config({"method.lambda": 1.5}, seed=4)
    again = TrialConfig.from_document(json.loads(json.dumps(config.to_document())))
    assert again == config
    assert again.train.seed == 4
    assert again.train.lr_milestones == (0.5, 0.75)


def test_the_studys_seed_is_the_trials_unless_another_is_given() -> None:
    spec = quickstart("train.seed=7")
    assert spec.trial_config({}).train.seed == 7
    assert spec.trial_config({}, seed=0).train.seed == 0
