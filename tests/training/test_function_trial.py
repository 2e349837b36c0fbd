"""A trial that runs a training function of the user's own."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import own_functions
import pytest

from study.errors import UserError
from study.ranking.chosen_epoch import BestEpochTracker
from study.spec.objective import Objective
from study.training.checkpoint import UnusableCheckpointError
from study.training.config import TrainOptions, TrialConfig
from study.training.diverged import DivergedError
from study.training.function_loading import PICKLE_PREFIX, PICKLED_FUNCTION_FILE, FunctionTrialError, pickle_digest
from study.training.function_trial import FunctionTrial

WHERE = str(Path(own_functions.__file__).parent)
NEEDED = ["val/accuracy"]


def trial(name: str, epochs: int = 4, seed: int = 0, **config: Any) -> FunctionTrial:
    method = {"name": "own_function", "function": f"own_functions:{name}", **config}
    options = TrainOptions(epochs=epochs, seed=seed)
    return FunctionTrial(TrialConfig({"name": "none"}, {"name": "none"}, method, options), WHERE, NEEDED)


def values(metrics: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if not name.startswith(("time/", "memory/"))}


def test_it_gives_what_the_function_yields_but_the_test_split_and_what_it_cost() -> None:
    first, second = trial("train", epochs=2, seed=3, rate=0.5).train_epochs()
    assert values(first) == {"train/loss": 0.5, "val/accuracy": 0.503}
    assert values(second) == {"train/loss": 0.25, "val/accuracy": 0.753}
    assert first.keys() - values(first).keys() == {"time/epoch", "memory/peak_mib"}


def test_the_function_is_asked_for_so_many_epochs_and_no_more() -> None:
    assert len(list(trial("random", epochs=7).train_epochs())) == 7
    with pytest.raises(FunctionTrialError, match=r"peaks: ended after 4 of 5 epochs \(train.epochs\)"):
        list(trial("peaks", epochs=5).train_epochs())


def test_the_seed_decides_on_all_random_numbers() -> None:
    one, again, other = ([values(epoch) for epoch in trial("random", seed=seed).train_epochs()] for seed in (1, 1, 2))
    assert one == again
    assert one != other


def folded(name: str, fold: int | None) -> FunctionTrial:
    method = {"name": "own_function", "function": f"own_functions:{name}"}
    config = TrialConfig({"name": "none", "folds": 5}, {"name": "none"}, method, TrainOptions(epochs=1))
    return FunctionTrial(config, WHERE, [] if fold is None else NEEDED, fold=fold)


def test_a_function_is_told_which_of_its_folds_validates() -> None:
    assert [values(next(iter(folded("folds", fold).train_epochs()))) for fold in (0, 3)] == [
        {"val/accuracy": 0.0},
        {"val/accuracy": 0.6},
    ]
    assert values(next(iter(folded("folds", None).train_epochs()))) == {"train/loss": 5.0}, (
        "a final training validates on none"
    )
    with pytest.raises(UserError, match=r"data.folds: 5 given, but own_functions:train takes no fold"):
        folded("train", 0)


def test_test_values_are_kept_with_the_trial_those_of_the_last_epoch(tmp_path: Path) -> None:
    ran, later = trial("train", rate=0.5), trial("train", rate=0.5)
    list(ran.train_epochs())
    ran.save_model(tmp_path / "models" / "trial.safetensors")
    later.load_model(tmp_path / "models" / "trial.safetensors")
    assert later.evaluate("test", final=True) == {"test/accuracy": 0.46875}
    (tmp_path / "cut").write_bytes(b"{")
    with pytest.raises(UnusableCheckpointError, match="cut: is damaged"):
        later.load_model(tmp_path / "cut")


def test_a_function_of_a_notebook_is_called_by_its_name(tmp_path: Path) -> None:
    import cloudpickle

    content = cloudpickle.dumps(own_functions.peaks)
    (tmp_path / PICKLED_FUNCTION_FILE).write_bytes(content)
    method = {"name": "own_function", "function": f"{PICKLE_PREFIX}{pickle_digest(content)}"}
    config = TrialConfig({"name": "none"}, {"name": "none"}, method, TrainOptions(epochs=5))
    with pytest.raises(FunctionTrialError, match=r"^peaks: ended after 4 of 5 epochs"):
        list(FunctionTrial(config, str(tmp_path), NEEDED).train_epochs())
    with pytest.raises(FunctionTrialError, match=r"^peaks: yielded no test/NAME"):
        FunctionTrial(config, str(tmp_path), NEEDED).evaluate("test")


def test_a_trial_without_test_values_says_so_where_they_would_be_read(tmp_path: Path) -> None:
    list(trial("random").train_epochs())
    (ran := trial("random")).save_model(tmp_path / "trial.safetensors")
    ran.load_model(tmp_path / "trial.safetensors")
    with pytest.raises(FunctionTrialError, match="random: yielded no test/NAME in the epoch"):
        ran.evaluate("test", final=True)


def test_test_values_are_those_of_the_epoch_that_is_chosen() -> None:
    ran = trial("peaks")
    list(ran.train_epochs(choice=BestEpochTracker(Objective(("val/accuracy",), ("max",), epoch_window=1))))
    assert ran.evaluate("test") == {"test/accuracy": 0.45}


@pytest.mark.parametrize("behind", [1, 2, 3])
def test_a_function_with_a_checkpoint_goes_on_behind_the_epoch_that_was_reported(behind: int, tmp_path: Path) -> None:
    whole, file = list(trial("goes_on", rate=0.1).train_epochs()), tmp_path / "kept" / "trial.pt"
    cut, rest = trial("goes_on", rate=0.1), trial("goes_on", rate=0.1)
    running = cut.train_epochs(file)
    before = [next(running) for _ in range(behind + 1)]  # the last is reported, and not kept yet
    running.close()
    assert rest.saved_epoch(file) == behind
    after = list(rest.train_epochs(file))
    joined = [*before[:behind], *after]
    assert [epoch["val/accuracy"] for epoch in joined] == [epoch["val/accuracy"] for epoch in whole]
    assert {epoch["train/begun"] for epoch in after} == {2}
    assert rest.evaluate("test") == {"test/accuracy": whole[-1]["val/accuracy"] / 2}


def test_the_chosen_epoch_goes_on_too(tmp_path: Path) -> None:
    file, goal = tmp_path / "trial.pt", Objective(("val/accuracy",), ("min",), epoch_window=1)
    running = trial("goes_on", rate=0.1).train_epochs(file, choice=BestEpochTracker(goal))
    list(itertools.islice(running, 3))
    running.close()
    rest = trial("goes_on", rate=0.1)
    list(rest.train_epochs(file, choice=BestEpochTracker(goal)))
    assert rest.evaluate("test") == {"test/accuracy": 0.05}


def test_a_checkpoint_of_another_trial_or_a_damaged_one_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "trial.pt"
    running = trial("goes_on", rate=0.1).train_epochs(file)
    list(itertools.islice(running, 2))
    running.close()
    with pytest.raises(UnusableCheckpointError, match="another configuration or function"):
        trial("goes_on", rate=0.2).saved_epoch(file)
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(UnusableCheckpointError, match="is damaged"):
        trial("goes_on", rate=0.1).saved_epoch(file)
    assert trial("train", rate=0.1).saved_epoch(file) == 0  # it takes none


@pytest.mark.parametrize(
    ("yielded", "message"),
    [
        (0.7, r"yielded float in epoch 1, allowed is a mapping of metrics"),
        ({"accuracy": 0.7}, r"yielded 'accuracy', allowed are train/NAME, val/NAME and test/NAME"),
        (
            {"val/acc": 1, "train/loss": 2},
            r"did not yield val/accuracy in epoch 1. Did you mean 'val/acc'\? It yielded: val/acc, train/loss",
        ),
        ({"val/error": 1}, r"did not yield val/accuracy in epoch 1. It yielded: val/error"),
        ({"val/accuracy": "0.5"}, r"yielded str for 'val/accuracy' in epoch 1, allowed is a number"),
        ({"val/accuracy": 10**400}, r"yielded int for 'val/accuracy' in epoch 1, too large: allowed is a number below"),
        ({"val/accuracy": [[1, 2]]}, r"yielded list for 'val/accuracy' in epoch 1, allowed is a number"),
        ({"val/accuracy": 76.2}, r"yielded 76.2 for 'val/accuracy' in epoch 1, allowed is a fraction from 0 to 1"),
        ({"val/accuracy": 0.5, "test/worst_accuracy": -1}, r"yielded -1 for 'test/worst_accuracy' in epoch 1"),
        ({"val/f1-score": 1}, r"yielded 'val/f1-score', allowed are .*, NAME of letters, digits and underscores"),
    ],
)
def test_what_is_no_metric_is_told(yielded: Any, message: str) -> None:
    with pytest.raises(FunctionTrialError, match=message):
        list(trial("yields", epochs=1, values=[yielded]).train_epochs())


@pytest.mark.parametrize("name", ["val/accuracy", "train/loss"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_metric_that_is_needed_and_no_number_is_divergence(name: str, value: float) -> None:
    running = trial("yields", epochs=2, values=[{"val/accuracy": 1}, {"val/accuracy": 1, name: value}]).train_epochs()
    next(running)
    with pytest.raises(DivergedError, match=f"{name} is {value} in epoch 2"):
        next(running)


def test_a_folder_is_kept_whatever_lies_in_it_and_however_much_beside_it(tmp_path: Path) -> None:
    file, goal = tmp_path / "state", Objective(("val/accuracy",), ("max",), (), 1)
    assert len(list(itertools.islice(trial("clutters").train_epochs(file, choice=BestEpochTracker(goal)), 3))) == 3
    again = trial("clutters")
    assert again.saved_epoch(file) == 2
    assert [epoch["val/accuracy"] for epoch in again.train_epochs(file, choice=BestEpochTracker(goal))] == [0.375, 0.5]
    assert len(again.evaluate("test")) == 1000


@pytest.mark.parametrize("name", ["SystemExit", "GeneratorExit", "KeyboardInterrupt"])
def test_what_would_end_the_process_is_a_failure_of_the_function(name: str) -> None:
    def run() -> None:
        with pytest.raises(FunctionTrialError, match=rf"ends: raised {name}\(3\) in epoch 1"):
            list(trial("ends", how=name).train_epochs())

    with ThreadPoolExecutor() as pool:  # as in a process of trials, whose main thread is Ray's
        pool.submit(run).result()


def test_a_users_ctrl_c_is_left_alone() -> None:
    with pytest.raises(KeyboardInterrupt):
        list(trial("ends", how="KeyboardInterrupt").train_epochs())
