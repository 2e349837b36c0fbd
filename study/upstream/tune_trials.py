"""What Ray Tune does by itself for each trial and each report, as far as it is left out here.

Like `tune_loop.py` it touches what Ray does not promise to keep; `tests/upstream/test_tune_trials.py` tries each touch
against the installed Ray.

By itself Tune asks Ray's head three times for the class that trials run, and unpickles it, so that no two trials wish
for the same resources; it copies the experiment, brings it into the form of a command line and parses that; it asks the
process twice what it is; and it keeps six statistics of each number of each report. That was a quarter of what a trial
cost its driver.
"""

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ray.tune.search import Searcher


@cache
def _classes() -> tuple[Any, Any]:
    """Subclasses of Tune's Trial and of its SearchGenerator."""
    from ray.tune.experiment import Trial
    from ray.tune.registry import get_trainable_cls
    from ray.tune.search.search_generator import SearchGenerator

    class PlainTrial(Trial):
        """A trial that is told what it runs, and keeps its last report alone."""

        def __init__(self, trainable: Any, *names: Any, **told: Any) -> None:
            self._trainable = trainable
            super().__init__(*names, stub=True, **told)  # a stub does not look for what it runs
            self.stub = False

        def get_trainable_cls(self) -> Any:
            return self._trainable

        def set_ray_actor(self, ray_actor: Any) -> None:
            self.temporary_state.ray_actor = ray_actor

        def update_last_result(self, result: dict[str, Any]) -> None:
            self.run_metadata.last_result = result

    class PlainTrials(SearchGenerator):
        """Makes a trial of what the searcher suggests, and of nothing else."""

        _trainable: Any = None

        def create_trial_if_possible(self, experiment_spec: dict[str, Any]) -> Any:
            trial_id = Trial.generate_id()
            config = self.searcher.suggest(trial_id)
            if config == self.searcher.FINISHED:
                self._finished = True
            if config is None or self._finished:
                return None
            self._trainable = self._trainable or get_trainable_cls(experiment_spec["run"])
            self._counter += 1
            return PlainTrial(
                self._trainable,
                experiment_spec["run"],
                config=config,
                trial_id=trial_id,
                storage=experiment_spec["storage"],
                trial_dirname_creator=experiment_spec["trial_dirname_creator"],
            )

    return PlainTrial, PlainTrials


def plain_trials(searcher: "Searcher") -> Any:
    """What a searcher suggests, as trials, for `TuneConfig.search_alg`. Of the experiment they take what is run, where
    that is stored and the names of their folders."""
    return _classes()[1](searcher)


def check_no_missing_arguments() -> None:
    """Have the Ray of this process compare a call without arguments with no signature: nearly all of a driver's are
    calls for the next report. One that lacks an argument would fail in the process that it is for."""
    from ray._common import signature

    module: Any = signature
    flatten = getattr(module.flatten_args, "__wrapped__", module.flatten_args)

    def flattened(parameters: Any, arguments: Any, named: Any) -> list[Any]:
        return list(flatten(parameters, arguments, named)) if arguments or named else []

    flattened.__wrapped__ = flatten  # type: ignore[attr-defined]
    module.flatten_args = flattened


def report_nothing_else() -> None:
    """Have the Tune of this process, which runs trials, add neither the trial's configuration nor the date, the machine
    and the times so far to each report: the driver would read them, and uses none."""
    from ray.tune import Trainable

    trainable: Any = Trainable
    trainable.get_auto_filled_metrics = lambda trial, *times, **more: {}
