"""One trial: a configuration and a data set in, metrics per epoch out. No Ray, no Optuna, no MLflow."""

from typing import TYPE_CHECKING

from study.catalogue import later
from study.training.config import TrainOptions, TrialConfig

if TYPE_CHECKING:
    from study.training.checkpoint import PAUSE, Unusable
    from study.training.diverged import Diverged
    from study.training.function_trial import FunctionTrial
    from study.training.trial import Trial

__all__ = ["PAUSE", "Diverged", "FunctionTrial", "TrainOptions", "Trial", "TrialConfig", "Unusable"]

__getattr__ = later(
    dict.fromkeys(("PAUSE", "Unusable"), "study.training.checkpoint")
    | {"Diverged": "study.training.diverged", "Trial": "study.training.trial"}
    | {"FunctionTrial": "study.training.function_trial"}
)
