"""Equalized odds by thresholds, on scores that are better for one group than for the other."""

import pytest
import torch
from torch import Tensor

from study.data import Facts
from study.errors import UserError
from study.training import metrics, postprocess

FACTS = Facts(2, 2, (4,))


def samples(seed: int, count: int = 4000) -> tuple[Tensor, Tensor, Tensor]:
    """Logits (N, 2), target and bias: the bias class shifts the score and correlates with the target."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(0, 2, (count,), generator=generator)
    bias = torch.where(torch.rand(count, generator=generator) < 0.8, target, 1 - target)
    margin = 2.0 * target + 1.5 * bias - 1.75 + torch.randn(count, generator=generator)
    return torch.stack([torch.zeros(count), margin], 1), target, bias


def gap(prediction: Tensor, target: Tensor, bias: Tensor) -> tuple[float, float]:
    found = metrics.compute_metrics(None, prediction, target, bias, FACTS)
    return float(found["accuracy"]), float(found["equalized_odds"])


def test_it_evens_out_the_odds_on_other_samples_and_costs_some_accuracy() -> None:
    fair = postprocess.fit_equalized_odds_thresholds(*samples(0))
    scores, target, bias = samples(1)
    plain, evened = scores.argmax(1), fair.predict(scores, bias, seed=0)
    before, after = gap(plain, target, bias), gap(evened, target, bias)
    assert before[1] > 0.3
    assert after[1] < 0.05
    assert 0.65 < after[0] < before[0]


def test_the_seed_decides_the_draws() -> None:
    scores, target, bias = samples(0)
    fair = postprocess.fit_equalized_odds_thresholds(scores, target, bias)
    first = fair.predict(scores, bias, seed=1)
    assert first.dtype == torch.int64
    assert torch.equal(fair.predict(scores, bias, seed=1), first)
    assert not torch.equal(fair.predict(scores, bias, seed=2), first)


def test_samples_without_a_label_are_left_out() -> None:
    scores, target, bias = samples(0, 600)
    fewer = postprocess.fit_equalized_odds_thresholds(scores[100:], target[100:], bias[100:]).predict(scores, bias, 0)
    target[:50], bias[50:100] = -1, -1
    given = torch.where(bias < 0, 0, bias)
    assert torch.equal(
        postprocess.fit_equalized_odds_thresholds(scores, target, bias).predict(scores, given, 0)[100:], fewer[100:]
    )


def test_what_it_cannot_be_used_for() -> None:
    scores, target, bias = samples(0, 100)
    with pytest.raises(UserError, match=r"two classes, got scores of shape \(100, 3\)"):
        postprocess.fit_equalized_odds_thresholds(torch.zeros(100, 3), target, bias)
    with pytest.raises(UserError, match="got class 2"):
        postprocess.fit_equalized_odds_thresholds(scores, target + 1, bias)
    with pytest.raises(UserError, match="every sample of bias class 1 has class 0"):
        postprocess.fit_equalized_odds_thresholds(scores, torch.where(bias == 1, 0, target), bias)
    with pytest.raises(UserError, match="no sample has both"):
        postprocess.fit_equalized_odds_thresholds(scores, torch.full_like(target, -1), bias)
    with pytest.raises(UserError, match=r"bias classes \[5\] are not among"):
        postprocess.fit_equalized_odds_thresholds(scores, target, bias).predict(
            scores, bias + 5 * (bias == 1) - bias * (bias == 1), 0
        )
