"""The trial of the quickstart, of two epochs: what tests of the training change knob by knob."""

from helpers import quickstart, timeless

from study.training import Trial, TrialConfig

METHOD = ("method.lambda=1.0", "method.epsilon=0.25")


def config(*assignments: str, seed: int = 0) -> TrialConfig:
    return quickstart("train.epochs=2", "search.early_stopping={}", *METHOD, *assignments).trial_config({}, seed)


def metrics(trial: Trial) -> list[dict[str, float]]:
    """What the trial gives, without the time that it took; and the test split at its end."""
    return [*timeless(trial.run()), trial.evaluate("test")]
