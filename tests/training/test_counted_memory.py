"""The count of a trial's memory for networks that look at values where they are built."""

from dataclasses import replace

import pytest
from helpers import quickstart
from small import digits, section
from torch import nn

from study import models
from study.commands import memory
from study.models import torchvision as networks_of_torchvision
from study.training.config import TrainOptions, TrialConfig
from study.training.counted_memory import CannotCount, count

FACTS = replace(digits().facts, shape=(3, 64, 64))
GIB = 2**30


def trial(architecture: str) -> TrialConfig:
    given = {"name": "torchvision", "architecture": architecture}
    model = {key: knob.default for key, knob in models.model_knobs(given).items()} | given
    return TrialConfig({}, model, section(name="sup_con"), TrainOptions(batch_size=4))


@pytest.mark.slow
def test_weights_that_are_drawn_until_they_are_within_bounds() -> None:
    drawn = nn.init.trunc_normal_
    counted = count(trial("convnext_tiny"), FACTS)
    assert not counted.without_loss
    assert counted.step > 4 * 4 * 28e6, "weights, their gradients and Adam's two states"
    assert nn.init.trunc_normal_ is drawn


@pytest.mark.slow
def test_the_count_does_not_tell_later_trials_that_images_do_not_suit_the_network() -> None:
    """A check of the network, whose answer is kept, needs values itself; and what it makes is not the trial's."""
    networks_of_torchvision._wrong_size.cache_clear()
    first = count(trial("squeezenet1_0"), FACTS)
    assert count(trial("squeezenet1_0"), FACTS) == first
    networks_of_torchvision._wrong_size.cache_clear()
    with pytest.raises(CannotCount):
        count(trial("regnet_y_400mf"), FACTS)
    assert models.unsuited(trial("regnet_y_400mf").model, FACTS) is None


def test_a_study_that_cannot_be_counted_is_planned_and_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*given: object) -> None:
        raise CannotCount("values")

    monkeypatch.setattr("study.training.counted_memory.count", cannot)
    spec = quickstart("resources.gpu=1", "model.width=7")
    assert memory.memory(spec) is None
    memory.check_card(spec, GIB)
