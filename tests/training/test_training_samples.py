"""Training on less than the training split, and on more."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from small import config, digits

from study.data.dataset import Split
from study.training.loop import append_val_to_train, reduce_to_data_share
from study.training.trial import Trial

SUPERVISED = {"name": "sup_con"}


def test_the_validation_samples_stand_behind_the_training_samples() -> None:
    dataset = digits()
    found = append_val_to_train(dataset)
    assert sorted(found.splits) == ["test", "train"]
    train, val = dataset.splits["train"], dataset.splits["val"]
    joined = found.splits["train"]
    assert len(joined) == len(train) + len(val)
    np.testing.assert_array_equal(joined.inputs[len(train) :], val.inputs)
    np.testing.assert_array_equal(joined.target, np.concatenate([train.target, val.target]))
    np.testing.assert_array_equal(joined.bias, np.concatenate([train.bias, val.bias]))
    assert found.fingerprint != dataset.fingerprint


def test_a_trial_on_both_reports_nothing_of_validation_and_learns_from_more() -> None:
    dataset = digits()
    both, alone = (Trial(config(SUPERVISED, epochs=2, with_val=given), dataset, "cpu") for given in (True, False))
    reports = list(both.train_epochs())
    assert not [name for name in reports[-1] if name.startswith("val/")]
    assert reports[-1]["train/loss"] != list(alone.train_epochs())[-1]["train/loss"]
    assert both.evaluate("test")["test/accuracy"] == pytest.approx(alone.evaluate("test")["test/accuracy"], abs=0.3)


def test_a_share_of_training_is_exact_in_each_cell_also_where_the_bias_is_not_known() -> None:
    dataset = digits()
    train = dataset.splits["train"]
    size = 60
    pairs = [(1, -1)] * size + [(0, 1)] * size + [(1, 0)] * size + [(0, -1)] * size + [(1, 1)] * size
    whole = Split(train.inputs[: 5 * size], *np.array(pairs).T)
    found = reduce_to_data_share(replace(dataset, splits={**dataset.splits, "train": whole}), 0.1).splits["train"]
    assert Counter(zip(found.target.tolist(), found.bias.tolist(), strict=True)) == dict.fromkeys(pairs, size // 10)


def test_a_part_comes_before_the_whole_of_validation() -> None:
    dataset = digits()
    half = len(reduce_to_data_share(dataset, 0.5).splits["train"])
    trial = Trial(config(SUPERVISED, data_share=0.5, with_val=True), dataset, "cpu")
    assert len(trial.dataset.splits["train"]) == half + len(dataset.splits["val"])
