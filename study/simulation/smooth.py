"""Smooth functions of a configuration, fitted so that they foretell points that were left out."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SCALES = (0.0, 0.3, 1.0, 3.0, 10.0)
"""Inverse squared lengths, of which each key gets one; 0: it does not matter."""
NOISES = (0.01, 0.1, 0.3, 1.0, 3.0)
"""Variance of what no configuration explains, against that of what one does."""
CONSTANT = 10.0
"""Variance of the mean over all configurations."""


class Smooth:
    """The mean of a Gaussian process with a squared exponential kernel, one scale for each key.

    Scales and noise are those with the least squared error on points that are left out one by one, which has a closed
    form (Rasmussen and Williams 2006, section 5.4.2); found key by key, twice.

    Args:
        points: (n, coordinates).
        keys: the coordinates of each key.
        targets: (n, outputs).
    """

    def __init__(self, points: Array, keys: Sequence[slice], targets: Array) -> None:
        self._points, self._keys = points, keys
        self._mean = targets.mean(0)
        self._targets = targets - self._mean
        parts = [_distances(points[:, key], points[:, key]) for key in keys]
        self.scales, self.noise = np.ones(len(keys)), 0.3
        best = self._loss(parts)
        for _ in range(2):
            for key in range(len(keys)):
                best = self._try(parts, best, key)
            best = self._try(parts, best, None)
        self._inverse = np.linalg.inv(self._kernel(parts) + self.noise * np.eye(len(points)))
        self._weights = self._inverse @ self._targets

    def __call__(self, points: Array) -> Array:
        """(n, outputs) at (n, coordinates)."""
        parts = [_distances(points[:, key], self._points[:, key]) for key in self._keys]
        return np.asarray(self._mean + self._kernel(parts) @ self._weights)

    def left_out(self) -> Array:
        """What it says of each of its points when that one is left out, (n, outputs)."""
        return np.asarray(self._mean + self._targets - self._weights / np.diag(self._inverse)[:, None])

    def _try(self, parts: Sequence[Array], best: float, key: int | None) -> float:
        """Give one key, or the noise, the best of its values."""
        for value in NOISES if key is None else SCALES:
            scales, noise = self.scales, self.noise
            self.scales = scales.copy()
            if key is None:
                self.noise = value
            else:
                self.scales[key] = value
            loss = self._loss(parts)
            if loss < best:
                best = loss
            else:
                self.scales, self.noise = scales, noise
        return best

    def _loss(self, parts: Sequence[Array]) -> float:
        inverse = np.linalg.inv(self._kernel(parts) + self.noise * np.eye(len(self._points)))
        return float((((inverse @ self._targets) / np.diag(inverse)[:, None]) ** 2).mean())

    def _kernel(self, parts: Sequence[Array]) -> Array:
        total = sum((scale * part for scale, part in zip(self.scales, parts, strict=True) if scale), np.zeros(1))
        return np.asarray(np.exp(-0.5 * total) + CONSTANT) * np.ones(parts[0].shape)


def _distances(one: Array, other: Array) -> Array:
    """Squared, (n, m)."""
    return np.asarray(((one[:, None] - other[None]) ** 2).sum(2))
