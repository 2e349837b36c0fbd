"""One trial: a configuration and a data set in, metrics per epoch out. No Ray, no Optuna, no MLflow."""

from typing import TYPE_CHECKING

from study.catalogue import lazy_getattr
from study.training.config import TrainOptions, TrialConfig

if TYPE_CHECKING:
    from study.training.checkpoint import MIN_PAUSE_PER_WRITE_TIME, UnusableCheckpointError
    from study.training.diverged import DivergedError
    from study.training.function_trial import FunctionTrial
    from study.training.trial import Trial

__all__ = [
    "MIN_PAUSE_PER_WRITE_TIME",
    "DivergedError",
    "FunctionTrial",
    "TrainOptions",
    "Trial",
    "TrialConfig",
    "UnusableCheckpointError",
]

__getattr__ = lazy_getattr(
    dict.fromkeys(("MIN_PAUSE_PER_WRITE_TIME", "UnusableCheckpointError"), "study.training.checkpoint")
    | {"DivergedError": "study.training.diverged", "Trial": "study.training.trial"}
    | {"FunctionTrial": "study.training.function_trial"}
)
