"""Inputs that a loss cannot be computed from are refused in words."""

import pytest
import torch
from torch.nn.functional import normalize

from study.losses.cclk import fair_cclk
from study.losses.debiased_info_nce import debiased_info_nce
from study.losses.fair_kl import fair_kl
from study.losses.info_nce import info_nce
from study.losses.sup_con import sup_con

VIEWS = normalize(torch.randn(2, 12, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64), dim=-1)


def test_wrong_inputs_are_named() -> None:
    with pytest.raises(ValueError, match=r"two views of each sample, got 1"):
        debiased_info_nce(VIEWS[:1])
    with pytest.raises(ValueError, match=r"two views of each sample or more, got 1"):
        info_nce(VIEWS[:1])
    for empty in ("negatives", "extra_positives"):
        with pytest.raises(ValueError, match=f"{empty} is empty: leave it out"):
            debiased_info_nce(VIEWS, **{empty: VIEWS[:0]})
    with pytest.raises(ValueError, match="either bias"):
        fair_kl(VIEWS, target=torch.arange(12) % 3)
    with pytest.raises(ValueError, match=r"sup_con: temperature is no tensor, got \(\) of type torch.float32"):
        sup_con(VIEWS, temperature=torch.tensor(0.1))
    with pytest.raises(ValueError, match="needs a condition"):
        fair_cclk(VIEWS)
    with pytest.raises(ValueError, match=r"shape \(B,\), got \(12, 3\)"):
        sup_con(VIEWS, target=torch.zeros(12, 3))


def test_a_second_derivative_is_refused() -> None:
    views = VIEWS.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="can be differentiated once"):
        torch.autograd.grad(sup_con(views), views, create_graph=True)
