"""Image files as one array, decoded and resized by several threads, on disk since it may not fit into memory."""

import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from typing_extensions import Doc

from study.data.source import root
from study.errors import UserError
from study.knobs import Range

Frame = Literal["crop", "squash"]
"""How an image becomes square. `crop`: scaled by its shorter side, then cut to the middle. `squash`: both sides scaled
to the size, which distorts and cuts nothing off."""

Size = Annotated[int, Range(low=4, high=1024), Doc("pixels of both sides of an image")]
"""Type of the key `size`: pixels of both sides."""

BLOCK = 64
"""Files that a thread decodes at a time."""

NAMED = 5
"""Bad files that a message names; it counts the rest."""


def decode(files: Sequence[Path], size: int, frame: Frame) -> NDArray[np.uint8]:
    """The images of these files, (N, 3, size, size), mapped from a nameless file on disk.

    A JPEG of at least twice the size is decoded at a half, a quarter or an eighth of its own (as its format allows),
    then resized with a bicubic filter.

    Raises:
        UserError: some are not images, or cut short.
    """
    images = _on_disk((len(files), 3, size, size))
    bad: dict[int, str] = {}

    def block(start: int) -> None:
        for index in range(start, min(start + BLOCK, len(files))):
            try:
                images[index] = _pixels(files[index], size, frame)
            except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
                bad[index] = f"{files[index]} ({str(error).replace(str(files[index]), 'it')})"

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        list(pool.map(block, range(0, len(files), BLOCK)))
    if bad:
        raise UserError(bad_files_message("not readable as images", [bad[index] for index in sorted(bad)]))
    return images


def _pixels(file: Path, size: int, frame: Frame) -> NDArray[np.uint8]:
    with Image.open(file) as image:
        image.draft("RGB", (size, size))
        pixels = image.convert("RGB")
    box = _middle(pixels.size) if frame == "crop" else None
    if pixels.size != (size, size):
        pixels = pixels.resize((size, size), Image.Resampling.BICUBIC, box)
    return np.asarray(pixels).transpose(2, 0, 1)


def _middle(size: tuple[int, int]) -> tuple[float, float, float, float]:
    """The largest square in the middle of an image: left, upper, right, lower."""
    width, height = size
    side = min(size)
    left, upper = (width - side) / 2, (height - side) / 2
    return left, upper, left + side, upper + side


def _on_disk(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    folder = root() / "prepared"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        return np.memmap(file, np.uint8, "w+", shape=shape)


def bad_files_message(problem: str, files: Sequence[str]) -> str:
    """A message about bad files: how many, the first few by name, what to do."""
    more = f" and {len(files) - NAMED} more" if len(files) > NAMED else ""
    count = "1 file is" if len(files) == 1 else f"{len(files)} files are"
    return f"{count} {problem}: {', '.join(files[:NAMED])}{more}. Get them again, or remove them from the list"
