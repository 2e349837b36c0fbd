"""Similarity of conditions for CCL-K (Tsai et al., "Conditional contrastive learning with kernel")."""

from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

KernelName = Literal["rbf", "laplacian", "linear", "cosine", "polynomial"]


def kernel_matrix(condition: Tensor, name: KernelName, sigma2: float, degree: int) -> Tensor:
    """K between all samples, float64, shape (B, B).

    Args:
        condition: classes, shape (B,), as if one-hot; or continuous values, shape (B, K).
        name: "rbf" e^(-|c-c'|^2 / sigma2), "laplacian" e^(-|c-c'| / sigma2), "linear" c.c' / sigma2,
            "polynomial" (c.c')^degree / sigma2, "cosine".
        sigma2: the width (no factor 2); not for "cosine".
        degree: of "polynomial".
    """
    if condition.ndim == 1:
        product = (condition[:, None] == condition[None, :]).double()
        squared = 2 - 2 * product
    else:
        values = condition.double()
        if name == "cosine":
            values = normalize(values, dim=1)
        product = values @ values.T
        squared = _squared_distances(values) if name in ("rbf", "laplacian") else product
    if name == "rbf":
        return (-squared / sigma2).exp()
    if name == "laplacian":
        apart = squared > 0
        return (-squared.where(apart, 1.0).sqrt().where(apart, 0.0) / sigma2).exp()
    if name == "polynomial":
        return product.pow(degree) / sigma2
    return product if name == "cosine" else product / sigma2


def conditional_weights(kernel: Tensor, ridge: float) -> Tensor:
    """W = (K + ridge I)^-1 K (Definition 2.1), shape (B, B). K symmetric; singular: infinities, no error."""
    # (K + ridge I)^-1 K = I - ridge (K + ridge I)^-1; inv_ex, because inv waits for the device to check its success.
    identity = torch.eye(len(kernel), dtype=kernel.dtype, device=kernel.device)
    return identity - ridge * torch.linalg.inv_ex(kernel + ridge * identity)[0]


def _squared_distances(values: Tensor) -> Tensor:
    """|c - c'|^2 by one product; centred first, and exactly 0 where the print is cancellation of equal values."""
    values = values - values.mean(0).detach()
    norms = values.square().sum(1)
    squared = norms[:, None] + norms[None, :] - 2 * values @ values.T
    return squared.where(squared > 1e-12 * (norms[:, None] + norms[None, :]), 0.0)
