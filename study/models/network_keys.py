"""Keys of the `model` section that every network has, and which data suit a network; without PyTorch."""

from dataclasses import dataclass
from typing import Annotated, Literal

from typing_extensions import Doc

from study.data.dataset import Facts
from study.knobs import Range


def not_images(facts: Facts) -> str | None:
    """Say why the data do not suit a network of images; None if they do."""
    return f"takes images, not rows of {facts.shape[0]} numbers" if facts.is_table else None


def not_rows(facts: Facts) -> str | None:
    """Say why the data do not suit a network of a table's rows; None if they do."""
    return None if facts.is_table else f"takes the rows of a table, not images of {size(facts)} pixels"


def size(facts: Facts) -> str:
    """Write height and width of the images in words."""
    return " x ".join(str(side) for side in facts.shape[1:])


Width = Annotated[int, Range(low=1)]


@dataclass(frozen=True)
class HeadOptions:
    """Keys of the `model` section that every network has."""

    head: Annotated[
        Literal["none", "linear", "mlp"],
        Doc(
            "projection head: `none` (the loss sees the features), `linear`, or `mlp` with one hidden layer of "
            "`head_hidden` units"
        ),
    ] = "none"
    head_hidden: Annotated[Width, Doc("units of the hidden layer of an `mlp` head")] = 128
    head_features: Annotated[Width, Doc("width of the embeddings")] = 128
    head_norm: Annotated[
        Literal["none", "hidden", "both"],
        Doc(
            "batch normalisation in the head: `hidden`: of the hidden layer; `both`: also of the embeddings,"
            " there without scale and shift"
        ),
    ] = "none"
