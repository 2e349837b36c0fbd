"""Inputs that stay in the host's memory: the same batches, and evaluation's size of a batch."""

import numpy as np
import pytest
import torch
from helpers import timeless
from small import config, digits

from study.data.dataset import Facts, Split
from study.training.config import TrainOptions
from study.training.device import DeviceSplit
from study.training.evaluation import evaluation_batch_size
from study.training.loop import StreamedSplit, TrainingLoop
from study.training.trial import Trial

CPU = torch.device("cpu")


def split() -> Split:
    return Split(np.arange(11 * 3 * 2 * 2, dtype=np.uint8).reshape(11, 3, 2, 2), np.arange(11) % 2)


def test_batches_are_those_of_a_resident_split() -> None:
    facts = Facts(2, None, (3, 2, 2))
    resident, streaming = DeviceSplit(split(), facts, CPU), StreamedSplit(split(), facts, CPU)
    order = torch.randperm(11, generator=torch.Generator().manual_seed(0))
    pairs = zip(resident.batches(order, 4), streaming.batches(order, 4), strict=True)
    for index, other in pairs:
        assert torch.equal(index, other)
        assert torch.equal(resident.pixels_of_samples(index), streaming.pixels_of_samples(other))
        assert torch.equal(
            resident.pixels_of_samples(index[:1]), streaming.pixels_of_samples(other[:1])
        )  # not the one that was brought
    found = [streaming.pixels_of_samples(index) for index in streaming.batches_in_order(4)]
    assert torch.equal(torch.cat(found), resident.pixels_of_samples(torch.arange(11)))


def test_a_trial_with_its_inputs_on_the_host_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    told = config({"name": "sup_con"}, epochs=2, augmentation="simclr")
    resident = timeless(Trial(told, digits(), "cpu").train_epochs())
    monkeypatch.setattr(
        TrainingLoop, "_place_split", lambda self, split, facts: StreamedSplit(split, facts, self.device)
    )
    assert timeless(Trial(told, digits(), "cpu").train_epochs()) == resident


@pytest.mark.parametrize(
    ("options", "views", "shape", "samples"),
    [
        ({"batch_size": 128}, 2, (3, 224, 224), 256),
        ({"batch_size": 128, "crop_size": 112, "augmentation": "simclr"}, 2, (3, 224, 224), 64),
        ({"batch_size": 128, "evaluation_size": 448}, 2, (3, 224, 224), 64),
        ({"batch_size": 128, "micro_batch": 32}, 2, (3, 224, 224), 64),
        ({"batch_size": 4}, 1, (3, 28, 28), 668),  # few pixels: launches would cost more than memory
        ({"batch_size": 4096}, 1, (3, 28, 28), 2048),
        ({"batch_size": 16}, 1, (12,), 2048),
    ],
)
def test_evaluation_takes_as_many_pixels_at_a_time_as_a_step(
    options: dict[str, object], views: int, shape: tuple[int, ...], samples: int
) -> None:
    assert evaluation_batch_size(TrainOptions(**options), views, shape) == samples  # type: ignore[arg-type]
