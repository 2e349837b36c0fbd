"""What `study/upstream/tune.py` touches of Ray, tried on the installed Ray.

What it does to a running one is shown by `tests/sweep/test_starting.py` and `tests/e2e`.
"""

import inspect
from pathlib import Path
from typing import Any

import pytest
from contract import contract

from study.upstream.tune import plain_trials

LOOP = "Tune's loop in study/sweep/driver.py"

with contract("ray", "Trial, SearchGenerator and get_trainable_cls in their modules", LOOP):
    from ray import tune
    from ray.tune.experiment import Experiment, Trial
    from ray.tune.search import Searcher
    from ray.tune.search.search_generator import SearchGenerator


def folder(trial: Trial) -> str:
    return f"train-{trial.config['job']}"


class Suggests(Searcher):
    """Two trials, then none for now, then no more."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[Any] = [{"job": 0}, {"job": 1}, None, Searcher.FINISHED]

    def suggest(self, trial_id: str) -> Any:
        return self.given.pop(0)

    def save(self, checkpoint_path: str) -> None: ...

    def restore(self, checkpoint_path: str) -> None: ...

    def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None: ...


@pytest.fixture
def experiment(tmp_path: Path) -> Any:
    def work(config: dict[str, Any]) -> None: ...

    wish = tune.PlacementGroupFactory([{"CPU": 0.5}])
    return Experiment(
        "session",
        tune.with_resources(work, lambda config: wish),
        num_samples=9,
        storage_path=str(tmp_path),
        trial_dirname_creator=folder,
    )


def made(algorithm: Any, experiment: Any) -> list[Any]:
    algorithm.add_configurations([experiment])
    return [algorithm.next_trial() for _ in range(4)]


def test_a_trial_is_as_tune_makes_it(experiment: Any) -> None:
    """In all that a run of it takes from it."""
    with contract("ray", "SearchGenerator.create_trial_if_possible(experiment_spec), Trial(name, **options)", LOOP):
        plain, own = (made(make(Suggests()), experiment)[:2] for make in (plain_trials, SearchGenerator))
        for ours, tunes in zip(plain, own, strict=True):
            for trial in (ours, tunes):
                trial.create_placement_group_factory()
            for name in (
                *(
                    "config",
                    "trainable_name",
                    "storage",
                    "stopping_criterion",
                    "export_formats",
                    "restore_path",
                    "stub",
                ),
                *("log_to_file", "max_failures", "custom_dirname", "custom_trial_name", "status", "checkpoint_freq"),
                *("checkpoint_at_end", "placement_group_factory", "trial_name_creator", "stub"),
            ):
                mine, theirs = getattr(ours, name), getattr(tunes, name)
                if name == "storage":
                    mine, theirs = mine.experiment_fs_path, theirs.experiment_fs_path
                assert (mine or None) == (theirs or None), name
        assert plain[1].custom_dirname == "train-1"


def test_a_searcher_that_has_none_or_no_more_is_heard(experiment: Any) -> None:
    algorithm = plain_trials(Suggests())
    assert [trial and trial.config for trial in made(algorithm, experiment)] == [{"job": 0}, {"job": 1}, None, None]
    assert algorithm.is_finished()


def test_trials_that_wish_for_the_same_have_one_wish(experiment: Any) -> None:
    """Tune compares wishes many times for each trial, which takes long where they are not one object."""
    first, second = made(plain_trials(Suggests()), experiment)[:2]
    for trial in (first, second):
        trial.create_placement_group_factory()
    assert first.placement_group_factory is second.placement_group_factory


def test_a_trial_asks_its_process_nothing_and_keeps_its_last_report_alone(experiment: Any) -> None:
    class Process:
        """Whose methods nobody calls."""

    with contract("ray", "Trial.set_ray_actor(ray_actor), update_last_result(result) and last_result", LOOP):
        assert list(inspect.signature(Trial.set_ray_actor).parameters) == ["self", "ray_actor"]
        assert list(inspect.signature(Trial.update_last_result).parameters) == ["self", "result"]
        trial = made(plain_trials(Suggests()), experiment)[0]
        assert trial.last_result == {"trial_id": trial.trial_id}
        trial.set_ray_actor(process := Process())
        assert trial.temporary_state.ray_actor is process
        trial.update_last_result({"epoch": 3, "metrics": "{}"})
        assert trial.last_result == {"epoch": 3, "metrics": "{}", "trial_id": trial.trial_id}
        assert trial.metric_analysis == {}
