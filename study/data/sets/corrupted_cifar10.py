"""corrupted_cifar10: CIFAR-10 images under one of ten corruptions, which betrays the class in a share of training.

Corrupted CIFAR-10, type 0, of the LfF paper (Nam et al. 2020), built here from CIFAR-10. The strengths are those of
level 5 of the CIFAR-10-C benchmark (Hendrycks and Dietterich 2019), as in the papers; the LfF paper's data set calls it
Severity4. Two corruptions differ from that library: frost is drawn, not cut from photographs of frost; elastic
interpolates once.
"""

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from study.data import cifar, colour_bias, holdout
from study.data.cache import load_or_build_dataset
from study.data.dataset import Facts, Split, SplitLabels
from study.data.sets import cifar10
from study.data.source import Source

GreyMaps = NDArray[np.float64]
"""One map per image of a batch, (N, H, W)."""

BatchShape = tuple[int, ...]


def draw_clouds(shape: BatchShape, decay: float, random: np.random.Generator) -> GreyMaps:
    """Draw clouds of 0 to 1 that repeat at their edges, by midpoint displacement (diamond-square).

    Args:
        shape: (N, H, W) wanted; made at the next power of two and cut.
        decay: the displacement's range is divided by its square at each halving of the step.
    """
    size = 1 << max(shape[1] - 1, shape[2] - 1).bit_length()
    cloud, step, reach = np.zeros((shape[0], size, size)), size, 1.0

    def displaced(sums: GreyMaps) -> GreyMaps:
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


def zoom_into_middle(maps: GreyMaps, factor: float) -> GreyMaps:
    """Enlarge the middle of each map to the map's size, linearly."""
    from scipy import ndimage  # slow to import

    size = maps.shape[1]
    inner = int(np.ceil(size / factor))
    top = (size - inner) // 2
    large = ndimage.zoom(maps[:, top : top + inner, top : top + inner], (1, factor, factor), order=1)
    trim = (large.shape[1] - size) // 2
    cut: GreyMaps = large[:, trim : trim + size, trim : trim + size]
    return cut


def motion_blur(maps: GreyMaps, radius: int, sigma: float, angles: GreyMaps) -> GreyMaps:
    """Blur each map in its own direction, by half a Gaussian.

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


def draw_ice_crystals(shape: BatchShape, random: np.random.Generator) -> NDArray[np.float64]:
    """Draw pale blue needles on a mist, (N, H, W, 3) of 0 to 1."""
    needles = np.zeros(shape)
    for _ in range(3):
        seeds = (random.random(shape) < 0.04) * random.uniform(1.0, 3.0, shape)
        needles += motion_blur(seeds, 5, 4.0, random.uniform(0, 360, shape[0]))
    grey = np.clip(0.25 + 0.45 * draw_clouds(shape, 1.5, random) + needles, 0.0, 1.0)
    return grey[..., None] * np.array([0.88, 0.95, 1.0])


def random_affine_coordinates(shape: BatchShape, reach: float, random: np.random.Generator) -> NDArray[np.float64]:
    """Return rows and columns, (2, N, H, W), that each pixel comes from under a random affine map per image.

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


Images = NDArray[np.floating]
"""Images (N, H, W, 3) of 0 to 1."""

RandomGenerator = np.random.Generator

IMAGES_PER_CHUNK = 512
"""Images corrupted at a time."""

GREY_WEIGHTS = np.array([0.299, 0.587, 0.114], np.float32)


def snow(images: Images, random: RandomGenerator) -> Images:
    """Blow flakes in one direction over a brightened image."""
    keep = 0.8
    flakes = zoom_into_middle(random.normal(0.3, 0.3, images.shape[:3]), 1.25)
    flakes = np.clip(np.where(flakes < 0.65, 0.0, flakes), 0.0, 1.0)
    flakes = motion_blur(flakes, 14, 12, random.uniform(-135, -45, len(images)))[..., None]
    pale = np.maximum(images, (images @ GREY_WEIGHTS)[..., None] * 1.5 + 0.5)
    return keep * images + (1 - keep) * pale + flakes + np.rot90(flakes, 2, (1, 2))


def frost(images: Images, random: RandomGenerator) -> Images:
    """Lay ice crystals over a darkened image."""
    return 0.75 * images + 0.45 * draw_ice_crystals(images.shape[:3], random)


def fog(images: Images, random: RandomGenerator) -> Images:
    """Add a cloud of light."""
    strength = 1.5
    brightest = images.max((1, 2, 3), keepdims=True)
    cloud = draw_clouds(images.shape[:3], 1.75, random)[..., None]
    return (images + strength * cloud) * brightest / (brightest + strength)


def brightness(images: Images, random: RandomGenerator) -> Images:
    """Raise the value of HSV, and keep hue and saturation."""
    value = images.max(-1, keepdims=True)
    brighter = np.minimum(value + 0.3, 1.0)
    return np.where(value > 0, images / np.where(value > 0, value, 1.0), 1.0) * brighter


def contrast(images: Images, random: RandomGenerator) -> Images:
    """Draw each channel to its mean."""
    mean = images.mean((1, 2), keepdims=True)
    return (images - mean) * 0.15 + mean


def spatter(images: Images, random: RandomGenerator) -> Images:
    """Spatter drops of mud."""
    liquid = _gaussian_blur(random.normal(0.65, 0.1, images.shape[:3]), 0.5)
    mud = _gaussian_blur((liquid > 0.68).astype(np.float64), 0.6)[..., None]
    mud = np.where(mud < 0.8, 0.0, mud)
    return images * (1 - mud) + mud * (np.array([63, 42, 20], np.float32) / 255)


def elastic(images: Images, random: RandomGenerator) -> Images:
    """Distort by a random affine map and random local shifts."""
    from scipy import ndimage  # slow to import

    size = images.shape[1]
    offsets = random.uniform(-1, 1, (2, *images.shape[:3]))
    offsets = np.stack([_gaussian_blur(each, 0.03 * size, "reflect") for each in offsets]) * 0.1 * size
    rows, columns = random_affine_coordinates(images.shape[:3], 0.03 * size, random) + offsets
    number, _, _, channel = np.indices(images.shape, dtype=np.float32)
    where = np.stack([number, *(np.broadcast_to(each[..., None], images.shape) for each in (rows, columns)), channel])
    moved: Images = ndimage.map_coordinates(images, where, order=1, mode="reflect")
    return moved


def jpeg(images: Images, random: RandomGenerator) -> Images:
    """Compress as JPEG and read it again."""

    def recoded(picture: Image.Image) -> Image.Image:
        stream = io.BytesIO()
        picture.save(stream, "JPEG", quality=40)
        return Image.open(stream)

    return _change_each_image(images, recoded)


def pixelate(images: Images, random: RandomGenerator) -> Images:
    """Shrink and enlarge again by averaging."""
    full = images.shape[1]
    small, box = (int(full * 0.65),) * 2, Image.Resampling.BOX
    return _change_each_image(images, lambda picture: picture.resize(small, box).resize((full, full), box))


def saturate(images: Images, random: RandomGenerator) -> Images:
    """Change the saturation of HSV, and keep hue and value; a grey pixel counts as red, as its hue is 0."""
    value = images.max(-1, keepdims=True)
    depth = value - images.min(-1, keepdims=True)
    saturation = depth / np.where(value > 0, value, 1.0)
    shade = np.where(depth > 0, (value - images) / np.where(depth > 0, depth, 1.0), np.array([0.0, 1.0, 1.0]))
    return value * (1 - np.clip(saturation * 2.5 + 0.2, 0.0, 1.0) * shade)


CORRUPTIONS: tuple[Callable[[Images, RandomGenerator], Images], ...] = (
    snow,
    frost,
    fog,
    brightness,
    contrast,
    spatter,
    elastic,
    jpeg,
    pixelate,
    saturate,
)
"""Corruption of each bias class: corruption `c` is class `c`'s own."""


def corrupt_images(images: NDArray[np.uint8], kinds: NDArray[np.int64], random: RandomGenerator) -> NDArray[np.uint8]:
    """Corrupt each image in its own way.

    Args:
        images: (N, 3, H, W), square.
        kinds: index in `CORRUPTIONS` of each image, (N,).

    Returns:
        Images of the same shape.
    """
    corrupted = np.empty_like(images)
    for kind, function in enumerate(CORRUPTIONS):
        members = np.flatnonzero(kinds == kind)
        for start in range(0, len(members), IMAGES_PER_CHUNK):
            indices = members[start : start + IMAGES_PER_CHUNK]
            plain = images[indices].transpose(0, 2, 3, 1).astype(np.float32) / 255
            done = np.clip(function(plain, random), 0.0, 1.0) * 255
            # the nudge keeps 8-bit values that rounding left just below themselves; else truncated, as published
            corrupted[indices] = (done + 1e-3).astype(np.uint8).transpose(0, 3, 1, 2)
    return corrupted


def _gaussian_blur(maps: NDArray[np.float64], sigma: float, mode: str = "nearest") -> NDArray[np.float64]:
    from scipy import ndimage  # slow to import

    smooth: NDArray[np.float64] = ndimage.gaussian_filter(maps, (0, sigma, sigma), mode=mode)
    return smooth


def _change_each_image(images: Images, change: Callable[[Image.Image], Image.Image]) -> Images:
    """Apply a change that Pillow makes, image by image."""
    pictures = (images * 255).round().astype(np.uint8)
    return np.stack([np.asarray(change(Image.fromarray(pixels))) for pixels in pictures]).astype(np.float32) / 255


SPLITS_IN_SEED_ORDER = ("train", "val", "test")
"""Splits in the order that seeds their generators, beside the seed."""


@dataclass(frozen=True)
class Options:
    """Keys of the `data` section."""

    rho: colour_bias.RhoKey = 0.95
    source: cifar10.SourceKey = "auto"
    seed: colour_bias.ColourSeedKey = 0
    val_share: holdout.ValShareKey = 0.1
    val: holdout.BiasedOrUnbiasedValKey = "unbiased"


def describe(options: Options) -> Facts:
    """Return the facts: ten classes, ten corruptions."""
    title = "Corrupted CIFAR-10 (from JPEG, q75)" if cifar10.uses_jpeg_copy(options.source) else "Corrupted CIFAR-10"
    return cifar.cifar_normalised_facts(title, bias_classes=10, aligned=tuple(range(10)))


def sources(options: Options) -> tuple[Source, ...]:
    """Return CIFAR-10's files."""
    return cifar10.sources(_cifar10_options(options))


def load_labels(options: Options) -> dict[str, SplitLabels]:
    """Return the classes and corruptions of each split; no image is decoded."""
    plain = cifar10.load_labels(_cifar10_options(options)).items()
    return {name: SplitLabels(one.target, _draw_corruptions(options, name, one.target)[0]) for name, one in plain}


def _cifar10_options(options: Options) -> cifar10.Options:
    return cifar10.Options(options.source, options.val_share, options.seed)


def _draw_corruptions(
    options: Options, name: str, target: NDArray[np.int64]
) -> tuple[NDArray[np.int64], np.random.Generator]:
    """Choose the corruption of each image of a split, (N,); return also the generator that then corrupts them."""
    random = np.random.default_rng((options.seed, SPLITS_IN_SEED_ORDER.index(name)))
    biased = name == "train" or (name == "val" and options.val == "biased")
    return colour_bias.assign_colours(target, options.rho if biased else colour_bias.UNBIASED_RHO, random), random


def build(options: Options) -> dict[str, Split]:
    """Corrupt each split; `val` changes neither the images, nor the corruptions of training and test."""
    own, splits = _cifar10_options(options), {}
    read = partial(cifar10.build, own)
    whole = load_or_build_dataset("cifar10", own, cifar10.describe(own), read, sources(options))
    for name, plain in whole.splits.items():
        kinds, random = _draw_corruptions(options, name, plain.target)
        splits[name] = Split(corrupt_images(np.asarray(plain.inputs, np.uint8), kinds, random), plain.target, kinds)
    return splits
