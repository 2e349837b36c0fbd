"""One trial: a configuration and a data set in, metrics per epoch out. No Ray, no Optuna, no MLflow."""

from typing import TYPE_CHECKING

from study.catalogue import later
from study.training.config import TrainOptions, TrialConfig

if TYPE_CHECKING:
    from study.training.checkpoint import PAUSE_PER_WRITE, UnusableFileError
    from study.training.diverged import DivergedError
    from study.training.function_trial import FunctionTrial
    from study.training.trial import Trial

__all__ = [
    "PAUSE_PER_WRITE",
    "DivergedError",
    "FunctionTrial",
    "TrainOptions",
    "Trial",
    "TrialConfig",
    "UnusableFileError",
]

__getattr__ = later(
    dict.fromkeys(("PAUSE_PER_WRITE", "UnusableFileError"), "study.training.checkpoint")
    | {"DivergedError": "study.training.diverged", "Trial": "study.training.trial"}
    | {"FunctionTrial": "study.training.function_trial"}
)
