"""Probes that judge a trained encoder besides its online probe: classifiers of frozen features, and a regression.

A classifier is a function

    NAME(features, target, classes, seed) -> Classifier

features: float (N, F), as the encoder computes them; target: int64 (N,), samples of -1 are left out; the result maps
features (M, F) to scores (M, classes), the highest for the predicted class. Both are on the features' device.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, normalize, relu

from study.errors import UserError
from study.training.optimization import LBFGS, Adam

ProbeClassifier = Callable[[Tensor], Tensor]

# A fitted probe is a few tensors, which are kept with a model; `knn` would need all features. They are contiguous, as
# they come from a file: some processors multiply by a transposed one to other last bits.


@dataclass(frozen=True)
class LogisticClassifier:
    """Classifier that `fit_lbfgs_probe` fits."""

    weight: Tensor
    offset: Tensor

    def __call__(self, queries: Tensor) -> Tensor:
        return linear(queries.float(), self.weight, self.offset)


@dataclass(frozen=True)
class MlpClassifier:
    """Classifier that `fit_mlp_probe` fits."""

    centre: Tensor
    scale: Tensor
    inner: Tensor
    inner_bias: Tensor
    outer: Tensor
    outer_bias: Tensor

    @torch.no_grad()
    def __call__(self, queries: Tensor) -> Tensor:
        hidden = linear((queries.float() - self.centre) / self.scale, self.inner, self.inner_bias)
        return linear(relu(hidden), self.outer, self.outer_bias)


@dataclass(frozen=True)
class RidgeRegression:
    """Regression that `fit_ridge_probe` fits."""

    inputs: Tensor
    outputs: Tensor
    weight: Tensor

    def __call__(self, queries: Tensor) -> Tensor:
        return (queries.detach().double() - self.inputs) @ self.weight + self.outputs


STORED_PROBE_CLASSES: dict[str, Callable[..., ProbeClassifier]] = {
    "lbfgs": LogisticClassifier,
    "mlp": MlpClassifier,
    "ridge": RidgeRegression,
}
"""Classes of fitted probes, by the name in `train.final`; each is built from its tensors by name."""

MAX_SIMILARITIES_AT_ONCE = 2**24
"""Similarities held at a time: 64 MiB."""


def labelled_samples(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return features (n, F), float32 without a gradient, and classes (n,) of the samples whose class is known.

    Raises:
        UserError: there is none.
    """
    known = target >= 0
    if not known.any():
        raise UserError(
            f"none of {len(target)} samples has a class, so that no classifier can be fitted to their features: "
            "name a target, or a split that has one"
        )
    return features.detach()[known].float(), target[known]


def fit_knn_probe(
    features: Tensor, target: Tensor, classes: int, seed: int, neighbours: int = 200, temperature: float = 0.5
) -> ProbeClassifier:
    """Classify by a vote of the nearest training samples by cosine, the nearer the more (DCL and HCL's evaluation).

    A vote is e^(cosine / temperature); scores are each class's share of the votes, and sum to one.
    """
    rows, labels = labelled_samples(features, target)
    bank = normalize(rows, dim=1).T.contiguous()
    neighbours = min(neighbours, len(labels))

    @torch.no_grad()
    def votes(queries: Tensor) -> Tensor:
        cosine, nearest = (normalize(queries.float(), dim=1) @ bank).topk(neighbours, dim=1)
        # less the largest, no temperature makes a vote infinite; in float64 the order of the sum does not matter
        weight = ((cosine - cosine[:, :1]).double() / temperature).exp()
        counted = weight.new_zeros(len(queries), classes).scatter_add_(1, labels[nearest], weight)
        return (counted / weight.sum(1, keepdim=True)).float()

    at_once = max(1, MAX_SIMILARITIES_AT_ONCE // len(labels))
    return lambda features: torch.cat([votes(chunk) for chunk in features.split(at_once)])


CHOLESKY_JITTER = 1e-7
# The curvature of the cross entropy is p (1 - p) times the covariance; at the end p is near 0 or 1 for most samples.
LOGISTIC_CURVATURE = 1e-3


def fit_lbfgs_probe(
    features: Tensor,
    target: Tensor,
    classes: int,
    seed: int,
    l2: float = 1e-6,
    steps: int = 500,
    weights: Tensor | None = None,
) -> LogisticClassifier:
    """Fit a logistic regression by L-BFGS from zero with a strong Wolfe line search (CCL-K's probe).

    It minimises cross entropy + l2 * ||W||^2 of the features as they are. Only the coordinates of the search are
    changed: W is searched as W L with L L' about as the objective's curvature, since features are highly correlated and
    a search in W itself takes several times as many steps to the same value.

    Args:
        weights: of the samples in the mean of the cross entropy, (N,); None: all alike.
    """
    rows, labels = labelled_samples(features, target)
    weights = None if weights is None else weights[target >= 0]
    centre = rows.mean(0)
    rows = rows - centre
    root = _covariance_root(rows, l2)
    searched = rows.new_zeros(classes, rows.shape[1], requires_grad=True)
    bias = rows.new_zeros(classes, requires_grad=True)
    optimizer = LBFGS(
        [searched, bias], max_iter=steps, tolerance_grad=1e-6, history_size=20, line_search_fn="strong_wolfe"
    )

    def objective() -> Tensor:
        optimizer.zero_grad()
        weight = _solve_weight(searched, root)
        losses = cross_entropy(linear(rows, weight, bias), labels, reduction="mean" if weights is None else "none")
        value = (losses if weights is None else (losses * weights).mean()) + l2 * weight.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(objective)
    weight = _solve_weight(searched.detach(), root).contiguous()
    return LogisticClassifier(weight, bias.detach() - weight @ centre)


def _covariance_root(rows: Tensor, l2: float) -> Tensor:
    """Return L with L L' = covariance of the centred rows + l2 / CURVATURE, lower triangular (F, F)."""
    covariance = (rows.T @ rows).double() / len(rows)
    diagonal = covariance.diagonal()
    diagonal += l2 / LOGISTIC_CURVATURE + CHOLESKY_JITTER * diagonal.mean() + torch.finfo(rows.dtype).tiny
    return torch.linalg.cholesky(covariance).to(rows.dtype)


def _solve_weight(searched: Tensor, root: Tensor) -> Tensor:
    """Solve for W from what is searched, W L."""
    return torch.linalg.solve_triangular(root, searched, upper=False, left=False)


def fit_mlp_probe(
    features: Tensor,
    target: Tensor,
    classes: int,
    seed: int,
    hidden: int = 128,
    epochs: int = 10,
    batch_size: int = 256,
    learning_rate: float = 0.001,
) -> ProbeClassifier:
    """Fit one hidden layer by a few epochs of cross entropy with Adam (FSCL paper 4.1, which only gives their number).

    Weights and order come from `seed` alone. Each feature is scaled by the training samples' mean and standard
    deviation, so that the learning rate suits any encoder.
    """
    rows, labels = labelled_samples(features, target)
    generator = torch.Generator().manual_seed(seed)
    deviation, centre = torch.std_mean(rows, dim=0, correction=0)
    scale = torch.where(deviation > 0, deviation, 1.0)
    rows = (rows - centre) / scale
    network = nn.Sequential(
        _linear_layer(rows.shape[1], hidden, generator), nn.ReLU(), _linear_layer(hidden, classes, generator)
    ).to(rows.device)
    optimizer = Adam(network.parameters(), lr=learning_rate)
    with torch.enable_grad():
        for _ in range(epochs):
            order = torch.randperm(len(rows), generator=generator).to(rows.device)
            for indices in order.split(batch_size):
                optimizer.zero_grad()
                cross_entropy(network(rows[indices]), labels[indices]).backward()
                optimizer.step()

    return MlpClassifier(centre, scale, *(parameter.detach() for parameter in network.parameters()))


def _linear_layer(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """Make a layer with PyTorch's usual initial weights, drawn from `generator`, not from the global one."""
    layer = nn.utils.skip_init(nn.Linear, inputs, outputs)
    bound = inputs**-0.5
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
    return layer


PROBE_FITTERS: dict[str, Callable[[Tensor, Tensor, int, int], ProbeClassifier]] = {
    "knn": fit_knn_probe,
    "lbfgs": fit_lbfgs_probe,
    "mlp": fit_mlp_probe,
}
"""Classifiers by the name in `train.final`."""


ROWS_PER_CHUNK = 8192


def fit_ridge_probe(features: Tensor, condition: Tensor, l2: float = 1e-6) -> Callable[[Tensor], Tensor]:
    """Fit the linear map with offset that minimises the mean squared error + l2 * ||W||^2, in closed form, in float64.

    It tells how well a continuous attribute can be read off the features (CCL-K paper Table 3: colour MSE).

    Args:
        features: (N, F).
        condition: continuous attributes, (N, K).
        l2: positive, so that there is one solution however the features depend on each other.

    Returns:
        A function from features (M, F) to attributes (M, K), float64.
    """
    inputs, outputs = _mean_in_chunks(features), _mean_in_chunks(condition)
    count, width = len(features), condition.shape[1]
    product = inputs.new_zeros(features.shape[1], features.shape[1])
    moment = inputs.new_zeros(features.shape[1], width)
    for rows, values in zip(features.split(ROWS_PER_CHUNK), condition.split(ROWS_PER_CHUNK), strict=True):
        centred = rows.detach().double() - inputs
        product += centred.T @ centred
        moment += centred.T @ (values.double() - outputs)
    # the error is a mean over the K attributes, too, so that K scales the penalty in the normal equations
    product.diagonal().add_(l2 * width * count)
    return RidgeRegression(inputs, outputs, torch.linalg.solve(product, moment).contiguous())


def mean_squared_error(predict: Callable[[Tensor], Tensor], features: Tensor, condition: Tensor) -> Tensor:
    """Average the squared error of `fit_ridge_probe`'s predictions over samples and attributes, a float64 scalar.

    In squared units of the condition as it is stored. A higher value means that less of it is in the features.
    """
    pairs = zip(features.split(ROWS_PER_CHUNK), condition.split(ROWS_PER_CHUNK), strict=True)
    errors = [(predict(rows) - values.double()).square().sum() for rows, values in pairs]
    return torch.stack(errors).sum() / condition.numel()


def _mean_in_chunks(values: Tensor) -> Tensor:
    return torch.stack([chunk.detach().double().sum(0) for chunk in values.split(ROWS_PER_CHUNK)]).sum(0) / len(values)
