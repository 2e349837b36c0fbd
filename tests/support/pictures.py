"""Small image files for tests, each told from the others by its colour."""

import os
from pathlib import Path

import numpy as np
from PIL import Image

SHARED = Path(os.environ.get("STUDY_DATA") or Path(__file__).parents[3] / "shared" / "data")
"""The folder of real data files, where there is one."""


def colour(number: int) -> tuple[int, int, int]:
    """A colour that no other number below 4096 has, far enough from the others to survive JPEG."""
    return tuple(16 * (number >> shift & 15) + 8 for shift in (0, 4, 8))  # type: ignore[return-value]


def numbers(images: np.ndarray) -> list[int]:
    """The numbers whose colours these images (N, 3, S, S) have."""
    levels = images.mean((2, 3)).astype(int) // 16
    return (levels @ [1, 16, 256]).tolist()


def picture(path: Path, number: int = 0, size: tuple[int, int] = (10, 12)) -> Path:
    """An image file of one colour; its folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour(number)).save(path, quality=95)
    return path


def truncate(path: Path) -> None:
    """Cut a file to half its length."""
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
