"""One trial: a configuration and a data set in, metrics per epoch out. No Ray, no Optuna, no MLflow."""

from study.training.checkpoint import PAUSE, Unusable
from study.training.config import TrainOptions, TrialConfig
from study.training.loop import Diverged
from study.training.trial import Trial

__all__ = ["PAUSE", "Diverged", "TrainOptions", "Trial", "TrialConfig", "Unusable"]
