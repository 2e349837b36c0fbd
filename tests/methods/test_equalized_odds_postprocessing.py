"""Thresholds per bias class: what they do to a biased classifier's predictions, and that training knows nothing."""

import numpy as np
import pytest
from small import digits, trained

from study import methods
from study.data.dataset import Dataset, Facts, Split


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """Digits below five against the others, on one of two colours: aligned ones are four of five."""
    splits, generator = {}, np.random.default_rng(0)
    for name, split in digits(0.1).splits.items():
        target = (split.target >= 5).astype(np.int64)
        bias = np.where(generator.random(len(split)) < 0.8, target, 1 - target)
        inputs = split.inputs.copy()
        inputs[:, 0] = np.maximum(inputs[:, 0], 255 * bias[:, None, None].astype(np.uint8))
        splits[name] = Split(inputs, target, bias)
    return Dataset(Facts(classes=2, bias_classes=2, shape=(3, 8, 8)), splits)


@pytest.mark.slow
def test_the_gap_shrinks_and_training_is_that_of_a_cross_entropy(dataset: Dataset) -> None:
    (plain, before), (trial, after) = (
        trained({"name": name}, dataset, epochs=3, learning_rate=0.003)
        for name in ("cross_entropy", "equalized_odds_postprocessing")
    )
    assert [one["train/loss"] for one in before] == [one["train/loss"] for one in after]
    assert plain.evaluate("train")["train/equalized_odds"] > 0.2
    assert trial.evaluate("train")["train/equalized_odds"] < 0.1
    assert after[-1]["val/accuracy"] > 0.55
    assert trial.evaluate("test") == trial.evaluate("test")


def test_it_is_for_two_classes_with_bias_labels() -> None:
    needs = methods.method_needs({"name": "equalized_odds_postprocessing"})
    assert list(needs.unmet_by(Facts(classes=2, bias_classes=3, shape=(4,)))) == []
    lacking = [why for _, why in needs.unmet_by(Facts(classes=3, bias_classes=None, shape=(4,)))]
    assert lacking == ["needs bias labels", "needs two classes, not 3"]
