"""Read one image file as square 8-bit RGB, whatever its format, depth, palette, transparency or orientation."""

import io
import stat
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile, ImageOps, JpegImagePlugin, TiffImagePlugin, UnidentifiedImageError

from study.errors import UserError


def decode_image(data: bytes, name: str, shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Decode an encoded image to pixels, (3, H, W).

    Args:
        name: of the file, for the message.
        shape: that it must have.

    Raises:
        UserError: it is not an image, is cut short, or has another size.
    """
    try:
        with Image.open(io.BytesIO(data)) as image:
            pixels = np.asarray(image.convert("RGB")).transpose(2, 0, 1)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise UserError(f"{name}: not a readable image: {error}. Get it again") from None
    if pixels.shape != shape:
        actual, needed = (f"{height} x {width}" for _, height, width in (pixels.shape, shape))
        raise UserError(f"{name}: an image of {actual} pixels, {needed} are needed")
    return pixels


def iterate_archive_files(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every file in a .tar.gz, in its order; nothing is unpacked to disk.

    Raises:
        UserError: the archive is cut short or damaged.
    """
    try:
        with tarfile.open(archive) as packed:  # as a stream ("r|*") it would end early without a word
            for member in packed:
                if (file := packed.extractfile(member)) is not None:
                    yield member.name.removeprefix("./"), file.read()
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise UserError(f"{archive}: cannot be read to its end: {error}. Remove it and get it again") from None


SquareMode = Literal["crop", "squash"]
"""How an image becomes square. `crop`: scaled by its shorter side, then cut to the middle. `squash`: both sides scaled
to the size, which distorts and cuts nothing off.
"""

MAX_PIXELS = 1 << 26
"""Maximum number of pixels to decode, 8192 x 8192: 268 MB as RGB, which Pillow keeps in four bytes, and as much again
where they are converted.
"""

MAX_PIXELS_HINT = f"at most {MAX_PIXELS:,} (as 8192 x 8192) can be decoded; make it smaller"

TRANSPARENT_GREY = 128
"""Grey of transparent parts: neither a black nor a white drawing vanishes."""

JPEG_MAGIC_BYTES = b"\xff\xd8\xff"
"""First bytes of a JPEG file."""

TIFF_BITS_TAG, TIFF_PHOTOMETRIC_TAG = 258, 262
"""Tags of a TIFF: bits per sample; photometric interpretation, 0 where a sample of 0 is white."""


@contextmanager
def open_image(file: Path, size: int) -> Iterator[tuple[Image.Image, int]]:
    """Open an image file to be decoded at least at `size`; yield it and the number of pixels that this decodes.

    A progressive JPEG is kept in full until its last pass: all its pixels count. Any other counts as it is shrunk.

    Raises:
        ValueError: it is not a file or an image, or takes more than `MAX_PIXELS`.
        Exception: whatever Pillow raises for a damaged file.
    """
    if not stat.S_ISREG(file.stat().st_mode):  # to open a pipe would wait for whoever writes into it
        raise ValueError("is no file")
    with file.open("rb") as stream:
        is_jpeg = stream.read(len(JPEG_MAGIC_BYTES)) == JPEG_MAGIC_BYTES
        stream.seek(0)
        try:  # Image.open refuses by the size in the file, before it is known that a JPEG is to be shrunk
            image: ImageFile.ImageFile = JpegImagePlugin.JpegImageFile(stream) if is_jpeg else Image.open(stream)
        except UnidentifiedImageError:
            raise ValueError("is no image, or of a format that is not known") from None
        except Image.DecompressionBombError:
            raise ValueError(f"far more pixels than can be decoded, {MAX_PIXELS_HINT}") from None
        with image:
            width, height = image.size
            image.draft("RGB", (size, size))
            work = width * height if image.info.get("progressive") else image.width * image.height
            if work > MAX_PIXELS:
                raise ValueError(f"{width} x {height} pixels, {MAX_PIXELS_HINT}")
            yield image, work


def to_square_pixels(image: Image.Image, size: int, frame: SquareMode) -> NDArray[np.uint8]:
    """Convert an image to a square of pixels, (3, size, size).

    It is turned upright as its EXIF data say. Grey images of 16 bits are scaled to 8. Transparent parts become grey
    (`TRANSPARENT_GREY`).

    Raises:
        ValueError: its pixels have no fixed range.
    """
    deep = _black_and_white_values(image)
    image.load()  # a PNG may have its EXIF data at the end
    with suppress(Exception):  # whatever Pillow makes of damaged EXIF data; the pixels are sound
        ImageOps.exif_transpose(image, in_place=True)  # before it is cut and resized: that differs along both sides
    image = image.convert("I") if deep else _to_resizable_mode(image)
    if image.size != (size, size):
        resized = ImageOps.fit if frame == "crop" else Image.Image.resize
        image = resized(image, (size, size), Image.Resampling.BICUBIC)
    if deep:
        black, white = deep
        grey = (np.asarray(image, np.float64) - black) * (255 / (white - black))
        return np.broadcast_to(np.clip(grey, 0, 255).round().astype(np.uint8), (3, size, size))
    if image.mode == "RGBA":
        image = Image.alpha_composite(
            Image.new("RGBA", image.size, (TRANSPARENT_GREY, TRANSPARENT_GREY, TRANSPARENT_GREY, 255)), image
        )
    return np.asarray(image if image.mode == "RGB" else image.convert("RGB")).transpose(2, 0, 1)


def _black_and_white_values(image: Image.Image) -> tuple[int, int] | None:
    """Return the values of black and white in a grey image of more than 8 bits, None for any other image."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        tags = image.tag_v2 if isinstance(image, TiffImagePlugin.TiffImageFile) else {}
        highest = 4095 if tags.get(TIFF_BITS_TAG) == (12,) else 65535
        return (highest, 0) if tags.get(TIFF_PHOTOMETRIC_TAG) == 0 else (0, highest)
    if image.mode in ("I", "F"):
        raise ValueError("pixels of 32 bits, of which none is known to be white; save it with 8 or 16 bits")
    return None


def _to_resizable_mode(image: Image.Image) -> Image.Image:
    """Convert to a mode that can be resized: grey, RGB, or RGBA where parts may be transparent; copy only if needed."""
    if image.mode == "La":  # of which Pillow makes nothing but this
        image = image.convert("LA")
    mode = "RGBA" if image.has_transparency_data else "RGB"
    kept = ("RGBA",) if mode == "RGBA" else ("RGB", "L")
    return image if image.mode in kept else image.convert(mode)
