"""Cross-entropies for biased data: bias-balanced (Hong and Yang) and generalised (Zhang and Sabuncu; WCL paper 5.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from study.knobs import Range, SearchRange
from study.losses.lazy_torch import functional, torch
from study.losses.loss_catalogue import classification_loss

if TYPE_CHECKING:
    from torch import Tensor


@classification_loss
def bias_balanced_cross_entropy(
    logits: Tensor,
    *,
    target: Tensor,
    bias: Tensor,
    confusion: Tensor,
    weight: Tensor | None = None,
    min_prob: Annotated[float, Range(above=0.0, below=1.0)] = 1e-9,
) -> Tensor:
    """BiasBal: cross entropy of the logits shifted by log(confusion[bias] + min_prob), mean over samples.

    Args:
        logits: shape (B, C).
        target, bias: classes and bias classes, shape (B,).
        confusion: the share of class c among the training samples with bias b, shape (number of biases, C).
        weight: of each sample in the mean, (B,); None: 1.
        min_prob: keeps the logarithm finite for a class that a bias never occurs with.

    Returns:
        The loss, a scalar.
    """
    shifted = logits + (confusion + min_prob).log()[bias].to(logits.dtype)
    if weight is None:
        return functional.cross_entropy(shifted, target)
    return (weight * functional.cross_entropy(shifted, target, reduction="none")).mean()


@classification_loss
def generalized_cross_entropy(
    logits: Tensor,
    *,
    target: Tensor,
    weight: Tensor | None = None,
    q: Annotated[float, Range(above=0.0, high=1.0), SearchRange(0.1, 1.0)] = 0.7,
    form: Literal["paper", "released"] = "paper",
) -> Tensor:
    """Generalised cross entropy, mean of (1 - p^q)/q with p the probability of the right class: drawn to easy samples.

    Args:
        logits: shape (B, C).
        target: classes, shape (B,).
        weight: of each sample in the mean, (B,); None: 1.
        q: exponent: towards 0 it is the cross entropy, at 1 it is 1 - p.
        form: paper: mean of (1 - p^q) / q; released: mean of q * p^q (a constant) * cross entropy, whose gradient is q
            times that of the paper's.

    Returns:
        The loss, a scalar.
    """
    log_p = logits.log_softmax(1).gather(1, target[:, None])
    losses = q * (q * log_p.detach()).exp() * -log_p if form == "released" else -torch.expm1(q * log_p) / q
    return (losses if weight is None else weight[:, None] * losses).mean()
