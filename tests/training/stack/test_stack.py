"""Trials in a stack: as alone, apart from each other, and free to come and go between epochs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import timeless
from small import digits
from stacks import Exact, both, close, configs, few, large, state
from torch import Tensor, nn

from study.data import Dataset
from study.models import Encoder
from study.training import Diverged, Trial, TrialConfig
from study.training.stack.stack import Apart, Stack, run

FAIR = {"name": "eps_sup_info_nce", "regulariser": "fair_kl", "temperature": 0.1}
ROWS = [
    FAIR | {"alpha": 0.1 + 0.3 * n, "lambda": 0.5 * n, "epsilon": 0.1 * n, "temperature": 0.1 + n} for n in range(3)
]
HEAD = {"head": "mlp", "head_norm": "both", "head_hidden": 8, "head_features": 8}
OPTIMIZERS = [
    {"optimizer": "adam", "weight_decay": [0.0, 1e-4, 1e-2], "clip_norm": [0.1, 1.0, 100.0]},
    {"optimizer": "sgd", "momentum": [0.0, 0.5, 0.9], "weight_decay": 1e-3},
    {"optimizer": "lars", "learning_rate": [0.1, 1.0, 2.0], "weight_decay": 1e-3},
]


def table() -> Dataset:
    """Digits as rows of a table."""
    images = few()
    splits = {name: replace(one, inputs=pixels(one.inputs)) for name, one in images.splits.items()}
    return Dataset(replace(images.facts, shape=(192,)), splits)


def pixels(inputs: Any) -> Any:
    return inputs.reshape(len(inputs), -1).astype("float32") / 255


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIMIZERS, ids=lambda options: options["optimizer"])
def test_fifty_steps_with_rates_of_their_own(options: dict[str, Any]) -> None:
    rates = {"learning_rate": [1e-3, 3e-3, 1e-2], "schedule": ["cosine", "steps", "constant"]} | options
    told = configs(ROWS, epochs=25, lr_milestones=(0.5,), probe_learning_rate=[0.01, 0.02, 0.03], **rates)
    alone, serial, stacked, together = both(told, Exact, few())
    for ours, theirs, trial, other in zip(serial, together, alone, stacked, strict=True):
        assert [one["train/loss"] for one in theirs] == pytest.approx([one["train/loss"] for one in ours], rel=1e-6)
        assert theirs[0]["train/loss"] == pytest.approx(ours[0]["train/loss"], rel=1e-10)
        close(trial, other, 1e-5)


MLP = {"name": "mlp"}
NETWORKS = [MLP, MLP | HEAD, {"name": "small_conv_net"}, {"name": "small_conv_net"} | HEAD, {"name": "lenet"}]
NETWORKS += [pytest.param({"name": "simple_conv_net"}, marks=pytest.mark.slow)]


@pytest.mark.parametrize("model", NETWORKS, ids=lambda model: "-".join(map(str, model.values())))
def test_the_first_step_in_single_precision(model: dict[str, Any]) -> None:
    samples = {"mlp": table, "lenet": large}.get(model["name"], few)()
    _, serial, _, together = both(configs(ROWS, model, epochs=1, batch_size=128), dataset=samples)
    for ours, theirs in zip(serial, together, strict=True):
        assert theirs[0]["train/loss"] == pytest.approx(ours[0]["train/loss"], rel=1e-6)
        assert theirs[0].keys() == ours[0].keys()


@pytest.mark.slow
def test_fifty_steps_of_a_multilayer_perceptron_in_double_precision() -> None:
    told = configs(ROWS, MLP | HEAD, epochs=25)
    _, serial, _, together = both(told, Exact, table())
    for ours, theirs in zip(serial, together, strict=True):
        assert [one["train/loss"] for one in theirs] == pytest.approx([one["train/loss"] for one in ours], rel=1e-6)


@pytest.mark.slow
def test_fifty_steps_in_single_precision_differ_as_much_as_by_other_rounding() -> None:
    told = configs(ROWS, MLP, epochs=25, learning_rate=1e-3)
    _, serial, _, together = both(told, dataset=table())
    for config, ours, theirs in zip(told, serial, together, strict=True):
        nearly = Trial(config, table(), "cpu")
        torch.manual_seed(0)
        for tensor in nearly.method.parameters():
            tensor.data *= 1 + 1e-7 * torch.randn_like(tensor).sign()
        rounded = timeless(nearly.run())
        assert away(ours, theirs) < 10 * away(ours, rounded)


def away(first: list[dict[str, float]], second: list[dict[str, float]]) -> float:
    """The largest relative difference of the loss."""
    pairs_of_losses = ((one["train/loss"], other["train/loss"]) for one, other in zip(first, second, strict=True))
    return max(abs(one - other) / one for one, other in pairs_of_losses)


def test_a_member_does_not_influence_the_others() -> None:
    changed = configs([ROWS[0], ROWS[1] | {"alpha": 7.0}, ROWS[2]], learning_rate=[0.01, 100.0, 0.01])
    first, second = ([Trial(one, few(), "cpu") for one in told] for told in (configs(ROWS), changed))
    for _ in zip(run(first), run(second), strict=True):
        pass
    for place in (0, 2):
        assert all(torch.equal(ours, theirs) for ours, theirs in pairs(first[place], second[place]))
    assert not all(torch.equal(ours, theirs) for ours, theirs in pairs(first[1], second[1]))


def pairs(first: Trial, second: Trial) -> list[tuple[Tensor, Tensor]]:
    return list(zip(state(first).values(), state(second).values(), strict=True))


def test_one_that_diverges_says_so_and_the_others_go_on() -> None:
    told = configs(ROWS, epochs=3)
    broken = Trial(told[1], few(), "cpu")
    next(broken.method.parameters()).data.fill_(float("nan"))
    results = list(run([Trial(told[0], few(), "cpu"), broken, Trial(told[2], few(), "cpu")]))
    assert isinstance(results[0][1], Diverged)
    assert "loss is nan in epoch 1" in str(results[0][1])
    assert [one[1] for one in results[1:]] == [None, None]
    alone = timeless(Trial(told[2], few(), "cpu").run())
    assert [one[2]["train/loss"] for one in results] == pytest.approx([one["train/loss"] for one in alone], rel=1e-4)


def test_trials_come_and_go_between_epochs() -> None:
    told = configs(ROWS, epochs=[4, 2, 3])
    trials, stack = [Trial(one, few(), "cpu") for one in told], Stack()
    expected = [[one["train/loss"] for one in timeless(Exact(config, few(), "cpu").run())] for config in told]
    found: list[list[float]] = [[], [], []]
    stack.join(trials[0])
    found[0] += losses(stack)
    stack.join(trials[1])
    for at, value in enumerate(losses(stack)):
        found[at].append(value)
    stack.join(trials[2])
    for at, value in enumerate(losses(stack)):
        found[at].append(value)
    assert stack.members[1].over
    stack.leave(stack.members[1])
    for at, value in zip((0, 2), losses(stack), strict=True):
        found[at].append(value)
    assert stack.members[0].over
    stack.leave(stack.members[0])
    found[2] += losses(stack)
    for ours, theirs in zip(expected, found, strict=True):
        assert theirs == pytest.approx(ours, rel=1e-4)
    assert trials[1].evaluate("test") == pytest.approx(again(trials[1], few()), nan_ok=True)


def again(trial: Trial, dataset: Dataset) -> dict[str, float]:
    """What its saved weights are worth."""
    fresh = Trial(trial.config, dataset, "cpu")
    fresh.method.load_state_dict(trial.method.state_dict())
    fresh.probes.load_state_dict(trial.probes.state_dict())
    return fresh.evaluate("test")


def losses(stack: Stack) -> list[float]:
    results = stack.epoch()
    assert all(isinstance(one, dict) for one in results)
    return [one["train/loss"] for one in results if isinstance(one, dict)]


@pytest.mark.parametrize("options", OPTIMIZERS, ids=lambda options: options["optimizer"])
def test_a_state_goes_from_a_stack_to_a_trial_alone_and_back(options: dict[str, Any], tmp_path: Path) -> None:
    told = configs(ROWS, epochs=4, **options)
    expected = [timeless(Exact(one, few(), "cpu").run()) for one in told]
    files, stack = [tmp_path / f"{place}.pt" for place in range(3)], Stack()
    for one, file in zip(told, files, strict=True):
        stack.join(Exact(one, few(), "cpu"), file)
    for _ in range(3):  # an epoch is written once the next is asked for
        stack.epoch()
    sizes = {file.stat().st_size for file in files}
    one_alone = Exact(told[0], few(), "cpu")
    assert one_alone.epochs_in(files[0]) == 2
    rest = timeless(one_alone.run(files[0]))
    assert [one["train/loss"] for one in rest] == pytest.approx(
        [one["train/loss"] for one in expected[0][2:]], rel=1e-8
    )
    assert max(sizes) < 1.2 * files[0].stat().st_size  # not the tensors of all rows
    back = Stack()
    for one, file in zip(told, files, strict=True):
        back.join(Exact(one, few(), "cpu"), file)
    assert [member.epoch for member in back.members] == [3, 2, 2]
    told_back = back.epoch()
    for place, epoch in ((0, 3), (1, 2), (2, 2)):
        result = told_back[place]
        assert isinstance(result, dict)
        assert result["train/loss"] == pytest.approx(expected[place][epoch]["train/loss"], rel=1e-8)


@pytest.mark.parametrize("options", [{"data_share": 0.5}, {"with_val": True}], ids=str)
def test_trials_of_other_samples_than_were_given(options: dict[str, Any]) -> None:
    _, serial, _, together = both(configs(ROWS, batch_size=32, **options), Exact, few())
    for ours, theirs in zip(serial, together, strict=True):
        assert [one["train/loss"] for one in theirs] == pytest.approx([one["train/loss"] for one in ours], rel=1e-6)


class Mixed(Encoder):
    """A network of which a stack knows nothing."""

    features = 8

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(192, 8), nn.BatchNorm1d(8)
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.norm(self.layer(images.flatten(1))) * self.scale
        return features


class Foreign(Exact):
    """A trial of it."""

    def __init__(self, config: TrialConfig, *given: Any, **named: Any) -> None:
        super().__init__(config, *given, **named)
        torch.manual_seed(config.train.seed)
        encoder = Mixed().double()
        self.method.network.encoder = encoder
        self.probes["encoder"] = nn.Linear(8, 10)


def test_another_network_goes_one_by_one_within_the_stack() -> None:
    alone, serial, stacked, together = both(configs(ROWS), Foreign, few())
    for ours, theirs, trial, other in zip(serial, together, alone, stacked, strict=True):
        assert [one["train/loss"] for one in theirs] == pytest.approx([one["train/loss"] for one in ours], rel=1e-8)
        close(trial, other, 1e-5)


@pytest.mark.parametrize(
    ("row", "train", "why"),
    [
        ({"name": "group_dro"}, {}, "method.name 'group_dro' has steps that differ"),
        ({"name": "sup_con", "adversary": "classifier", "classifier_epochs": 1}, {}, "adversary"),
        (FAIR, {"micro_batch": 32}, "train.micro_batch 32 needs a trial of its own"),
    ],
)
def test_what_cannot_be_in_a_stack_says_why(row: dict[str, Any], train: dict[str, Any], why: str) -> None:
    (told,) = configs([row], **train)
    with pytest.raises(Apart, match=why):
        Stack().join(Trial(told, few(), "cpu"))


@pytest.mark.parametrize(
    ("rows", "train", "why"),
    [
        ([FAIR, FAIR | {"form": "a"}], {}, "method.form differs"),
        ([FAIR, {"name": "sup_con"}], {}, "differs"),
        ([FAIR, FAIR], {"batch_size": [64, 32]}, "train.batch_size differs"),
        ([FAIR, FAIR], {"clip_norm": [None, 1.0]}, "train.clip_norm differs"),
    ],
)
def test_trials_that_differ_in_more_than_numbers_are_apart(rows: list[Any], train: dict[str, Any], why: str) -> None:
    first, second = (Trial(one, few(), "cpu") for one in configs(rows, **train))
    stack = Stack()
    stack.join(first)
    with pytest.raises(Apart, match=why):
        stack.join(second)


def test_other_data_are_apart() -> None:
    first, second = configs([FAIR, FAIR])
    stack = Stack()
    stack.join(Trial(first, few(), "cpu"))
    with pytest.raises(Apart, match="the data differ"):
        stack.join(Trial(second, digits(), "cpu"))


@pytest.mark.slow
def test_each_row_has_the_labels_that_its_seed_lets_it_know() -> None:
    some = FAIR | {"lambda": 1.0, "bias_source": "some_labels", "known_bias": 0.5, "unknown_bias": "pseudo_labels"}
    _alone, serial, _stacked, together = both(configs([some, some, some]), Exact, few())
    for ours, theirs in zip(serial, together, strict=True):
        assert [one["train/loss"] for one in theirs] == pytest.approx([one["train/loss"] for one in ours], rel=1e-8)
    assert len({one[0]["train/loss"] for one in serial}) == 3
