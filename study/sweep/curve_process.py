"""A Gaussian process over (configuration, rung) whose correlation between rungs is learnt."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.optimize import minimize

Array = NDArray[np.float64]
ROOT5 = 5**0.5
MEAN = 100.0
"""Variance of a rung's mean, in units of the spread within rungs: it is not known before."""


@dataclass(frozen=True)
class Shape:
    """Hyperparameters: logarithms of length scales (keys), of what of a configuration its parameters do not tell, and
    of noise; and the factor of the covariance between rungs."""

    scales: Array
    own: float
    noise: float
    factor: Array


class CurveProcess:
    """The value of configuration x at rung r is m_r + f(x, r) + noise.

    m is not known, f has the covariance (k(x, x') + own [same configuration]) B[r, r'], with a Matern-5/2 k and any
    positive B: the intrinsic model of coregionalisation (Bonilla et al. 2007, NeurIPS). A negative B[r, r'] says that
    those who lead at r fall behind by r'. Hyperparameters are at their posterior mode; their prior keeps that steady
    where little was seen.

    Args:
        groups: for each coordinate of a point the key that it belongs to.
        rungs: how many there are.
        near: correlation of neighbouring rungs that is expected before anything is seen.
        loose: standard deviation of the factor's entries around that.
    """

    def __init__(self, groups: list[int], rungs: int, near: float = 0.3, loose: float = 1.0) -> None:
        self._groups, self._rungs = groups, rungs
        keys = max(groups, default=-1) + 1
        apart = np.abs(np.subtract.outer(np.arange(rungs), np.arange(rungs)))
        self._lower = np.tril_indices(rungs)
        factor = np.linalg.cholesky(near**apart)[self._lower]
        self.centre = np.concatenate(
            [np.full(keys, np.log(0.5 * max(keys, 1) ** 0.5)), [np.log(0.3), np.log(0.1)], factor]
        )
        self._spread = np.concatenate([np.full(keys, 0.7), [1.0, 1.0], np.full(len(factor), loose)])
        self._keys = keys

    def shape(self, theta: Array) -> Shape:
        factor = np.zeros((self._rungs, self._rungs))
        factor[self._lower] = theta[self._keys + 2 :]
        return Shape(theta[: self._keys], theta[self._keys], theta[self._keys + 1], factor)

    def distances(self, a: Array, b: Array) -> Array:
        """(keys, a, b): squared, of each key."""
        found = np.zeros((self._keys, len(a), len(b)))
        for place, key in enumerate(self._groups):
            found[key] += np.subtract.outer(a[:, place], b[:, place]) ** 2
        return found

    def alike(self, distances: Array, scales: Array) -> tuple[Array, Array]:
        """Matern-5/2 of configurations, and the part of its derivative that all keys share."""
        _, a, b = distances.shape
        r = np.sqrt(np.exp(-2 * scales) @ distances.reshape(self._keys, a * b)).reshape(a, b)
        decay = np.exp(-ROOT5 * r)
        return (1 + ROOT5 * r + 5 / 3 * r * r) * decay, 5 / 3 * (1 + ROOT5 * r) * decay

    def fit(self, points: Array, trial: NDArray[np.int64], rung: NDArray[np.int64], value: Array) -> Array:
        """The mode of the hyperparameters' posterior.

        Args:
            points: (trials, coordinates).
            trial, rung, value: of each observation; values in units of the spread within rungs.
        """
        apart = self.distances(points, points)[:, trial[:, None], trial]
        same = (trial[:, None] == trial).astype(float)
        always = MEAN * (rung[:, None] == rung) + 1e-6 * np.eye(len(value))
        at = np.eye(self._rungs)[rung]
        flat, alone = apart.reshape(self._keys, len(value) ** 2), np.diag_indices(len(value))

        def loss(theta: Array) -> tuple[float, Array]:
            shape = self.shape(theta)
            own, noise = np.exp(shape.own), np.exp(shape.noise)
            near, slope = self.alike(apart, shape.scales)
            near += own * same
            between = at @ (shape.factor @ shape.factor.T) @ at.T
            covariance = near * between + always
            covariance[alone] += noise
            root, fault = dpotrf(covariance, lower=True)
            if fault:
                raise np.linalg.LinAlgError("the covariance is not positive")
            inverse, _ = dpotri(root, lower=True)  # the half below the diagonal
            inverse = np.tril(inverse) + np.tril(inverse, -1).T
            weights = inverse @ value
            off = (theta - self.centre) / self._spread
            total = 0.5 * value @ weights + np.log(root[alone]).sum() + 0.5 * off @ off
            pull = 0.5 * (inverse - weights[:, None] * weights)
            by_rung = at.T @ (pull * near) @ at
            pull_between = pull * between
            gradient = np.concatenate(
                [
                    flat @ (pull_between * slope).ravel() * np.exp(-2 * shape.scales),
                    [own * np.vdot(pull_between, same), noise * pull.trace()],
                    (2 * by_rung @ shape.factor)[self._lower],
                ]
            )
            return total, gradient + off / self._spread

        bounds = np.column_stack([self.centre - 4 * self._spread, self.centre + 4 * self._spread])
        few = {"maxiter": 15, "maxfun": 20}
        mode: Array = minimize(loss, self.centre, jac=True, method="L-BFGS-B", bounds=bounds, options=few).x
        return mode

    def last(
        self, theta: Array, points: Array, trial: NDArray[np.int64], rung: NDArray[np.int64], value: Array
    ) -> tuple[Array, Array]:
        """Mean (points,) and covariance (points, points) at the last rung, without noise.

        Args:
            theta: hyperparameters, from `fit`.
            points: those of the trials first; a trial's number is its place.
        """
        shape = self.shape(theta)
        near, _ = self.alike(self.distances(points, points), shape.scales)
        near = near + np.exp(shape.own) * np.eye(len(points))
        between = shape.factor @ shape.factor.T
        covariance = near[trial[:, None], trial] * between[rung[:, None], rung] + MEAN * (rung[:, None] == rung)
        covariance[np.diag_indices_from(covariance)] += np.exp(shape.noise) + 1e-6
        end = self._rungs - 1
        cross = near[:, trial] * between[end, rung] + MEAN * (rung == end)
        root = cholesky(covariance, lower=True, check_finite=False)
        half = solve_triangular(root, cross.T, lower=True, check_finite=False)
        weights = solve_triangular(root, value, lower=True, check_finite=False)
        return half.T @ weights, near * between[end, end] + MEAN - half.T @ half
