"""Random maps for the corruptions: clouds, flakes, ice, distortions; one per image of a batch."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Maps = NDArray[np.float64]
"""Maps (N, H, W)."""

Shape = tuple[int, ...]


def plasma(shape: Shape, decay: float, random: np.random.Generator) -> Maps:
    """Clouds of 0 to 1 that repeat at their edges, by midpoint displacement (diamond-square).

    Args:
        shape: (N, H, W) wanted; made at the next power of two and cut.
        decay: the displacement's range is divided by its square at each halving of the step.
    """
    size = 1 << max(shape[1] - 1, shape[2] - 1).bit_length()
    cloud, step, reach = np.zeros((shape[0], size, size)), size, 1.0

    def displaced(sums: Maps) -> Maps:
        return sums / 4 + reach * random.uniform(-1, 1, sums.shape)

    while step >= 2:
        half = step // 2
        corners = cloud[:, ::step, ::step]
        rows = corners + np.roll(corners, -1, 1)
        middles = displaced(rows + np.roll(rows, -1, 2))
        cloud[:, half::step, half::step] = middles
        # each edge's middle lies between two corners and two middles
        cloud[:, ::step, half::step] = displaced(corners + np.roll(corners, -1, 2) + middles + np.roll(middles, 1, 1))
        cloud[:, half::step, ::step] = displaced(rows + middles + np.roll(middles, 1, 2))
        step, reach = half, reach / decay**2
    cloud -= cloud.min((1, 2), keepdims=True)
    return (cloud / cloud.max((1, 2), keepdims=True))[:, : shape[1], : shape[2]]


def zoomed(maps: Maps, factor: float) -> Maps:
    """The middle of each map enlarged to its size, linearly."""
    size = maps.shape[1]
    inner = int(np.ceil(size / factor))
    top = (size - inner) // 2
    large = ndimage.zoom(maps[:, top : top + inner, top : top + inner], (1, factor, factor), order=1)
    trim = (large.shape[1] - size) // 2
    cut: Maps = large[:, trim : trim + size, trim : trim + size]
    return cut


def motion_blurred(maps: Maps, radius: int, sigma: float, angles: Maps) -> Maps:
    """Each map drawn out in its own direction, by half a Gaussian.

    Args:
        radius: pixels; the trail is 2 * radius + 1 long.
        angles: degrees, (N,).
    """
    width = 2 * radius + 1
    weights = np.exp(-0.5 * (np.arange(width) / sigma) ** 2)
    number, row, column = np.indices(maps.shape)
    down, right = np.cos(np.radians(angles))[:, None, None], np.sin(np.radians(angles))[:, None, None]
    blurred = np.zeros_like(maps)
    for place, weight in enumerate(weights / weights.sum()):
        rows = np.clip(row + np.ceil(place * down - 0.5).astype(int), 0, maps.shape[1] - 1)
        columns = np.clip(column + np.ceil(place * right - 0.5).astype(int), 0, maps.shape[2] - 1)
        blurred += weight * maps[number, rows, columns]
    return blurred


def ice(shape: Shape, random: np.random.Generator) -> NDArray[np.float64]:
    """Pale blue needles on a mist, (N, H, W, 3) of 0 to 1."""
    needles = np.zeros(shape)
    for _ in range(3):
        seeds = (random.random(shape) < 0.04) * random.uniform(1.0, 3.0, shape)
        needles += motion_blurred(seeds, 5, 4.0, random.uniform(0, 360, shape[0]))
    grey = np.clip(0.25 + 0.45 * plasma(shape, 1.5, random) + needles, 0.0, 1.0)
    return grey[..., None] * np.array([0.88, 0.95, 1.0])


def affine(shape: Shape, reach: float, random: np.random.Generator) -> NDArray[np.float64]:
    """Rows and columns, (2, N, H, W), that each pixel comes from under a random affine map per image.

    Args:
        reach: in pixels: how far three corners of the middle third move at most, each way.
    """
    count, height, width = shape
    middle, third = np.array([height // 2, width // 2]), min(height, width) // 3
    corners = middle + third * np.array([[1, 1], [1, -1], [-1, -1]])
    moved = corners + random.uniform(-reach, reach, (count, 3, 2))
    known = np.concatenate([moved, np.ones((count, 3, 1))], axis=2)
    back = np.linalg.solve(known, np.broadcast_to(corners, (count, 3, 2)).astype(float))
    pixels = np.concatenate([np.indices((height, width)), np.ones((1, height, width))])
    return np.einsum("nji,jhw->inhw", back, pixels)
