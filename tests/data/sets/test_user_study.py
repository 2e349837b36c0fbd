"""A study file over the user's own images: its keys checked, a trial run, a wrong column told before it starts."""

import math

import pytest
from pictures import picture

from study.commands import trial as one_trial
from study.errors import UserError
from study.spec import load_study

STUDY = """
name: mine
data: {name: image_folder, path: birds, bias: place, condition: [wing], size: 8}
model: {name: small_conv_net}
method: {name: eps_sup_info_nce, temperature: 0.1, regulariser: fair_kl, lambda: 0.1}
train: {epochs: 1, batch_size: 16}
search:
  space:
    method.alpha: {low: 0.1, high: 1.0}
  trials: 2
"""


@pytest.fixture
def folder(workplace):
    for number in range(60):
        picture(workplace / "birds" / f"{number}.jpg", number)
    lines = [f"{n}.jpg,{('gull', 'wren')[n % 2]},{('land', 'sea')[n // 2 % 2]},{n / 7}" for n in range(60)]
    (workplace / "birds" / "labels.csv").write_text("\n".join(["file,target,place,wing", *lines]))
    (workplace / "mine.yaml").write_text(STUDY)
    return workplace


def test_a_trial_over_the_users_images(folder):
    (epoch,) = one_trial.run(load_study("mine.yaml", []))
    assert math.isfinite(epoch["train/loss"])
    assert 0.0 <= epoch["val/worst_group_accuracy"] <= epoch["val/accuracy"] <= 1.0


def test_without_a_bias_column_what_needs_one_is_refused(folder):
    with pytest.raises(UserError, match="needs bias labels"):
        load_study("mine.yaml", ["data.bias=null"])


def test_a_wrong_column_is_told_before_anything_starts(folder):
    told = r"^mine\.yaml:3: data: .*labels\.csv: no column 'plaice'\. Did you mean 'place'\?"
    with pytest.raises(UserError, match=told):
        load_study("mine.yaml", ["data.bias=plaice"])
    with pytest.raises(UserError, match=r"data\.frame: 'stretch' given\. Allowed: 'crop' or 'squash'"):
        load_study("mine.yaml", ["data.frame=stretch"])
