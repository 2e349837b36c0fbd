"""LfF: its weights by hand, its running losses, and what it does to conflicting samples."""

import pytest
import torch
from small import digits, method_for_rows, rows, steps, trained
from torch.nn import functional

from study.losses.cross_entropy import generalized_cross_entropy
from study.methods import UNKNOWN_LABEL, Batch, BatchLabels
from study.methods.two_networks import RunningLoss


def losses(method, batch: Batch) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Both cross entropies of each sample, and the biased logits."""
    own = method.classifier(method.network.encoder(batch.views[0])).detach()
    biased = method.biased_classifier(method.biased.encoder(batch.views[0])).detach()
    target = batch.labels.target
    return *(functional.cross_entropy(one, target, reduction="none") for one in (own, biased)), biased


def test_a_first_step_by_hand() -> None:
    method, batch = method_for_rows(name="learning_from_failure", q=0.6), rows()
    method.prepare_training(batch.labels)
    own, biased, logits = losses(method, batch)
    target = batch.labels.target
    largest = [torch.stack([one[target == label].max() for label in (0, 1)])[target] for one in (own, biased)]
    relative, biased_relative = own / largest[0], biased / largest[1]
    weight = biased_relative / (relative + biased_relative)
    expected = (weight * own).mean() + generalized_cross_entropy(logits, target=target, q=0.6)
    torch.testing.assert_close(method(batch)[0], expected)
    torch.testing.assert_close(method.sample_weights(batch.index), weight)
    assert 0 < weight.min() < weight.max() < 1


def test_q_0_is_the_cross_entropy() -> None:
    method, batch = method_for_rows(name="learning_from_failure", q=0.0), rows()
    method.prepare_training(batch.labels)
    _, biased, _ = losses(method, batch)
    value = method(batch)[0].detach()
    own = losses(method, batch)[0]
    torch.testing.assert_close(value, biased.mean() + (method.sample_weights(batch.index) * own).mean())


def test_running_losses_take_the_first_as_it_is_and_then_remember() -> None:
    running = RunningLoss(0.7)
    running.allocate(3)
    running.update_means(torch.tensor([0, 2]), torch.tensor([1.0, 4.0]))
    running.update_means(torch.tensor([2]), torch.tensor([2.0]))
    assert running.values.tolist() == pytest.approx([1.0, -1.0, 0.7 * 4 + 0.3 * 2])
    relative = running.divide_by_class_maximum(torch.tensor([0, 2]), torch.tensor([1, 1, 1]), classes=2)
    assert relative.tolist() == pytest.approx([1 / 3.4, 1.0])


def test_the_weights_are_constants_for_the_gradient_and_each_loss_trains_its_own_network() -> None:
    method, batch = method_for_rows(name="learning_from_failure"), rows()
    method.prepare_training(batch.labels)
    method(batch)[0].backward()
    found = [value.grad.clone() for value in method.network.parameters()]
    method.zero_grad()
    own = method.classifier(method.network.encoder(batch.views[0]))
    cross_entropy = functional.cross_entropy(own, batch.labels.target, reduction="none")
    (cross_entropy * method.sample_weights(batch.index)).mean().backward()
    torch.testing.assert_close([value.grad for value in method.network.parameters()], found)


def test_unlabelled_samples_change_nothing() -> None:
    batch = rows()
    target = batch.labels.target.clone()
    target[40:] = UNKNOWN_LABEL
    part = Batch(batch.views[:, :40], batch.labels.select_samples(torch.arange(40)), torch.arange(40))
    values = []
    for one in (part, Batch(batch.views, BatchLabels(target, batch.labels.bias), batch.index)):
        method = method_for_rows(name="learning_from_failure")
        method.prepare_training(one.labels)
        values.append(method(one)[0])
    torch.testing.assert_close(*values)


def test_conflicting_samples_weigh_more() -> None:
    method, batch = method_for_rows(name="learning_from_failure"), rows(256)
    method.prepare_training(batch.labels)
    steps(method, batch, 30)
    weights = method.sample_weights(batch.index)
    conflicting = batch.labels.bias != batch.labels.target
    assert weights[conflicting].mean() > weights[~conflicting].mean() + 0.1


def test_both_encoders_are_evaluated_and_it_learns() -> None:
    _, epochs = trained({"name": "learning_from_failure"}, digits(), epochs=8)
    assert epochs[-1]["val/accuracy"] > 0.3
    assert epochs[-1]["val/biased_encoder_accuracy"] > 0.15
