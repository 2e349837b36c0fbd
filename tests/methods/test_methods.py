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


def section(**given: object) -> dict[str, object]:
    """A complete method section."""
    found = EPS | given
    return {key: knob.default for key, knob in methods.method_knobs(found).items()} | found


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
    return float(objective(rows[None], rows[None], target=target, bias=bias)), loss, regulariser


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
    Objective(loss, regulariser, Weights(1.0, 1.0))(rows[None], features[None], target=target, bias=bias)
    assert loss.views.shape == (1, 12, 6)
    assert torch.equal(regulariser.views, features[None])


def test_a_built_objective_is_the_weighted_sum_of_its_functions() -> None:
    rows, target, bias = batch()
    value = methods.build(section(regulariser="fair_kl", **{"lambda": 2.0}))(
        rows[None], rows[None], target=target, bias=bias
    )
    loss = losses()["eps_sup_info_nce"](rows[None], target=target, temperature=0.2, epsilon=0.3)
    debias = regularisers()["fair_kl"](rows[None], target=target, bias=bias)
    assert value == 0.25 * loss + 2.0 * debias


def test_one_matrix_of_similarities_serves_both_terms() -> None:
    """Where loss and regulariser see the same rows: the value of two matrices."""
    rows, target, bias = batch()
    objective, views = methods.build(section(regulariser="fair_kl", **{"lambda": 2.0})), rows[None]
    apart = objective(views, rows[None], target=target, bias=bias)
    torch.testing.assert_close(objective(views, views, target=target, bias=bias), apart)


def test_only_what_one_view_and_labels_suffice_for_is_a_method() -> None:
    assert {"eps_sup_info_nce", "sup_con", "fair_sup_con", "bias_con"} <= set(methods.names())
    assert not {"info_nce", "fair_cclk", "soft_con", "difficulty_weighted_info_nce"} & set(methods.names())


@pytest.mark.parametrize("size", [12, 1])
@pytest.mark.parametrize("regulariser", ["end", "fair_kl"])
@pytest.mark.parametrize("name", methods.names())
def test_every_method_gives_a_finite_value_and_gradient(name: str, regulariser: str, size: int) -> None:
    """Also for the last batch of an epoch, which may hold one sample."""
    given = {"name": name, "regulariser": regulariser, "lambda": 1.0}
    complete = {key: knob.default for key, knob in methods.method_knobs(given).items()} | given
    rows, target, bias = (part[:size] for part in batch())
    views = rows[None].requires_grad_()
    value = methods.build(complete)(views, views, target=target, bias=bias)
    value.backward()
    assert torch.isfinite(value)
    assert views.grad is not None
    assert torch.isfinite(views.grad).all()


def test_without_a_regulariser_the_objective_is_the_weighted_loss() -> None:
    rows, target, _ = batch()
    value = methods.build(section(regulariser="none"))(rows[None], rows[None], target=target, bias=None)
    assert value == 0.25 * losses()["eps_sup_info_nce"](rows[None], target=target, temperature=0.2, epsilon=0.3)


def test_the_keys_of_a_method_are_those_of_its_functions_and_weights() -> None:
    alone = methods.method_knobs({"name": "eps_sup_info_nce"})
    both = methods.method_knobs({"name": "eps_sup_info_nce", "regulariser": "fair_kl"})
    assert {"alpha", "temperature", "base_temperature", "epsilon"} <= set(alone)
    assert not {"lambda", "variant", "tau_plus"} & set(alone)
    assert {*alone, "lambda", "variant"} <= set(both)
    assert {"alpha": 1.0, "temperature": 0.1, "epsilon": 0.0}.items() <= {
        k: v.default for k, v in alone.items()
    }.items()


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
