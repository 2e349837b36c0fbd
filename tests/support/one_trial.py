"""The trial of the quickstart, of two epochs: what tests of the training change knob by knob."""

from pathlib import Path

from helpers import quickstart, timeless
from safetensors.torch import load_file

from study.training.config import TrialConfig
from study.training.trial import Trial

METHOD = ("method.lambda=1.0", "method.epsilon=0.25")


def config(*assignments: str, seed: int = 0) -> TrialConfig:
    return quickstart("train.epochs=2", "search.early_stopping={}", *METHOD, *assignments).trial_config({}, seed)


def metrics(trial: Trial) -> list[dict[str, float]]:
    """What the trial gives, without the time that it took; and the test split at its end."""
    return [*timeless(trial.train_epochs()), trial.evaluate("test")]


def bits(path: Path) -> dict[str, bytes]:
    """Saved weights, each tensor by its name."""
    return {name: tensor.numpy().tobytes() for name, tensor in load_file(path).items()}


def saved(trial: Trial, path: Path) -> dict[str, bytes]:
    """The weights of a trial, saved there."""
    trial.save_model(path)
    return bits(path)
