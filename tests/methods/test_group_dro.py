"""Group DRO: one step by hand, and what it does to the worst group."""

import math

import torch
from small import method_for_rows, rows, steps
from torch.nn import functional

from study.methods import UNKNOWN_LABEL, Batch, BatchLabels


def begun(batch: Batch, **given: float):
    method = method_for_rows(name="group_dro", **given)
    method.prepare_training(batch.labels)
    return method


def test_a_step_by_hand() -> None:
    batch = rows()
    method = begun(batch, group_step=0.5, group_adjustment=2.0)
    logits = method.own_classifier()(method.network.encoder(batch.views[0]))
    each = functional.cross_entropy(logits, batch.labels.target, reduction="none")
    expected = []
    for target, bias in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        members = (batch.labels.target == target) & (batch.labels.bias == bias)
        expected.append(each[members].mean() + 2.0 / math.sqrt(members.sum()))
    by_group = torch.stack(expected)
    weights = 0.25 * (0.5 * by_group.detach()).exp()
    weights /= weights.sum()
    torch.testing.assert_close(method(batch)[0], (weights * by_group).sum())
    torch.testing.assert_close(method.group_weights, weights.detach())
    assert method.diagnose(batch)["largest_group_weight"] == method.group_weights.max()


def test_groups_that_are_not_in_a_batch_or_not_in_the_data() -> None:
    batch = rows()
    there = batch.labels.target == batch.labels.bias
    train = batch.labels.select_samples((there | (batch.labels.target == 0)).nonzero()[:, 0])  # without group (1, 0)
    method = method_for_rows(name="group_dro", group_step=0.5)
    method.prepare_training(train)
    torch.testing.assert_close(method.group_weights, torch.tensor([1 / 3, 1 / 3, 0.0, 1 / 3]))
    aligned = there.nonzero()[:, 0]
    method(Batch(batch.views[:, aligned], batch.labels.select_samples(aligned), aligned))[0].backward()
    assert method.group_weights[2] == 0
    assert method.group_weights[1] < min(method.group_weights[0], method.group_weights[3])
    assert all(torch.isfinite(value.grad).all() for value in method.parameters())


def test_samples_without_class_or_bias_change_nothing() -> None:
    batch = rows()
    target, bias = batch.labels.target.clone(), batch.labels.bias.clone()
    target[40:50], bias[50:] = UNKNOWN_LABEL, UNKNOWN_LABEL
    part = Batch(batch.views[:, :40], batch.labels.select_samples(torch.arange(40)), torch.arange(40))
    whole = Batch(batch.views, BatchLabels(target, bias), batch.index)
    values = [begun(one, group_adjustment=1.0)(one)[0] for one in (part, whole)]
    torch.testing.assert_close(*values)


def test_evaluation_leaves_the_weights_alone() -> None:
    batch = rows()
    method = begun(batch).eval()
    before = method.group_weights.clone()
    method(batch)
    assert torch.equal(method.group_weights, before)


def test_a_huge_loss_is_no_overflow() -> None:
    batch = rows()
    method = begun(batch, group_step=100.0)
    with torch.no_grad():
        method.classifier.weight.mul_(1e3)
    assert torch.isfinite(method(batch)[0])
    assert torch.isfinite(method.group_weights).all()


def test_the_worst_group_gains() -> None:
    """Beside plain cross entropy, which is weights by the groups' sizes that do not move."""
    batch, worst = rows(256), []
    groups = batch.labels.target * 2 + batch.labels.bias
    for step in (0.0, 0.1):
        method = begun(batch, group_step=step)
        if not step:
            method.group_weights.copy_(torch.bincount(groups) / len(groups))
        steps(method, batch, 60, rate=0.01)
        logits = method.own_classifier()(method.network.encoder(batch.views[0]))
        each = functional.cross_entropy(logits, batch.labels.target, reduction="none").detach()
        worst.append(max(float(each[groups == group].mean()) for group in range(4)))
    assert worst[1] < 0.9 * worst[0]
