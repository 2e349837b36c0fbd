"""LAFTR: the adversary's loss by hand, its gradients' directions, and what it hides."""

import torch
from small import TABLE, method_for_rows, rows, steps
from torch.nn import functional

from study import methods
from study.data.dataset import Facts
from study.methods import UNKNOWN_LABEL
from study.methods.classifier_methods import adversary_group_error


def test_the_adversarys_loss_is_the_group_normalised_l1_of_the_paper() -> None:
    batch = rows()
    target, bias = batch.labels.target, batch.labels.bias
    score = torch.randn(64, generator=torch.Generator().manual_seed(0))
    h = score.sigmoid()  # the probability of bias class 1
    expected = sum((h - bias)[(target == y) & (bias == a)].abs().mean() for y in (0, 1) for a in (0, 1))
    found = adversary_group_error(torch.stack([torch.zeros(64), score], 1), target, bias, 2)
    torch.testing.assert_close(found, expected)


def test_unknown_labels_do_not_count() -> None:
    batch, logits = rows(), torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    target, bias = batch.labels.target.clone(), batch.labels.bias.clone()
    target[40:50], bias[50:] = UNKNOWN_LABEL, UNKNOWN_LABEL
    part = adversary_group_error(logits[:40], target[:40], bias[:40], 2)
    torch.testing.assert_close(adversary_group_error(logits, target, bias, 2), part)


def test_the_network_climbs_what_the_adversary_descends() -> None:
    batch = rows()
    plain = method_for_rows(name="laftr", adversary_weight=0.0)
    loss, features = plain(batch)
    loss.backward()
    method = method_for_rows(name="laftr", adversary_weight=3.0)
    method(batch)[0].backward()
    value = method.adversary.layers(torch.cat([features["encoder"].detach(), _one_hot(batch)], 1))
    pairs = zip(method.adversary.parameters(), plain.adversary.parameters(), strict=True)
    assert all(torch.equal(one.grad, other.grad) for one, other in pairs)  # the adversary's own is not weighted
    through = method.network.encoder(batch.views[0])
    error = adversary_group_error(method.adversary.layers(torch.cat([through, _one_hot(batch)], 1)), *_labels(batch), 2)
    towards = torch.autograd.grad(error, list(method.network.parameters()))
    assert value.shape == (64, 2)
    for one, other, up in zip(method.network.parameters(), plain.network.parameters(), towards, strict=True):
        torch.testing.assert_close(one.grad, other.grad - 3.0 * up)


def _one_hot(batch) -> torch.Tensor:
    return functional.one_hot(batch.labels.target, 2).float()


def _labels(batch) -> tuple[torch.Tensor, torch.Tensor]:
    return batch.labels.target, batch.labels.bias


def test_it_learns_the_class_and_the_adversary_learns_less_of_the_bias() -> None:
    batch, errors = rows(256), []
    for weight in (0.0, 2.0):
        method = method_for_rows(name="laftr", adversary_weight=weight)
        steps(method, batch, 80)
        features = method.network.encoder(batch.views[0]).detach()
        hits = method.own_classifier()(features).argmax(1) == batch.labels.target
        assert hits.float().mean() > 0.7
        errors.append(float(method.adversary_error(features, batch.labels).detach()))
    assert errors[1] > errors[0] + 0.2


def test_it_is_for_tables_with_bias_labels() -> None:
    needs = methods.method_needs({"name": "laftr"})
    assert list(needs.unmet_by(TABLE)) == []
    lacking = list(needs.unmet_by(Facts(classes=2, bias_classes=None, shape=(3, 8, 8))))
    assert lacking == [("name", "needs bias labels"), ("name", "needs a table")]
