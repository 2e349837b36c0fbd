"""WCL: two encoders, each trained by its own loss alone."""

import pytest
import torch
from small import method_for_rows, rows, steps
from torch.nn import functional

from study import methods
from study.losses.wcl_losses import biased_triplet, difficulty_weighted_info_nce


def gradients(network: torch.nn.Module) -> list[torch.Tensor]:
    return [value.grad.clone() for value in network.parameters() if value.grad is not None]


def embedded(network, views):
    return functional.normalize(network(views.flatten(0, 1))[1], dim=1).unflatten(0, views.shape[:2])


def test_the_loss_is_the_sum_of_both_encoders_losses() -> None:
    method, batch = method_for_rows(name="wcl", tau_plus=0.2, temperature=0.4), rows(views=2)
    own, biased = embedded(method.network, batch.views), embedded(method.biased, batch.views)
    contrast = difficulty_weighted_info_nce(own, biased_views=biased, tau_plus=0.2, temperature=0.4)
    loss, features = method(batch)
    torch.testing.assert_close(loss, contrast + biased_triplet(biased, tau_plus=0.2))
    assert set(features) == set(method.encoders()) == {"encoder", "biased_encoder"}
    torch.testing.assert_close(features["biased_encoder"], method.biased.encoder(batch.views[0]))


def test_each_loss_trains_its_own_encoder_alone() -> None:
    method, batch = method_for_rows(name="wcl"), rows(views=2)
    method(batch)[0].backward()
    both = gradients(method.network), gradients(method.biased)
    method.zero_grad()
    own = embedded(method.network, batch.views)
    with torch.no_grad():
        biased = embedded(method.biased, batch.views)
    difficulty_weighted_info_nce(own, biased_views=biased, tau_plus=0.1).backward()
    assert gradients(method.biased) == []
    torch.testing.assert_close(gradients(method.network), both[0])
    method.zero_grad()
    biased_triplet(embedded(method.biased, batch.views), tau_plus=0.1).backward()
    assert gradients(method.network) == []
    torch.testing.assert_close(gradients(method.biased), both[1])


@pytest.mark.parametrize("form", ["sum", "per_negative"])
def test_it_learns_without_labels(form: str) -> None:
    method, batch = method_for_rows(name="wcl", form=form), rows(views=2)
    losses = steps(method, batch, 60)
    assert losses[-1] < losses[0] - 0.5
    features = functional.normalize(method.network.encoder(batch.views[0]), dim=1).detach()
    agreement = (features @ features.T).fill_diagonal_(-2).argmax(1)
    assert (batch.labels.target[agreement] == batch.labels.target).float().mean() > 0.6


def test_it_needs_two_views() -> None:
    assert methods.method_needs({"name": "wcl"}).views_key == "name"
    assert method_for_rows(name="wcl").views == 2
