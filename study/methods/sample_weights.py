"""Weight samples in the loss of a classifier by how many there are of their class or of their cell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from study.knobs import Knob, Range, Section, read_knobs, to_options
from study.losses.lazy_torch import functional, torch
from study.methods.method_needs import UNKNOWN_LABEL

if TYPE_CHECKING:
    from torch import Tensor

    from study.methods.base_method import BatchLabels

WeightPower = Annotated[float, Range(low=0.0, high=1.0)]


@dataclass(frozen=True)
class BalanceOptions:
    """Keys of every method with a classifier, its own or the probe.

    Attributes:
        class_weights: weight of a training sample in the classifier's loss: (all samples / (classes * those of its
            class)) to this power; 0: all samples weigh alike, 1: all classes do.
        cell_weights: the same by cells of class and bias; `class_weights` then evens out what these leave uneven
            between classes. A sample of unknown bias weighs 1.
    """

    class_weights: WeightPower = 0.0
    cell_weights: WeightPower = 0.0


def balance_knobs(method: Section) -> Iterator[Knob]:
    """Yield the knobs of weights of a `method` section; without bias labels there are no cells."""
    for knob in read_knobs(BalanceOptions):
        if knob.key == "class_weights" or method.get("bias_source") != "model":
            yield knob


def add_sample_weights(labels: BatchLabels, method: Section) -> BatchLabels:
    """Add the weights that a `method` section asks for, of mean 1, to the labels of a whole training split.

    Args:
        labels: as the method knows them; a guessed bias counts as any other.
    """
    asked, there = to_options(BalanceOptions, method), labels.target != UNKNOWN_LABEL
    if asked == BalanceOptions() or not there.any():
        return labels
    weight = torch.ones_like(labels.target, dtype=torch.float32)
    if asked.cell_weights and labels.bias is not None:
        cell = labels.target * (labels.bias.max() + 1) + labels.bias
        cell = cell.where(there & (labels.bias != UNKNOWN_LABEL), UNKNOWN_LABEL)
        weight *= _inverse_frequency_weights(cell, weight, asked.cell_weights)
    weight *= _inverse_frequency_weights(labels.target, weight, asked.class_weights)
    return replace(labels, weight=weight / weight[there].mean())


def _inverse_frequency_weights(group: Tensor, weight: Tensor, power: float) -> Tensor:
    """Return (weight of all / (groups * weight of the group)) ** power of each sample, (N,); 1 where `group` is -1."""
    known = group != UNKNOWN_LABEL
    if not known.any():
        return torch.ones_like(weight)
    sums = weight.new_zeros(int(group.max()) + 1).index_add(0, group[known], weight[known])
    share = sums.sum() / ((sums > 0).sum() * sums[group])
    return torch.where(known, share**power, 1.0)


def weighted_mean_cross_entropy(logits: Tensor, labels: BatchLabels) -> Tensor:
    """Average the weighted cross entropy of logits (B, C) over the samples that have a class; a scalar.

    It is not divided by the sum of the batch's weights, so that its mean over batches is the loss of the whole split.
    """
    count = (labels.target != UNKNOWN_LABEL).sum().clamp(min=1)
    if labels.weight is None:
        total = functional.cross_entropy(logits.float(), labels.target, ignore_index=UNKNOWN_LABEL, reduction="sum")
    else:
        total = apply_sample_weights(cross_entropy_per_sample(logits, labels.target), labels).sum()
    return total / count


def cross_entropy_per_sample(logits: Tensor, target: Tensor) -> Tensor:
    """Compute the cross entropy of each sample, (B,); 0 without a class."""
    return functional.cross_entropy(logits.float(), target, ignore_index=UNKNOWN_LABEL, reduction="none")


def apply_sample_weights(losses: Tensor, labels: BatchLabels) -> Tensor:
    """Multiply the losses of samples (B,) by their weights."""
    return losses if labels.weight is None else losses * labels.weight
