"""Encoded images as arrays."""

import io
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from study.errors import UserError


def decode(data: bytes, name: str, shape: tuple[int, int, int]) -> NDArray[np.uint8]:
    """The pixels of an encoded image, (3, H, W).

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


def files(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of every file in a .tar.gz, in its order; nothing is unpacked to disk.

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
