"""A folder of images as a user has it, with a list of labels: 40 images of cats and dogs, each of its own colour."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pictures import numbers, picture

from study import data
from study.data.dataset import Dataset

HEADER = "file,target,gender,young,weight,part"


def rows(count: int = 40) -> list[str]:
    """Lines of the list: every class and gender equally often in each part."""
    kinds, genders = ("cat", "dog"), ("f", "m")
    parts = ("train", "train", "Validation", "test")
    return [
        f"{n}.png,{kinds[n % 2]},{genders[n // 2 % 2]},{n // 4 % 2},{n / 8},{parts[n // 4 % 4]}" for n in range(count)
    ]


def write(folder: Path, lines: list[str], place: Callable[[int], str] = lambda number: "") -> None:
    """The images in a folder, each in the folder in it that `place` names, and the list beside them."""
    for number in range(len(lines)):
        picture(folder / place(number) / f"{number}.png", number, (6, 5))
    (folder / "labels.csv").write_text("\n".join([HEADER, *lines]) + "\n")


def load(**options: Any) -> Dataset:
    """The folder `mine`, below the current one."""
    return data.load({"name": "image_folder", "path": "mine", "size": 4, **options})


def drawn(dataset: Dataset) -> dict[str, list[int]]:
    """The numbers of each split's images."""
    return {name: numbers(split.inputs) for name, split in dataset.splits.items()}
