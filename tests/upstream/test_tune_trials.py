"""What `study/upstream/tune.py` touches of Ray, tried on the installed Ray.

What it does to a running one is shown by `tests/sweep/test_starting.py` and `tests/e2e`.
"""

import inspect
from pathlib import Path
from typing import Any

import pytest
from contract import contract

from study.upstream.tune import check_no_missing_arguments, plain_trials, report_nothing_else

LOOP = "Tune's loop in study/sweep/driver.py"

with contract("ray", "Trial, SearchGenerator, get_trainable_cls, flatten_args and Trainable in their modules", LOOP):
    import ray.actor
    from ray import tune
    from ray._common import signature
    from ray.tune import Trainable
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


def test_only_calls_with_arguments_are_compared_with_a_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(first: int, second: int = 0) -> None: ...

    with contract("ray", "ray.actor takes signature.flatten_args from its module", LOOP):
        monkeypatch.setattr(signature, "flatten_args", signature.flatten_args)  # puts it back afterwards
        assert ray.actor.signature is signature
        assert "signature.flatten_args(" in inspect.getsource(ray.actor.ActorHandle._actor_method_call)
        parameters = signature.extract_signature(call)
        before = signature.flatten_args(parameters, (1,), {"second": 2})
        for _ in range(2):
            check_no_missing_arguments()
        assert signature.flatten_args(parameters, (1,), {"second": 2}) == before
        assert signature.flatten_args(parameters, (), {}) == []
        with pytest.raises(TypeError, match="too many positional arguments"):
            signature.flatten_args(parameters, (1, 2, 3), {})


def test_a_report_holds_what_was_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reports(Trainable):
        def step(self) -> dict[str, Any]:
            return {"epoch": 1, "metrics": "{}"}

    with contract("ray", "Trainable.train() adds what get_auto_filled_metrics(...) gives", "study/sweep/worker.py"):
        monkeypatch.setattr(Trainable, "get_auto_filled_metrics", Trainable.get_auto_filled_metrics)
        report_nothing_else()
        assert Reports().train() == {"epoch": 1, "metrics": "{}", "done": False, "training_iteration": 1}
