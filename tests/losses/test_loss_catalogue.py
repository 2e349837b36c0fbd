"""The catalogue finds every loss, and what it finds keeps to the conventions."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from study.knobs import read_knobs
from study.losses import loss_catalogue
from study.losses.bias_con import bias_con
from study.losses.debiased_info_nce import debiased_info_nce
from study.losses.eps_sup_info_nce import eps_sup_info_nce
from study.losses.fair_kl import fair_kl
from study.losses.fair_sup_con import fair_sup_con
from study.losses.loss_catalogue import classification_losses_by_name, losses_by_name, regularisers_by_name

EVERYTHING = {**losses_by_name(), **regularisers_by_name(), **classification_losses_by_name()}
INPUTS = {"target", "weight", "bias", "bias_features", "condition", "similarity"}
"""What a batch, its embeddings and a bias-capturing model can give any function."""

INPUTS |= {"biased_views", "confusion", "extra_positives", "negatives"}
"""And what only methods of their own, or callers in Python, can."""


@pytest.mark.parametrize("name", EVERYTHING)
def test_signatures_are_uniform(name: str) -> None:
    first, *rest = inspect.signature(EVERYTHING[name]).parameters.values()
    assert first.name == ("logits" if name in classification_losses_by_name() else "views")
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in rest)
    hyperparameters = {knob.key for knob in read_knobs(EVERYTHING[name])}
    assert {parameter.name for parameter in rest} - hyperparameters <= INPUTS
    assert not any(knob.required for knob in read_knobs(EVERYTHING[name]))
    assert EVERYTHING[name].__doc__


def test_a_regulariser_shares_no_key_with_a_loss() -> None:
    """Both are set by method.KEY in one study file, so that one key may not mean two things."""
    keys = [
        {knob.key for function in kind().values() for knob in read_knobs(function)}
        for kind in (losses_by_name, regularisers_by_name)
    ]
    assert not keys[0] & keys[1]


def test_two_losses_of_one_name_are_refused() -> None:
    def info_nce(views: Tensor) -> Tensor:
        return views

    with pytest.raises(ValueError, match="two losses are called 'info_nce'"):
        loss_catalogue.regulariser(info_nce)


class LargestTensor(TorchDispatchMode):
    """The number of elements of the largest tensor that any operation returns."""

    elements = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple | list) else [result]:
            if isinstance(tensor, Tensor):
                self.elements = max(self.elements, tensor.untyped_storage().nbytes() // tensor.element_size())
        return result


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        *((eps_sup_info_nce, {"form": form}) for form in "abcd"),
        (fair_kl, {}),
        (fair_sup_con, {"group_norm": True}),
        (bias_con, {}),
        (debiased_info_nce, {}),
        (losses_by_name()["hard_negative_cclk"], {}),
    ],
)
def test_no_tensor_is_larger_than_the_similarity_matrix(loss: Callable[..., Tensor], options: dict[str, Any]) -> None:
    samples = 32
    views = torch.randn(2, samples, 4, requires_grad=True)
    labels = {"target": torch.arange(samples) % 4, "bias": torch.arange(samples) % 3}
    wanted = {name: label for name, label in labels.items() if name in inspect.signature(loss).parameters}
    with LargestTensor() as largest:
        loss(views, **wanted, **options).backward()
    assert largest.elements <= (2 * samples) ** 2


def test_fair_kl_by_moments_takes_the_four_cells_at_once() -> None:
    samples = 32
    views = torch.randn(2, samples, 4, requires_grad=True)
    with LargestTensor() as largest:
        labels = {"target": torch.arange(samples) % 4, "bias": torch.arange(samples) % 3}
        fair_kl(views, **labels, variant="kl", pooled=False).backward()
    assert largest.elements == 4 * (2 * samples) ** 2
