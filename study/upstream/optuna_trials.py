"""A parameter of an Optuna trial from a domain object of one's own."""

from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import Trial


def suggest(trial: Trial, key: str, domain: BaseDistribution) -> Any:
    """The value that the trial's sampler gives to a key. `suggest_categorical` would make a domain of its own from the
    choices, in which 0 and false are one."""
    return trial._suggest(key, domain)
