"""What ended a run of Ray Tune's."""

from pathlib import Path

from ray import cloudpickle
from ray.tune.experiment import Trial as TuneTrial

from study.upstream.tune_controller import error_files


def error_of(trial: TuneTrial) -> BaseException:
    """What ended a trial's run, as Ray raised it; only its text where it cannot be unpickled here."""
    pickled, text = error_files(trial)
    try:
        if pickled is not None:
            error = cloudpickle.loads(Path(pickled).read_bytes())
            if isinstance(error, BaseException):
                return error
    except Exception:  # an exception's class may do anything when it is made anew
        pass
    return RuntimeError(Path(text).read_text(encoding="utf-8") if text and Path(text).exists() else "unknown")
