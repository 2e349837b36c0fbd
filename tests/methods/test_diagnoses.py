"""What contrastive losses tell about themselves."""

import pytest
import torch
from small import method_for_rows, rows
from torch.nn import functional

from study.losses.cclk import kernel_weight_diagnostics
from study.losses.debiased_info_nce import share_of_floored_rows


@pytest.mark.parametrize("name", ["debiased_info_nce", "hard_negative_info_nce"])
def test_the_share_of_floored_rows(name: str) -> None:
    batch, shares = rows(views=2), []
    for temperature in (0.05, 0.5):
        method = method_for_rows(name=name, temperature=temperature, tau_plus=0.3)
        found = method.diagnose(batch)
        views = functional.normalize(method.network.encoder(batch.views.flatten(0, 1)), dim=1).unflatten(0, (2, 64))
        beta = 1.0 if name == "hard_negative_info_nce" else None
        beta = method.loss.contrastive.options.get("beta", beta)
        expected = share_of_floored_rows(views, temperature=temperature, tau_plus=0.3, beta=beta)
        assert found == {"floored_share": expected}
        shares.append(float(expected.detach()))
    assert shares[0] != shares[1]


def test_further_positives_enter_the_floor() -> None:
    batch = rows(views=4)
    method = method_for_rows(name="debiased_info_nce", positives=2, temperature=0.1, tau_plus=0.3)
    views = functional.normalize(method.network.encoder(batch.views.flatten(0, 1)), dim=1).unflatten(0, (4, 64))
    expected = share_of_floored_rows(views[:2], extra_positives=views[2:], temperature=0.1, tau_plus=0.3)
    assert method.diagnose(batch) == {"floored_share": expected}


@pytest.mark.slow
def test_the_share_of_samples_without_a_weight() -> None:
    batch = rows(views=2)
    batch.labels.bias[:] = 0
    batch.labels.bias[5] = 1  # alone in its class
    method = method_for_rows(name="fair_cclk", kernel="rbf", sigma2=0.01)
    assert method.diagnose(batch)["weightless_share"] == pytest.approx(1 / 64)
    itself = method_for_rows(name="hard_negative_cclk", kernel="cosine")
    features = itself.network.encoder(batch.views[0])
    assert itself.diagnose(batch) == kernel_weight_diagnostics(features, kernel="cosine")
    assert method_for_rows(name="fair_cclk", form="paper").diagnose(batch).keys() == {"weightless_share"}


def test_other_losses_have_nothing_to_tell() -> None:
    assert method_for_rows(name="info_nce").diagnose(rows(views=2)) == {}
    assert torch.is_tensor(method_for_rows(name="info_nce")(rows(views=2))[0])
