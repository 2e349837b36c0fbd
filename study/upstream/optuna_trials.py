"""A parameter of an Optuna trial, suggested from an existing distribution."""

from optuna.distributions import BaseDistribution
from optuna.trial import Trial

from study.knobs import Scalar


def suggest(trial: Trial, key: str, domain: BaseDistribution) -> Scalar:
    """Return the value that the trial's sampler gives to a key.

    `suggest_categorical` would make a distribution of its own from the choices, in which 0 and false are one.
    """
    return trial._suggest(key, domain)
