"""Trials alone and in a stack, in float64 too, and every method of the catalogue that a stack takes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from helpers import timeless
from hypothesis import strategies
from small import digits, section
from torch import Tensor

from study import methods
from study.data.dataset import Dataset, Split
from study.knobs import Knob, Range
from study.training import Trial, TrialConfig
from study.training.stack.stack import run

Epochs = list[dict[str, float]]


class Exact(Trial):
    """A trial whose networks compute in float64."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.method.double()
        for split in self._splits.values():
            split.normalised = lambda pixels, of=split.normalised: of(pixels).double()  # type: ignore[method-assign]
        scores = self.evaluate.scores

        def of_exact(encoder: str, features: Tensor) -> Tensor:
            own = encoder == "encoder" and self.method.own_classifier() is not None
            return scores(encoder, features.double() if own else features)

        self.evaluate.scores = of_exact  # type: ignore[method-assign]


@cache
def few() -> Dataset:
    """Two batches of digits, and some to evaluate."""
    whole, splits = digits(), {}
    for name, split in whole.splits.items():
        assert split.bias is not None
        assert split.condition is not None
        part = slice(128 if name == "train" else 40)
        splits[name] = Split(split.inputs[part], split.target[part], split.bias[part], split.condition[part])
    return Dataset(whole.facts, splits)


def large() -> Dataset:
    """Digits of 32 pixels."""
    images = few()
    splits = {
        name: replace(one, inputs=one.inputs.repeat(4, axis=2).repeat(4, axis=3)) for name, one in images.splits.items()
    }
    return Dataset(replace(images.facts, shape=(3, 32, 32)), splits)


def configs(
    rows: Sequence[Mapping[str, Any]], model: Mapping[str, Any] | None = None, **train: Any
) -> list[TrialConfig]:
    """Complete configurations of method sections; of numbers of `train` that are lists, each row has its own."""
    told = {"epochs": 2, "batch_size": 64, "learning_rate": 0.01} | train
    network = {"name": "small_conv_net", "width": 4} | (model or {})
    network = {key: value for key, value in network.items() if key != "width" or network["name"] == "small_conv_net"}
    return [
        TrialConfig.from_document(
            {
                "data": {},
                "model": network,
                "method": section(**row),
                "train": {"seed": place}
                | {key: value[place] if isinstance(value, list) else value for key, value in told.items()},
            }
        )
        for place, row in enumerate(rows)
    ]


def both(
    given: Sequence[TrialConfig], kind: type[Trial] = Trial, dataset: Dataset | None = None
) -> tuple[list[Trial], list[Epochs], list[Trial], list[Epochs]]:
    """Trials alone with their epochs, and the same in a stack."""
    samples = dataset or digits()
    alone = [kind(config, samples, "cpu") for config in given]
    serial = [timeless(trial.run()) for trial in alone]
    stack = [kind(config, samples, "cpu") for config in given]
    together: list[Epochs] = [[] for _ in given]
    for epoch in run(stack):
        for place, result in enumerate(epoch):
            if result is not None:
                assert isinstance(result, dict), result
                together[place].append(result)
    return alone, serial, stack, [timeless(epochs) for epochs in together]


def close(alone: Trial, stacked: Trial, relative: float) -> None:
    """The networks are the same to a share of their largest weight."""
    pairs = zip(state(alone).items(), state(stacked).items(), strict=True)
    for (name, ours), (other, theirs) in pairs:
        assert name == other
        torch.testing.assert_close(theirs, ours, rtol=relative, atol=relative * max(1.0, float(ours.abs().max())))


def state(trial: Trial) -> dict[str, Tensor]:
    """The networks' numbers."""
    both_parts = {"method": trial.method.state_dict(), "probes": trial.probes.state_dict()}
    return {
        f"{part}.{name}": tensor.double()
        for part, tensors in both_parts.items()
        for name, tensor in tensors.items()
        if tensor.numel()
    }


def drawn(knob: Knob) -> strategies.SearchStrategy[float]:
    """A number that a search might try."""
    if (searched := knob.searched) is not None and searched.low is not None and searched.high is not None:
        return strategies.floats(searched.low, searched.high)
    notes = ranges(knob)
    low = max((note.low or note.above or 0.0 for note in notes), default=0.0)
    high = min((note.high or note.below or 1.0 for note in notes), default=1.0)
    return strategies.floats(low + 0.01 * (high - low), low + 0.9 * (high - low))


def ranges(knob: Knob) -> list[Range]:
    """What a knob declares of its values."""
    return [note for note in getattr(knob.type, "__metadata__", ()) if isinstance(note, Range)]


def sections() -> Iterator[dict[str, Any]]:
    """A section of each method that a stack takes: plain, and with what is added to it."""
    for name in methods.names():
        if methods.needs(section(name=name)).varies is None and not methods.needs(section(name=name)).only_tables:
            yield {"name": name}
    for variant in ("kl", "kl_reverse", "jeffreys", "kl_lognormal", "moments", "mean", "mean_similarity"):
        yield {"name": "sup_con", "regulariser": "fair_kl", "variant": variant}
    yield {"name": "sup_con", "regulariser": "fair_kl", "variant": "kl", "pooled": False}
    yield {"name": "eps_sup_info_nce", "regulariser": "fair_kl", "alpha_squared": True}
    yield {"name": "eps_sup_info_nce", "regulariser": "end"}
    yield {"name": "cross_entropy", "regulariser": "fair_kl"}
    yield {"name": "cross_entropy", "regulariser": "end"}
    yield {"name": "generalized_cross_entropy", "form": "released"}
    yield {"name": "cross_entropy", "adversary": "representation"}
    yield {"name": "sup_con", "adversary": "representation"}
    yield {"name": "bias_con", "cross_entropy": "plain"}
    yield {"name": "bias_con", "cross_entropy": "bias_balanced"}
    for form in "abd":
        yield {"name": "eps_sup_info_nce", "form": form}
    for kernel in ("laplacian", "linear", "cosine", "polynomial"):
        yield {"name": "fair_cclk", "kernel": kernel}
    yield {"name": "fair_cclk", "form": "paper", "kernel_gradient": True}
    yield {"name": "fair_sup_con", "group_norm": True}
    yield {"name": "eps_sup_con", "views": 2, "anchors": "first"}
    yield {"name": "debiased_info_nce", "positives": 2}
