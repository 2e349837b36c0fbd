"""lbfgs: logistic regression, the linear classifier that fits the features best."""

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear
from typing_extensions import Doc

from study.knobs import Range
from study.training.optimization import LBFGS
from study.training.probes import Classifier, labelled

JITTER = 1e-7
# The cross entropy is curved by p (1 - p) times the covariance, and p is near 0 or 1 for most samples in the end.
CURVATURE = 1e-3


@dataclass(frozen=True)
class Options:
    """Options of this classifier."""

    l2: Annotated[
        float,
        Range(low=0.0),
        Doc("weight of the squared norm of the weights, the biases left out (CCL-K's probe: 1e-6)"),
    ] = 1e-6
    steps: Annotated[int, Range(low=1), Doc("largest number of steps")] = 500


def fit(features: Tensor, target: Tensor, classes: int, seed: int, options: Options = Options()) -> Classifier:
    """Minimise cross entropy + l2 * ||W||^2 from zero by L-BFGS with a strong Wolfe line search; `seed` is not needed.

    The objective is that of the features as they are. Only the coordinates of the search are changed: W is searched
    as W L with L L' about as the objective's curvature, since features are highly correlated and a search in W itself
    takes several times as many steps to the same value.
    """
    del seed
    rows, labels = labelled(features, target)
    centre = rows.mean(0)
    rows = rows - centre
    root = _root(rows, options.l2)
    searched = rows.new_zeros(classes, rows.shape[1], requires_grad=True)
    bias = rows.new_zeros(classes, requires_grad=True)
    optimizer = LBFGS(
        [searched, bias], max_iter=options.steps, tolerance_grad=1e-6, history_size=20, line_search_fn="strong_wolfe"
    )

    def objective() -> Tensor:
        optimizer.zero_grad()
        weight = _weight(searched, root)
        value = cross_entropy(linear(rows, weight, bias), labels) + options.l2 * weight.square().sum()
        value.backward()
        return value

    with torch.enable_grad():
        optimizer.step(objective)
    weight = _weight(searched.detach(), root)
    offset = bias.detach() - weight @ centre
    return lambda queries: linear(queries.float(), weight, offset)


def _root(rows: Tensor, l2: float) -> Tensor:
    """L with L L' = covariance of the centred rows + l2 / CURVATURE, lower triangular (F, F)."""
    covariance = (rows.T @ rows).double() / len(rows)
    diagonal = covariance.diagonal()
    diagonal += l2 / CURVATURE + JITTER * diagonal.mean() + torch.finfo(rows.dtype).tiny
    return torch.linalg.cholesky(covariance).to(rows.dtype)


def _weight(searched: Tensor, root: Tensor) -> Tensor:
    """W of what is searched, W L."""
    return torch.linalg.solve_triangular(root, searched, upper=False, left=False)
