"""Decode and resize image files with several threads into one array, on disk since it may not fit into memory."""

import os
import statistics
import threading
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Doc

from study.data import image_decoding
from study.data.cache import allocate_array_on_disk
from study.data.image_decoding import SquareMode
from study.errors import UserError
from study.knobs import Range

MIN_SIDE_PIXELS, MAX_SIDE_PIXELS = 4, 1024
ImageSizeKey = Annotated[int, Range(low=MIN_SIDE_PIXELS, high=MAX_SIDE_PIXELS), Doc("pixels of both sides of an image")]
"""Type of the key `size`: pixels of both sides."""

IMAGE_SUFFIXES = (".bmp", ".gif", ".jfif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
"""Endings, in small letters, of the files in a folder that count as images."""

LARGE_IMAGE_PIXELS = image_decoding.MAX_PIXELS // 4
"""Number of pixels to decode from which on images are decoded one at a time."""

FILES_PER_TASK = 64
"""Files per task of a decoding thread."""

MAX_CHECKED_HEADERS = 5000
"""Files whose headers are read to find those that are no images; takes less than a second on a local disk."""

MAX_MEASURED_IMAGES = 50
"""Images whose headers are read to find the usual size."""

PHOTO_CHECK_IMAGES = 16
"""Images that are decoded to decide whether they are photographs."""

MAX_NAMED_FILES = 5
"""Bad files that a message names; it counts the rest."""

UNREADABLE_IMAGES_TEXT = "not readable as images"
"""What a message says of files that are no images."""

MAX_REASON_CHARACTERS = 200
"""Maximum length of the reason why a file cannot be read, in characters."""

_DECODING_LOCK = threading.Lock()
"""Held while files are decoded: this uses all processors, and the filter of warnings is the process's."""


def decode_images(files: Sequence[Path], size: int, frame: SquareMode) -> NDArray[np.uint8]:
    """Decode these files as images (N, 3, size, size), memory-mapped from a nameless file on disk.

    A JPEG of at least twice the size is decoded at a half, a quarter or an eighth of its own (as its format allows),
    then resized with a bicubic filter. For what becomes of 16 bits and of transparent parts see
    `study.data.image_decoding`.

    Raises:
        UserError: some are not images, cut short, or too large.
    """
    images, reasons = decode_readable_images(files, size, frame)
    if reasons:
        bad = [f"{files[index]} ({reason})" for index, reason in reasons.items()]
        raise UserError(bad_files_message(UNREADABLE_IMAGES_TEXT, bad))
    return images


def find_files_without_image_header(files: Sequence[Path]) -> list[str]:
    """Name the files that do not begin as an image does, each with the reason; of many, some are looked at.

    Only headers are read, of at most `MAX_CHECKED_HEADERS` files that are there, spread evenly over the list.
    """
    bad = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Pillow, about what it reads all the same
        for file in files[:: 1 + len(files) // MAX_CHECKED_HEADERS]:
            try:
                with image_decoding.open_image(file, MAX_SIDE_PIXELS):
                    pass
            except FileNotFoundError:
                continue
            except Exception as error:  # whatever Pillow makes of a damaged file
                bad.append(f"{file} ({_unreadable_reason(error, file)})")
    return bad


def median_image_side(files: Sequence[Path]) -> int | None:
    """Return the median of the shorter sides of some of these images, in pixels; None if none can be read.

    A side counts as at most `MAX_SIDE_PIXELS`. Only headers are read, of images that are spread evenly over the list.
    """
    sides = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Pillow, about what it reads all the same
        for file in files[:: max(1, len(files) // MAX_MEASURED_IMAGES)]:
            try:
                with image_decoding.open_image(file, MAX_SIDE_PIXELS) as (image, _):
                    sides.append(min(*image.size, MAX_SIDE_PIXELS))
            except Exception:  # whatever Pillow makes of a damaged file; who decodes it says why
                continue
    return statistics.median_low(sides) if sides else None


MIN_PHOTO_SIDE_PIXELS, MIN_COLOURED_SHARE, MAX_EQUAL_NEIGHBOUR_SHARE = 32, 0.05, 0.7
"""Limits for photographs: least usual side in pixels; least share of pixels whose colour channels differ by more than
`GREY_TOLERANCE` of 255; share of equal neighbouring pixels from which on pictures are drawings. Share of coloured and
of equal
pixels: CIFAR-10 0.7 and 0.01, photographs of two million pixels 0.6 and 0.2, digits on a coloured ground 0.8 and 0.9.
"""

GREY_TOLERANCE = 16


def reason_not_photographs(files: Sequence[Path]) -> str | None:
    """Say why these images are not colour photographs; None if most of those looked at are.

    Returns:
        Text to show behind "no photographs: ".
    """
    side = median_image_side(files)
    if side is None or side < MIN_PHOTO_SIDE_PIXELS:
        told = f"{side} pixels a side, photographs have {MIN_PHOTO_SIDE_PIXELS} and more"
        return "none can be read" if side is None else told
    coloured, same = [], []
    for file in files[:: max(1, len(files) // PHOTO_CHECK_IMAGES)]:
        try:
            with image_decoding.open_image(file, MIN_PHOTO_SIDE_PIXELS) as (image, _):
                values = np.asarray(image.convert("RGB"), np.int16)
        except Exception:  # as above
            continue
        coloured.append(float((np.ptp(values, axis=2) > GREY_TOLERANCE).mean()))
        same.append(float(np.mean([(np.diff(values, axis=axis) == 0).all(2).mean() for axis in (0, 1)])))
    if not coloured or statistics.median(coloured) < MIN_COLOURED_SHARE:
        return "no colours"
    plain = statistics.median(same)
    told = f"{plain:.0%} of neighbouring pixels are the same, as in drawings"
    return told if plain >= MAX_EQUAL_NEIGHBOUR_SHARE else None


def decode_readable_images(
    files: Sequence[Path], size: int, frame: SquareMode
) -> tuple[NDArray[np.uint8], Mapping[int, str]]:
    """Decode files as `decode_images` does, but leave an image black where its file cannot be read.

    Returns:
        The images, and why a file cannot be read, by its index.
    """
    images = allocate_array_on_disk((len(files), 3, size, size))
    reasons: dict[int, str] = {}
    one_large = threading.Lock()

    def block(start: int) -> None:
        for index in range(start, min(start + FILES_PER_TASK, len(files))):
            try:
                with (
                    image_decoding.open_image(files[index], size) as (image, work),
                    one_large if work > LARGE_IMAGE_PIXELS else nullcontext(),
                ):
                    images[index] = image_decoding.to_square_pixels(image, size, frame)
            except Exception as error:  # whatever Pillow makes of a damaged file
                reasons[index] = _unreadable_reason(error, files[index])

    with _DECODING_LOCK, warnings.catch_warnings(), ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        warnings.simplefilter("ignore")  # of Pillow, about what it reads all the same
        list(pool.map(block, range(0, len(files), FILES_PER_TASK)))
    return images, {index: reasons[index] for index in sorted(reasons)}


def _unreadable_reason(error: Exception, file: Path) -> str:
    """Say why a file cannot be read, in one line without its name."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error).replace(str(file), "it")
    return " ".join(text.split())[:MAX_REASON_CHARACTERS] or type(error).__name__


def bad_files_message(problem: str, files: Sequence[str]) -> str:
    """Write a message about bad files: how many, the first few by name, what to do."""
    more = f" and {len(files) - MAX_NAMED_FILES} more" if len(files) > MAX_NAMED_FILES else ""
    count = "1 file is" if len(files) == 1 else f"{len(files)} files are"
    return (
        f"{count} {problem}: {', '.join(files[:MAX_NAMED_FILES])}{more}. Get them again, or remove them from the list"
    )
