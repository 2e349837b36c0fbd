"""How well a continuous attribute can be read off the features, linearly (CCL-K paper Table 3: colour MSE)."""

from collections.abc import Callable

import torch
from torch import Tensor

CHUNK = 8192


def fit(features: Tensor, condition: Tensor, l2: float = 1e-6) -> Callable[[Tensor], Tensor]:
    """The linear map with offset that minimises the mean squared error + l2 * ||W||^2, in closed form, in float64.

    Args:
        features: (N, F).
        condition: continuous attributes, (N, K).
        l2: positive, so that there is one solution however the features depend on each other.

    Returns:
        A function from features (M, F) to attributes (M, K), float64.
    """
    inputs, outputs = _mean(features), _mean(condition)
    count, width = len(features), condition.shape[1]
    product = inputs.new_zeros(features.shape[1], features.shape[1])
    moment = inputs.new_zeros(features.shape[1], width)
    for rows, values in zip(features.split(CHUNK), condition.split(CHUNK), strict=True):
        centred = rows.detach().double() - inputs
        product += centred.T @ centred
        moment += centred.T @ (values.double() - outputs)
    # the error is a mean over the K attributes, too, so that K scales the penalty in the normal equations
    product.diagonal().add_(l2 * width * count)
    weight = torch.linalg.solve(product, moment)
    return lambda queries: (queries.detach().double() - inputs) @ weight + outputs


def mean_squared_error(predict: Callable[[Tensor], Tensor], features: Tensor, condition: Tensor) -> Tensor:
    """Mean over samples and attributes of the squared error of what `fit` gave, a float64 scalar.

    In squared units of the condition as it is stored. A higher value means that less of it is in the features.
    """
    pairs = zip(features.split(CHUNK), condition.split(CHUNK), strict=True)
    errors = [(predict(rows) - values.double()).square().sum() for rows, values in pairs]
    return torch.stack(errors).sum() / condition.numel()


def _mean(values: Tensor) -> Tensor:
    return torch.stack([chunk.detach().double().sum(0) for chunk in values.split(CHUNK)]).sum(0) / len(values)
