"""The papers' losses by name, and the example that its documentation shows."""

import doctest

import pytest
import torch

import study
from study.api import losses
from study.losses.eps_sup_info_nce import eps_sup_info_nce


def test_the_documented_example_is_right() -> None:
    assert doctest.testmod(losses).failed == 0
    assert doctest.testmod(losses).attempted == 5


def test_a_loss_is_that_of_the_methods() -> None:
    assert study.loss("eps_sup_info_nce") is eps_sup_info_nce
    views = torch.nn.functional.normalize(torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0)), dim=-1)
    views.requires_grad_()
    study.loss("fair_kl")(
        views, target=torch.tensor([0, 0, 0, 1, 1, 1]), bias=torch.tensor([0, 1, 1, 0, 0, 1])
    ).backward()
    assert views.grad is not None
    assert views.grad.isfinite().all()


def test_an_unknown_name_says_which_there_are() -> None:
    with pytest.raises(study.UserError, match=r"'fairkl': no such loss.*'fair_kl'.*There are: .*sup_con"):
        study.loss("fairkl")
