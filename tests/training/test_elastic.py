"""A trial that goes on beyond its last epoch is one of that many epochs, bit for bit; what could not go on says why."""

from pathlib import Path

import pytest
from helpers import ROOT, timeless
from one_trial import config, saved

from study.data import Dataset
from study.ranking.epochs import EpochChoice
from study.spec.objective import Objective
from study.training import FunctionTrial, Trial, TrialConfig, UnusableFileError
from study.training.config import TrainOptions, bound

CHOSEN = config("train.epochs=4", "train.learning_rate=0.03", "train.final=[knn]")
WHERE = str(ROOT / "tests" / "support")


def sections(*assignments: str) -> dict:
    return config(*assignments).to_document()


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        ("train.warmup_epochs=2", "model.head=mlp", "model.head_norm=hidden"),
        ("train.final=[knn, lbfgs]",),
        ("train.optimizer=sgd",),
        ("train.optimizer=lars",),
    ],
    ids=["plain", "final", "sgd", "lars"],
)
def test_two_epochs_and_three_more_are_five(dataset: Dataset, tmp_path: Path, given: tuple[str, ...]) -> None:
    file, whole = tmp_path / "end.pt", Trial(config("train.epochs=5", *given), dataset, "cpu")
    expected = timeless(whole.run())
    short = timeless(Trial(config("train.epochs=2", *given), dataset, "cpu").run(ended=file))
    again = Trial(config("train.epochs=5", *given), dataset, "cpu")
    assert again.epochs_in(file) == 2
    assert timeless(again.run(file)) == expected[2:]
    assert again.evaluate("test") == whole.evaluate("test")
    assert [{name: report[name] for name in full} for report, full in zip(short, expected, strict=False)] == expected[
        :2
    ]


@pytest.mark.slow
def test_it_goes_on_from_the_networks_that_it_had_not_from_those_that_were_chosen(
    dataset: Dataset, tmp_path: Path
) -> None:
    file, longer = tmp_path / "end.pt", TrialConfig.from_document(_with(CHOSEN, epochs=6))
    whole = Trial(longer, dataset, "cpu")
    expected = timeless(whole.run(choice=choice()))
    list(Trial(CHOSEN, dataset, "cpu").run(choice=choice(), ended=file))
    again = Trial(longer, dataset, "cpu")
    assert timeless(again.run(file, choice=choice())) == expected[4:]
    assert saved(again, tmp_path / "again.safetensors") == saved(whole, tmp_path / "whole.safetensors")


def choice() -> EpochChoice:
    """The largest loss, which falls: the first window wins."""
    return EpochChoice(Objective(("train/loss",), ("max",), (), 2))


def _with(of: TrialConfig, epochs: int) -> dict:
    document = of.to_document()
    return {**document, "train": {**document["train"], "epochs": epochs}}


@pytest.mark.slow
def test_the_state_of_a_trial_that_depends_on_its_epochs_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    file, cosine = tmp_path / "end.pt", config("train.schedule=cosine")
    list(Trial(cosine, dataset, "cpu").run(ended=file))
    with pytest.raises(UnusableFileError, match="of another configuration"):
        Trial(TrialConfig.from_document(_with(cosine, epochs=3)), dataset, "cpu").epochs_in(file)


def function(name: str, epochs: int) -> FunctionTrial:
    method = {"name": "own_function", "function": f"own_functions:{name}", "rate": 0.1}
    none = {"name": "none"}
    return FunctionTrial(TrialConfig(none, none, method, TrainOptions(epochs=epochs)), WHERE)


def test_a_function_goes_on_from_its_folder(tmp_path: Path) -> None:
    file, longer = tmp_path / "end", function("lasts", 4)
    first = timeless(function("lasts", 2).run(ended=file))
    assert longer.epochs_in(file) == 2
    assert [*first, *timeless(longer.run(file))] == timeless(function("lasts", 4).run())
    assert longer.evaluate("test") == {"test/accuracy": 0.5}


def test_the_state_of_a_function_that_is_told_its_epochs_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "end"
    list(function("goes_on", 2).run(ended=file))
    with pytest.raises(UnusableFileError, match="of another configuration"):
        function("goes_on", 4).epochs_in(file)


@pytest.mark.parametrize(
    ("given", "key"),
    [
        (("train.schedule=cosine",), "train.schedule"),
        (("train.lr_milestones=[0.5]",), "train.lr_milestones"),
        (("train.lr_milestones=[0.5]", "train.schedule=constant"), None),
        (("train.warmup_epochs=2",), None),
        ((), None),
    ],
)
def test_which_key_ties_a_trial_to_its_epochs(given: tuple[str, ...], key: str | None) -> None:
    assert (bound(sections(*given)) or (None,))[0] == key


@pytest.mark.parametrize(
    ("method", "key"),
    [
        ({"name": "just_train_twice", "identification": 0.2, "upweight": 20.0}, "method.identification"),
        ({"name": "cross_entropy"}, None),
    ],
)
def test_which_method_is_tied_to_its_epochs(method: dict, key: str | None) -> None:
    assert (bound({**sections(), "method": method}) or (None,))[0] == key
