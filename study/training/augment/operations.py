"""Operations of augmentations: callables of samples and a generator, each with random parameters of its own per sample.

All draw on the generator's device and read nothing back, so that a step on a GPU waits for none of them. With small
networks a GPU waits for the CPU's launches: hence all views in one call, and choices as numbers (a mask, a matrix)
rather than one call for each case.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import conv2d, grid_sample, pad

Operation = Callable[[Tensor, torch.Generator], Tensor]


def draw_uniform(generator: torch.Generator, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
    """Draw uniform numbers of this shape, float32 on the generator's device."""
    return torch.empty(shape, device=generator.device).uniform_(low, high, generator=generator)


def draw_mask(generator: torch.Generator, batch: int, probability: float) -> Tensor:
    """Draw a mask (B,): 1 for the samples that an operation is applied to, 0 for the others, float32."""
    return torch.empty(batch, device=generator.device).bernoulli_(probability, generator=generator)


Interpolation = Literal["bilinear", "bicubic"]
MAX_BOX_DRAWS = 10
"""Number of boxes drawn before a centred one is taken, as torchvision does."""
OUT_OF_BOX_FACTOR = 1e4
"""Factor by which a pixel outside its box is moved away from it: out of reach of every interpolation."""


class CropBoxes(NamedTuple):
    """A crop per sample, float32 of whole pixels; the first row is vertical, the second horizontal.

    Attributes:
        corner: (2, B): top and left.
        side_lengths: (2, B): height and width.
    """

    corner: Tensor
    side_lengths: Tensor


@dataclass(frozen=True)
class ResizedCrop:
    """A random part of the image, resized, as torchvision's `RandomResizedCrop` and `RandomHorizontalFlip`.

    Attributes:
        size: side of the result in pixels; None: that of the image.
        min_area_share: least share of the area that is kept, in (0, 1]; the share is uniform from there to 1.
        max_aspect_ratio: width/height is log-uniform between its inverse and itself.
        flip_probability: of mirroring left and right.
        interpolation: with the antialiasing of PIL, with which the papers' code resizes.
    """

    size: int | None = None
    min_area_share: float = 0.08
    max_aspect_ratio: float = 4.0 / 3.0
    flip_probability: float = 0.5
    interpolation: Interpolation = "bilinear"

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        batch, _, height, width = images.shape
        boxes = draw_crop_boxes(generator, batch, (height, width), self.min_area_share, self.max_aspect_ratio)
        size = (height, width) if self.size is None else (self.size, self.size)
        return resized_crop(images, boxes, size, draw_mask(generator, batch, self.flip_probability), self.interpolation)


def draw_crop_boxes(
    generator: torch.Generator, batch: int, size: tuple[int, int], scale: float, ratio: float
) -> CropBoxes:
    """Draw boxes inside images of `size` (height, width), distributed as torchvision's, without its loop."""
    height, width = size
    root = draw_uniform(generator, MAX_BOX_DRAWS, batch, low=scale * height * width, high=height * width).sqrt_()
    stretch = draw_uniform(generator, MAX_BOX_DRAWS, batch, low=-math.log(ratio) / 2, high=math.log(ratio) / 2).exp_()
    tried = torch.empty(MAX_BOX_DRAWS + 1, 2, batch, device=generator.device)
    torch.div(root, stretch, out=tried[:MAX_BOX_DRAWS, 0])
    torch.mul(root, stretch, out=tried[:MAX_BOX_DRAWS, 1])
    # where none of the tries fits
    tried[MAX_BOX_DRAWS, 0], tried[MAX_BOX_DRAWS, 1] = _largest_box(height, width, ratio)
    places = _values_of_both_directions(height + 1.0, width + 1.0, generator.device)
    fits = (places - tried.round_()).mul_(tried).amin(1).gt_(0.0)  # both sides: 1 to all of the image's
    first = fits.argmax(0)
    sides = tried.gather(0, first.expand(1, 2, batch))[0]
    # of the middle two the first
    place = draw_uniform(generator, 2, batch).masked_fill_(first == MAX_BOX_DRAWS, 0.49999)
    return CropBoxes((places - sides).mul_(place).floor_(), sides)


def resized_crop(
    images: Tensor, boxes: CropBoxes, size: tuple[int, int], flip: Tensor, interpolation: Interpolation = "bilinear"
) -> Tensor:
    """Crop images (B, C, H, W) in [0, 1] to boxes, resize them to `size` and mirror those whose `flip` (B,) is 1.

    Equal to torchvision's `resized_crop` with antialiasing; bicubic results are clamped to [0, 1], as in 8-bit images.

    Resizing is linear and separable: rows and columns each have a matrix (output, input) of interpolation weights.
    Cropping and flipping change only the weights, and products of small matrices are fast on CPU and GPU alike. A grid
    of sampling points would have no antialiasing.
    """
    batch, channels, height, width = images.shape
    weights = interpolation_weights(boxes, (height, width), size, flip, interpolation)
    rows, columns = weights[0, :, : size[0], :height], weights[1, :, : size[1], :width]
    narrow = torch.bmm(images.reshape(batch, channels * height, width), columns.mT)
    rows = rows.repeat_interleave(channels, 0)
    result = torch.bmm(rows, narrow.view(batch * channels, height, size[1])).view(batch, channels, *size)
    return result.clamp_(0.0, 1.0)


def interpolation_weights(
    boxes: CropBoxes, inputs: tuple[int, int], outputs: tuple[int, int], flip: Tensor, interpolation: Interpolation
) -> Tensor:
    """Return weights (2, B, O, I) that resize boxes from `inputs` to `outputs` pixels, for rows and for columns.

    O and I are the larger numbers of `outputs` and `inputs`; where a direction has fewer pixels, the weights beyond
    them mean nothing.

    Args:
        flip: (B,), 1 for the samples whose columns are mirrored.
    """
    device = boxes.side_lengths.device
    to = _values_of_both_directions(*outputs, device)
    step = boxes.side_lengths / to  # input pixels per output pixel
    reach = step.clamp(min=1.0)
    step[1].addcmul_(step[1], flip, value=-2.0)  # its negative where the columns are mirrored
    position = torch.arange(max(outputs), device=device) + (0.5 - to / 2)
    centre = torch.addcmul(boxes.side_lengths[:, :, None] / 2, step[:, :, None], position[..., None, :])
    pixel = torch.arange(0.5, max(inputs), device=device) - boxes.corner[:, :, None]
    inside = pixel.minimum(boxes.side_lengths[:, :, None]).clamp_(min=0.0)
    pixel = torch.lerp(inside, pixel, OUT_OF_BOX_FACTOR)
    distance = (pixel[:, :, None, :] - centre[:, :, :, None]).abs_().div_(reach[:, :, None, None])
    kernel = _negative_triangle_kernel if interpolation == "bilinear" else _cubic_kernel_times_minus_two
    weights = kernel(distance)
    return weights.div_(weights.sum(3, keepdim=True))


def _negative_triangle_kernel(distance: Tensor) -> Tensor:
    """Return max(1 - distance, 0), times -1."""
    return distance.sub_(1.0).clamp_(max=0.0)


def _cubic_kernel_times_minus_two(distance: Tensor) -> Tensor:
    """Return Keys' kernel with a = -0.5, PIL's, times -2.

    Truncated powers join its two pieces: with p and q what the distance lacks to 1 and 2, or 0, the kernel is
    q^2 (q - 1) / 2 - p^2 (2 p - 1).
    """
    near, far = (distance - 1.0).clamp_(max=0.0), distance.sub_(2.0).clamp_(max=0.0)
    near_square, far_square = near.square(), far.square()
    far_square.addcmul_(far_square, far)
    return far_square.sub_(near.mul_(2.0).add_(1.0).mul_(near_square), alpha=2.0)


def _values_of_both_directions(vertical: float, horizontal: float, device: torch.device) -> Tensor | float:
    """Return one number for both directions where they are equal, else a tensor (2, 1)."""
    if vertical == horizontal:
        return vertical
    return torch.linspace(vertical, horizontal, 2, device=device)[:, None]


def _largest_box(height: int, width: int, ratio: float) -> tuple[float, float]:
    """Return the largest height and width in an image that keep the ratio within its bounds."""
    return float(min(height, round(width * ratio))), float(min(width, round(height * ratio)))


@dataclass(frozen=True)
class Rotation:
    """A rotation by at most `degrees` either way; what comes from outside is black, as with `RandomRotation`."""

    degrees: float = 20.0

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        return rotate(images, draw_uniform(generator, len(images), low=-self.degrees, high=self.degrees))


def rotate(images: Tensor, degrees: Tensor) -> Tensor:
    """Turn images (B, C, H, W) counter-clockwise by `degrees` (B,), with the nearest pixel."""
    height, width = images.shape[2:]
    across = torch.arange((1 - width) / 2, width / 2, device=images.device)
    down = torch.arange((1 - height) / 2, height / 2, device=images.device)
    pixels = torch.complex(across.expand(height, width), down[:, None].expand(height, width))
    turns = torch.polar(torch.ones_like(degrees), degrees.deg2rad())
    grid = torch.view_as_real(turns[:, None, None] * pixels)
    halves = 2 / width if width == height else torch.linspace(2 / width, 2 / height, 2, device=images.device)
    return grid_sample(images, grid.mul_(halves), mode="nearest", padding_mode="zeros", align_corners=False)


# Colour changes are those of torchvision, of RGB images (B, 3, H, W) and grey ones (B, 1, H, W) in [0, 1]. Saturation,
# hue and greyscale leave grey images as they are.


RED_LUMINANCE, GREEN_LUMINANCE, BLUE_LUMINANCE = 0.2989, 0.587, 0.114
COLOUR_CHANGES = BRIGHTNESS_CHANGE, CONTRAST_CHANGE, SATURATION_CHANGE = 0, 1, 2
COLOUR_CHANGE_ORDERS = list(permutations(COLOUR_CHANGES))
CHANNEL_WEIGHTS_IN_GREY = {1: [1.0], 3: [RED_LUMINANCE, GREEN_LUMINANCE, BLUE_LUMINANCE]}
"""Weights of the channels in their grey, by their number."""
MIN_DIVISOR = 1e-12

# Constants are copied to each device once; they must not be written.


@cache
def hue_of_channels(device: torch.device) -> Tensor:
    """Return the turns from red, green and blue on to red on the circle of hues, plus one: positive with any shift."""
    return (2.0 - torch.tensor([0.0, 1 / 3, 2 / 3])).to(device, non_blocking=True)


@cache
def identity_colour_matrix(channels: int, device: torch.device) -> Tensor:
    """Return the matrix (C + 1, C) that changes no colour."""
    return torch.eye(channels + 1, channels).to(device, non_blocking=True)


@cache
def colour_change_matrices(channels: int, device: torch.device) -> Tensor:
    """Return what each change adds to a colour per unit of its amount, (6, 3, C + 1, C): by order and place.

    The orders are `COLOUR_CHANGE_ORDERS`. With a factor of 1 + amount, brightness adds amount * x, contrast amount * (x
    - the image's mean grey), saturation amount * (x - grey). The first C rows multiply the colour, the last the image's
    mean.
    """
    grey, itself = torch.tensor([CHANNEL_WEIGHTS_IN_GREY[channels]]), torch.eye(channels)
    nothing = torch.zeros(1, channels)
    rows = {
        BRIGHTNESS_CHANGE: (itself, nothing),
        CONTRAST_CHANGE: (itself, -grey),
        SATURATION_CHANGE: (itself - grey, nothing),
    }
    changes = {change: torch.cat(parts) for change, parts in rows.items()}
    by_order = [torch.stack([changes[change] for change in order]) for order in COLOUR_CHANGE_ORDERS]
    return torch.stack(by_order).to(device, non_blocking=True)


@dataclass(frozen=True)
class ColourJitter:
    """Brightness, contrast, saturation and hue by random factors and in random order, as torchvision's `ColorJitter`.

    Each sample has factors and an order of its own; all 24 orders are equally likely.

    Attributes:
        strength: of each factor, which is uniform in [1 - strength, 1 + strength]; in [0, 1].
        hue: largest shift, in turns of the colour circle, in [0, 0.5].
        probability: of changing a sample at all.
    """

    strength: float = 0.4
    hue: float = 0.1
    probability: float = 0.8

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        batch = len(images)
        draws = draw_uniform(generator, 4, batch, low=-1.0).mul_(draw_mask(generator, batch, self.probability))
        order = torch.randint(len(COLOUR_CHANGE_ORDERS), (batch,), generator=generator, device=generator.device)
        # Samples are shuffled, so that the hue's place in the order is random though it goes by place in the batch.
        shuffled = draw_uniform(generator, batch).argsort()
        changed = jitter_colours(images.index_select(0, shuffled), draws, order, self.strength, self.hue)
        return torch.empty_like(changed).index_copy_(0, shuffled, changed)


@dataclass(frozen=True)
class Greyscale:
    """Removal of colour with a probability, as torchvision's `RandomGrayscale`."""

    probability: float = 0.2

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        applied = draw_mask(generator, len(images), self.probability)
        return torch.lerp(images, luminance(images), applied[:, None, None, None])


def luminance(images: Tensor) -> Tensor:
    """Return grey values (B, 1, H, W), a new tensor."""
    if images.shape[1] == 1:
        return images.clone()
    red, green, blue = images.split(1, 1)
    return (red * RED_LUMINANCE).add_(green, alpha=GREEN_LUMINANCE).add_(blue, alpha=BLUE_LUMINANCE)


def jitter_colours(images: Tensor, draws: Tensor, order: Tensor, strength: float, hue: float) -> Tensor:
    """Apply four changes to each image, in an order of its own; the images given are overwritten.

    The hue is shifted in all images at once. The three other changes are applied around it: the images of the first
    quarter of the batch have none of them before, those of the second quarter one, and so on; the rest come after:

        first:  hue 0 1 2,   second:  2 hue 0 1,   third:  1 2 hue 0,   fourth:  0 1 2 hue

    Args:
        draws: (4, B): the factors of the changes 0, 1, 2, less 1, in units of `strength`; the shift of the hue, in
            units of `hue`. 0 changes nothing.
        order: (B,): which of `COLOUR_CHANGE_ORDERS` the changes 0, 1, 2 are.
        strength, hue: see `ColourJitter`.
    """
    channels, device = images.shape[1], images.device
    effects = colour_change_matrices(channels, device).index_select(0, order)
    identity = identity_colour_matrix(channels, device)
    matrices = torch.addcmul(identity, effects, draws[:3].mT[:, :, None, None], value=strength)
    starts = [len(images) * quarter // 4 for quarter in (3, 2, 1)]
    spare = torch.empty_like(images)
    for change, start in enumerate(starts):
        apply_colour_matrices(images[start:], matrices[start:, change], spare[start:])
    if channels == 3:
        shift_hue(images, draws[3], hue, spare)
        images, spare = spare, images
    for change, start in enumerate(starts):
        apply_colour_matrices(images[:start], matrices[:start, change], spare[:start])
    return images


def apply_colour_matrices(images: Tensor, matrices: Tensor, spare: Tensor) -> None:
    """Change colours in place: multiply them by `matrices` (B, C + 1, C), whose last row multiplies the image's mean.

    Brightness, contrast and saturation are such matrices; as data, each sample can have another.

    Args:
        spare: memory of the shape of the images, which is overwritten: fresh memory costs a CPU more than the changes.
    """
    channels, pixels = images.shape[1], images.flatten(2)
    added = torch.bmm(matrices[:, channels:], pixels.mean(2, keepdim=True))
    changed = torch.baddbmm(added, matrices[:, :channels], pixels, out=spare.flatten(2))
    torch.clamp(changed, 0.0, 1.0, out=pixels)


def shift_hue(images: Tensor, shift: Tensor, unit: float, out: Tensor) -> None:
    """Write RGB images to `out` with their hue turned by `shift` (B,) times `unit` turns, at most one turn either way.

    Exact, as by way of HSV and back, but value and saturation are never computed: a channel is least + chroma *
    clamp(6 a - 1, 0, 1), with a its distance from the colour opposite to the hue on the circle, in turns.
    """
    red, green, blue = images.split(1, 1)
    most, least = images.amax(1, keepdim=True), images.amin(1, keepdim=True)
    # masks are floats and `lerp` is exact at 0 and 1: on a CPU many times as fast as `where` with Boolean masks
    is_most, other = torch.eq(images[:, :2], most, out=out[:, :2]), out[:, 2:]
    chroma = most.sub_(least).clamp_(min=MIN_DIVISOR)
    sixths = (red - green).add_(chroma, alpha=4.0)
    sixths.lerp_(torch.sub(blue, red, out=other).add_(chroma, alpha=2.0), is_most[:, 1:])
    sixths.lerp_(torch.sub(green, blue, out=other), is_most[:, :1])
    offset = torch.add(hue_of_channels(images.device), shift[:, None], alpha=unit)[:, :, None, None]
    turns = torch.addcdiv(offset, sixths, chroma, value=1 / 6, out=out)
    rises = turns.frac_().sub_(0.5).abs_().mul_(6.0).sub_(1.0).clamp_(0.0, 1.0)
    torch.addcmul(least, chroma, rises, out=out)


NO_BLUR_SIGMA = 1e-3
"""Standard deviation in pixels so small that in float32 only the middle weight is not 0."""


@dataclass(frozen=True)
class GaussianBlur:
    """A Gaussian blur with a width of its own per sample; edges are mirrored.

    Attributes:
        sigma: least and largest standard deviation in pixels.
        probability: of blurring a sample.
        kernel_share: side of the kernel as a share of the image's, as in the papers; the side is odd and at least 3.
    """

    sigma: tuple[float, float] = (0.1, 2.0)
    probability: float = 0.5
    kernel_share: float = 0.1

    def __call__(self, images: Tensor, generator: torch.Generator) -> Tensor:
        low, high = self.sigma
        sigma = draw_uniform(generator, len(images), low=low, high=high)
        radius = max(1, int(self.kernel_share * min(images.shape[2:])) // 2)
        return gaussian_blur(images, sigma.mul_(draw_mask(generator, len(images), self.probability)), radius)


def gaussian_blur(images: Tensor, sigma: Tensor, radius: int) -> Tensor:
    """Blur images (B, C, H, W) by `sigma` (B,) pixels, kernel of side 2 radius + 1; 0 leaves an image as it is."""
    batch, channels, height, width = images.shape
    offsets = torch.arange(-radius, radius + 1.0, device=images.device)
    weights = torch.exp((offsets / sigma.clamp(min=NO_BLUR_SIGMA)[:, None]).square_().mul_(-0.5))
    weights.div_(weights.sum(1, keepdim=True))
    kernels = weights.repeat_interleave(channels, 0)[:, None]
    lines = pad(images, (radius,) * 4, mode="reflect").view(1, -1, height + 2 * radius, width + 2 * radius)
    for kernel in (kernels[..., None], kernels[:, :, None]):
        lines = conv2d(lines, kernel, groups=batch * channels)
    return lines.view(images.shape).clamp_(0.0, 1.0)  # weights may sum to a rounding error above 1


@dataclass(frozen=True)
class ColumnCorruption:
    """Replacement of values of rows (..., B, F), each with a probability, by that of another row in its column.

    A value of the batch is a draw from the column's own distribution, which is what SCARF (Bahri et al., 2022, Alg. 1)
    asks for; every value, not a fixed number of columns per row, is drawn independently.
    """

    probability: float = 0.3

    def __call__(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        batch, device = rows.shape[-2], rows.device
        if batch < 2:
            return rows.clone()
        step = torch.randint(1, batch, rows.shape, generator=generator, device=device)  # never the row itself
        source = step.add_(torch.arange(batch, device=device)[:, None]).remainder_(batch)
        replaced = torch.empty(rows.shape, dtype=torch.bool, device=device).bernoulli_(
            self.probability, generator=generator
        )
        return torch.where(replaced, rows.gather(-2, source), rows)


@dataclass(frozen=True)
class ColumnNoise:
    """Gaussian noise of this standard deviation added to every value, in units of the standardised columns."""

    deviation: float = 0.1

    def __call__(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.randn(rows.shape, generator=generator, device=rows.device)
        return rows.add(noise, alpha=self.deviation)
