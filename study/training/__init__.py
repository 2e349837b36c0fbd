"""One trial: a configuration and a data set in, metrics per epoch out. No Ray, no Optuna, no MLflow."""

from study.training.config import TrainOptions, TrialConfig
from study.training.trial import Diverged, Trial

__all__ = ["Diverged", "TrainOptions", "Trial", "TrialConfig"]
