"""The weighted sum of a loss and a regulariser."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from study.losses.loss_catalogue import losses_by_name, regularisers_by_name
from study.methods.debiasing import LossTerm, RegularisedLoss, TermWeights

ROWS = functional.normalize(torch.randn(1, 12, 6, generator=torch.Generator().manual_seed(0)), dim=2)
LABELS = {"target": torch.arange(12) % 3, "bias": torch.arange(12) % 2}


class Counted:
    """A term of a fixed value that counts its calls and keeps what it was called with."""

    def __init__(self, value: float) -> None:
        self.value, self.calls, self.views = value, 0, torch.empty(0)

    def __call__(self, views: Tensor, inputs: Mapping[str, Tensor | None]) -> Tensor:
        self.calls, self.views = self.calls + 1, views
        return torch.tensor(self.value)


def weighed(weights: TermWeights) -> tuple[float, Counted, Counted]:
    loss, regulariser = Counted(3.0), Counted(7.0)
    return float(RegularisedLoss(loss, regulariser, weights)(ROWS, ROWS, LABELS, LABELS)), loss, regulariser  # type: ignore[arg-type]


def test_alpha_acts_once_and_lambda_weighs_the_regulariser() -> None:
    assert weighed(TermWeights(0.5, 2.0))[0] == 0.5 * 3.0 + 2.0 * 7.0
    assert weighed(TermWeights(0.03, 1.0))[0] == pytest.approx(0.03 * 3.0 + 7.0)


def test_alpha_acts_squared_only_where_asked_for_and_with_a_regulariser() -> None:
    assert weighed(TermWeights(0.5, 2.0, alpha_squared=True))[0] == 0.25 * 3.0 + 2.0 * 7.0
    assert weighed(TermWeights(0.5, 0.0, alpha_squared=True))[0] == 0.5 * 3.0


def test_lambda_zero_skips_the_regulariser_and_alpha_zero_leaves_it_alone() -> None:
    value, loss, regulariser = weighed(TermWeights(1.0, 0.0))
    assert (value, loss.calls, regulariser.calls) == (3.0, 1, 0)
    assert weighed(TermWeights(0.0, 1.0))[0] == 7.0


def test_one_matrix_of_similarities_serves_both_terms() -> None:
    """Where loss and regulariser see the same rows: the value of two matrices."""
    method = {"temperature": 0.2, "epsilon": 0.3}
    terms = (
        LossTerm.from_method(losses_by_name()["eps_sup_info_nce"], method),
        LossTerm.from_method(regularisers_by_name()["fair_kl"], {}),
    )
    combined = RegularisedLoss(*terms, TermWeights(0.25, 2.0))
    apart = combined(ROWS, ROWS.clone(), LABELS, LABELS)
    torch.testing.assert_close(combined(ROWS, ROWS, LABELS, LABELS), apart)
    loss = losses_by_name()["eps_sup_info_nce"](ROWS, target=LABELS["target"], **method)
    assert apart == 0.25 * loss + 2.0 * regularisers_by_name()["fair_kl"](ROWS, **LABELS)


def test_a_term_takes_from_the_named_tensors_what_its_function_knows() -> None:
    term = LossTerm.from_method(losses_by_name()["sup_con"], {"temperature": 0.5, "tau_plus": 0.1})
    assert term.options == {"temperature": 0.5}
    assert term.accepted_tensors == {"target", "similarity"}
    assert term(ROWS, {**LABELS, "condition": ROWS}) == losses_by_name()["sup_con"](
        ROWS, target=LABELS["target"], temperature=0.5
    )
