"""The colour bias of Biased-MNIST (FairKL paper section 4.2; construction as in its released data set)."""

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.knobs import Range

RhoKey = Annotated[
    float, Range(low=0.0, high=1.0), Doc("share of training samples whose colour (corruption) is their class's own")
]
"""Type of the key `rho`."""

ColourSeedKey = Annotated[int, Range(low=0), Doc("seed of the split and the colours (corruptions)")]
"""Type of the key `seed`."""

_BACKGROUND_HEX_COLOURS = "ff0000 00ff00 0000ff e1e100 e100e1 00ffff ff8000 ff0080 8000ff 32ff80"
BACKGROUND_COLOURS = np.array([[*bytes.fromhex(colour)] for colour in _BACKGROUND_HEX_COLOURS.split()], np.uint8)
"""Background colour of each bias class; class `c`'s own colour has index `c`. The last one is that of FairKL's code."""

UNBIASED_RHO = 0.1
"""Value of rho for an unbiased split: every colour is as frequent as the class's own."""

IMAGES_PER_CHUNK = 4096
"""Images painted at a time."""


def assign_colours(target: NDArray[np.int64], rho: float, generator: np.random.Generator) -> NDArray[np.int64]:
    """Assign a colour index to each sample, (N,): exact shares, not coin flips.

    Of the n samples of a class the first int(n * rho), in random order, get the class's own colour. The rest is cut
    into chunks of ceil(rest / 9) that go to the other nine colours in random order.
    """
    colours = np.empty_like(target)
    count = len(BACKGROUND_COLOURS)
    for own in range(count):
        members = generator.permutation(np.flatnonzero(target == own))
        aligned = int(len(members) * rho)
        colours[members[:aligned]] = own
        rest = members[aligned:]
        others = generator.permutation([colour for colour in range(count) if colour != own])
        chunk = -(-len(rest) // (count - 1))
        for position, other in enumerate(others):
            colours[rest[position * chunk : (position + 1) * chunk]] = other
    return colours


def paint_digits_on_colour(strokes: NDArray[np.generic], colours: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Paint white strokes on coloured ground.

    Args:
        strokes: how much of each pixel the stroke covers, 0 to 1 or a truth value, shape (N, H, W).
        colours: colour index of each sample, (N,).

    Returns:
        Images, uint8, (N, 3, H, W).
    """
    count, height, width = strokes.shape
    painted = np.empty((count, 3, height, width), np.uint8)
    for start in range(0, count, IMAGES_PER_CHUNK):
        part = slice(start, start + IMAGES_PER_CHUNK)
        cover = strokes[part, None].astype(np.float32)
        colour = BACKGROUND_COLOURS[colours[part]].astype(np.float32)[:, :, None, None]
        painted[part] = np.rint(255.0 * cover + colour * (1.0 - cover))
    return painted
