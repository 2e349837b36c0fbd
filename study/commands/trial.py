"""One trial of a study in this process, without Ray: for debugging."""

from collections.abc import Iterator

from study import data
from study.commands.functions import function_trial
from study.errors import UserError
from study.home.folder import Home
from study.ranking.epochs import EpochChoice
from study.spec import StudySpec
from study.training import Diverged, Trial


def run(spec: StudySpec) -> Iterator[dict[str, float]]:
    """The metrics of each epoch of the file's own configuration, `epoch` first.

    Raises:
        UserError: the trial diverged.
    """
    device = None if spec.resources.gpu else "cpu"  # as in a sweep, where such a trial sees no GPU
    config = spec.trial_config({})
    trial = function_trial(Home.locate(), spec) if spec.function else Trial(config, data.load(config.data), device)
    choice = EpochChoice(spec.objective) if spec.objective.window is not None else None
    try:
        for epoch, metrics in enumerate(trial.run(choice=choice), start=1):
            yield {"epoch": epoch, **metrics}
    except Diverged as diverged:
        raise UserError(f"the trial diverged: {diverged}") from None
