"""A trial takes a domain that it is given as it is."""

import optuna
from optuna.distributions import CategoricalDistribution

from study.upstream.optuna_trials import suggest


class Own(CategoricalDistribution):
    """One that can be told from Optuna's."""


def test_the_value_is_of_the_domain_and_the_trial_knows_it() -> None:
    domain = Own(("a", "b"))
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    assert suggest(trial, "x", domain) in ("a", "b")
    assert type(trial.distributions["x"]) is Own
