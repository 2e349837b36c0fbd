"""Where the width of the kernel of CCL-K turns it into another loss, and what its weights add up to."""

import math

import pytest
import torch
from small_batch import BIAS, NEGATIVES, OTHER_VIEW, OTHERS, SAMPLES, TEMPERATURE, VIEWS, close, log_sum

from study.losses.cclk import fair_cclk, hard_negative_cclk, kernel_weight_diagnostics, weakly_supervised_cclk

CONDITION = torch.randn(SAMPLES, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_sigma2_to_0_leaves_no_similar_condition() -> None:
    """K = I: no weights. Fair: no negatives, loss 0. Weakly supervised: the least conditional similarity, 1e-7."""
    close(fair_cclk(VIEWS, bias=CONDITION, temperature=TEMPERATURE, sigma2=1e-9), 0.0)
    close(hard_negative_cclk(VIEWS, temperature=TEMPERATURE, sigma2=1e-9), 0.0)
    ours = weakly_supervised_cclk(VIEWS, bias=CONDITION, temperature=TEMPERATURE, sigma2=1e-9)
    close(ours, torch.log1p((log_sum(OTHERS) - math.log(1e-7)).exp()).mean())
    assert kernel_weight_diagnostics(CONDITION, sigma2=1e-9) == {
        "weightless_share": 1,
        "weight_sum": 0,
        "effective_negatives": 0,
    }


@pytest.mark.parametrize("loss", [fair_cclk, hard_negative_cclk])
def test_sigma2_to_infinity_is_info_nce_over_all_others(loss: object) -> None:
    """K = 1: every other sample weighs 1/(B + ridge), which leaves InfoNCE with (B-1)/(B+ridge) of its negatives."""
    ours = loss(VIEWS, condition=CONDITION, temperature=TEMPERATURE, sigma2=1e12, ridge=1e-3)  # type: ignore[operator]
    share = (SAMPLES - 1) / (SAMPLES + 1e-3)
    expected = torch.log1p(share * (log_sum(NEGATIVES) - OTHER_VIEW).exp()).mean()
    torch.testing.assert_close(ours, expected, rtol=1e-6, atol=0)
    measures = kernel_weight_diagnostics(CONDITION, sigma2=1e12, ridge=1e-3)
    assert measures["weightless_share"] == 0
    torch.testing.assert_close(float(measures["weight_sum"]), share, rtol=1e-6, atol=0)
    torch.testing.assert_close(float(measures["effective_negatives"]), SAMPLES - 1.0, rtol=1e-6, atol=0)


def test_a_narrow_kernel_keeps_its_weight_on_the_diagonal_which_the_released_form_leaves_out() -> None:
    """No sample is without any weight, and yet next to nothing is left."""
    colours = torch.rand(256, 3, generator=torch.Generator().manual_seed(0))
    narrow, wide = (
        kernel_weight_diagnostics(colours, sigma2=0.01, ridge=0.01),
        kernel_weight_diagnostics(colours, sigma2=100.0, ridge=0.1),
    )
    assert narrow["weightless_share"] == wide["weightless_share"] == 0
    assert narrow["weight_sum"] < 0.05 < 0.9 < wide["weight_sum"]
    assert narrow["effective_negatives"] < 4 < 100 < wide["effective_negatives"]


def test_classes_as_condition_are_one_hot_values() -> None:
    one_hot = torch.nn.functional.one_hot(BIAS).double()
    for kernel in ("rbf", "laplacian", "linear", "cosine", "polynomial"):
        close(fair_cclk(VIEWS, bias=BIAS, kernel=kernel), fair_cclk(VIEWS, bias=one_hot, kernel=kernel))
