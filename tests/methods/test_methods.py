"""Methods by name: their keys, their bias labels and the objective that they build."""

import pytest
import torch
from helpers import quickstart
from torch import Tensor
from torch.nn import functional

from study import methods
from study.errors import UserError
from study.losses.catalogue import losses, regularisers
from study.methods.objective import Objective, Weights

EPS = {"name": "eps_sup_info_nce", "temperature": 0.2, "base_temperature": None, "epsilon": 0.3, "alpha": 0.25}


def batch() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    rows = functional.normalize(torch.randn(12, 6, generator=generator), dim=1)
    return rows, torch.arange(12) % 3, torch.arange(12) % 2


class Counted:
    """A loss of a fixed value that counts its calls and keeps what it was called with."""

    def __init__(self, value: float) -> None:
        self.value, self.calls, self.views = value, 0, torch.empty(0)

    def __call__(self, views: Tensor, *, target: Tensor, bias: Tensor | None) -> Tensor:
        self.calls, self.views = self.calls + 1, views
        return torch.tensor(self.value)


def weighed(alpha: float, lambda_: float) -> tuple[float, Counted, Counted]:
    rows, target, bias = batch()
    loss, regulariser = Counted(3.0), Counted(7.0)
    objective = Objective(loss, regulariser, Weights(alpha, lambda_))
    return float(objective(rows[None], rows, target=target, bias=bias)), loss, regulariser


def test_alpha_acts_once_and_lambda_weighs_the_regulariser() -> None:
    assert weighed(0.5, 2.0)[0] == 0.5 * 3.0 + 2.0 * 7.0
    assert weighed(0.03, 1.0)[0] == pytest.approx(0.03 * 3.0 + 7.0)


def test_lambda_zero_skips_the_regulariser() -> None:
    value, loss, regulariser = weighed(1.0, 0.0)
    assert (value, loss.calls, regulariser.calls) == (3.0, 1, 0)


def test_alpha_zero_leaves_the_regulariser_alone() -> None:
    assert weighed(0.0, 1.0)[0] == 7.0


def test_the_loss_sees_embeddings_and_the_regulariser_features() -> None:
    rows, target, bias = batch()
    loss, regulariser = Counted(0.0), Counted(0.0)
    features = rows[:, :3]
    Objective(loss, regulariser, Weights(1.0, 1.0))(rows[None], features, target=target, bias=bias)
    assert loss.views.shape == (1, 12, 6)
    assert torch.equal(regulariser.views, features[None])


def test_a_built_objective_is_the_weighted_sum_of_its_functions() -> None:
    rows, target, bias = batch()
    section = EPS | {"regulariser": "fair_kl", "lambda": 2.0}
    value = methods.build(section)(rows[None], rows, target=target, bias=bias)
    loss = losses()["eps_sup_info_nce"](rows[None], target=target, temperature=0.2, epsilon=0.3)
    debias = regularisers()["fair_kl"](rows[None], target=target, bias=bias)
    assert value == 0.25 * loss + 2.0 * debias


def test_without_a_regulariser_the_objective_is_the_weighted_loss() -> None:
    rows, target, _ = batch()
    value = methods.build(EPS | {"regulariser": "none"})(rows[None], rows, target=target, bias=None)
    assert value == 0.25 * losses()["eps_sup_info_nce"](rows[None], target=target, temperature=0.2, epsilon=0.3)


def test_the_keys_of_a_method_are_those_of_its_functions_and_weights() -> None:
    alone = methods.method_knobs({"name": "eps_sup_info_nce"})
    both = methods.method_knobs({"name": "eps_sup_info_nce", "regulariser": "fair_kl"})
    assert set(alone) == {"alpha", "temperature", "base_temperature", "epsilon"}
    assert set(both) == {*alone, "lambda"}
    assert {key: knob.default for key, knob in alone.items()} == {
        "alpha": 1.0,
        "temperature": 0.1,
        "base_temperature": None,
        "epsilon": 0.0,
    }


def test_who_needs_bias_labels() -> None:
    assert not methods.needs_bias({"name": "eps_sup_info_nce"})
    assert not methods.needs_bias({"name": "eps_sup_info_nce", "regulariser": "none"})
    assert methods.needs_bias({"name": "eps_sup_info_nce", "regulariser": "fair_kl"})


def test_names() -> None:
    assert {"eps_sup_info_nce"} <= set(methods.names())
    assert methods.regulariser_names()[0] == "none"
    assert "fair_kl" in methods.regulariser_names()
    assert not set(methods.names()) & set(methods.regulariser_names())


@pytest.mark.parametrize("key", ["tau_plus", "lambda_", "target", "bias", "views", "kernel"])
def test_what_is_no_key_of_a_method_is_refused(key: str) -> None:
    with pytest.raises(UserError, match=rf"method\.{key}: unknown key\. .*Allowed here: name, regulariser, alpha"):
        quickstart(f"method.{key}=1")
