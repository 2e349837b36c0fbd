"""The weights that training begins from: where their file is, what it is, and reading it into a network."""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.data.label_files import locate
from study.data.source import Source
from study.errors import UserError
from study.files import digest
from study.text.quoted import some

if TYPE_CHECKING:
    from torch import Tensor, nn

    from study.models.encoder import Encoder

WITHIN = ("state_dict", "model")
"""Keys under which some programs keep the weights in their file."""

PREFIXES = ("method.network.encoder.net.", "encoder.net.", "module.", "backbone.")
"""What may stand before each name: in a trained model of this project, in its encoder, in a distributed training, and
in the files of self-supervised methods, whose heads are left out."""

OLD_DENSE = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.([12]\.)")
"""Names in torchvision's files of DenseNets, which have a dot too many."""

COUNTER = "num_batches_tracked"
"""A buffer of batch norm that older files do not have."""


def told(model: Mapping[str, Any]) -> dict[str, str] | None:
    """Which weights a `model` section begins from: `name`, `file` (its name alone) and `sha256`; None: random ones.

    Raises:
        UserError: the file is not there (says how to get it), cannot be read, or is not the one that is published.
    """
    found_at = find(model)
    if found_at is None:
        return None
    file, source = found_at
    found = sha256(file)
    if source is not None and source.sha256 is not None and not found.startswith(source.sha256):
        raise UserError(
            f"{file}: sha256 is {found}, {source.sha256}... was published: not the file, or damaged. Remove it, then "
            f"run `{source.command}`"
        )
    return {"name": _published_name(model) if source else model["weights"], "file": file.name, "sha256": found}


Place = tuple[str, str]
"""Path and sha256 of a file."""

_told_places: dict[str, Place] = {}
"""The files that another process found, by `key`: a worker of Ray runs in a folder of its own."""


def place(model: Mapping[str, Any]) -> tuple[str, Place] | None:
    """What `take_places` wants to know of a `model` section; None: it has no weights. Raises as `find`."""
    found = find(model)
    return (_key(model), (str(found[0].absolute()), sha256(found[0]))) if found else None


def take_places(places: Mapping[str, Place]) -> None:
    """Look for weights where another process found them first, then where a user's paths lead; `begin` refuses files
    of another content."""
    _told_places.update(places)


def _key(model: Mapping[str, Any]) -> str:
    return f"{architecture(model)} {model['weights']}"


def find(model: Mapping[str, Any]) -> tuple[Path, Source | None] | None:
    """The file of a `model` section's weights, and where it is published; None: it has none.

    Raises:
        UserError: the file is not there; says how to get it.
    """
    weights = model.get("weights")
    if weights is None:
        return None
    from study.models.backbone import is_file
    from study.models.published import published

    told_place = _told_places.get(_key(model))
    elsewhere = Path(told_place[0]) if told_place and os.path.exists(told_place[0]) else None
    if is_file(weights):
        return elsewhere or locate(weights, "It is the file of model.weights."), None
    source = published(architecture(model), weights).source
    path = elsewhere or source.existing_path()
    if path is None:
        raise UserError(f"model.weights {weights!r}: {source.missing()}")
    return path, source


def architecture(model: Mapping[str, Any]) -> str:
    """What torchvision calls the network of a `model` section."""
    return str(model.get("architecture", model["name"]))


def sha256(file: Path) -> str:
    """Of a file's content, computed once for each state of the file."""
    status = file.stat()
    return _sha256(file, (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))


@lru_cache
def _sha256(file: Path, state: tuple[int, ...]) -> str:
    try:
        return digest.of_file(file)
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None


def begin(encoder: "Encoder", model: Mapping[str, Any]) -> None:
    """Put the weights of a `model` section into its encoder; the layer of a classifier in the file is left out.

    Raises:
        UserError: as `told`; or the file does not hold weights, or not those of this network, or others than when the
            study was started.
    """
    from study.models.backbone import Backbone

    found = find(model)
    if found is None or not isinstance(encoder, Backbone):
        return
    told(model)
    state = read(found[0])
    told_place, now = _told_places.get(_key(model)), sha256(found[0])  # after it was read: it may be written meanwhile
    if told_place and told_place[1] != now:
        raise UserError(
            f"model.weights: {found[0]}: has changed while the study runs: sha256 is {now}, was {told_place[1]}. Put "
            "the earlier file back, or begin a study of another name"
        )
    left_out = f"{encoder.dropped}."
    for name in [name for name in state if name.startswith(left_out)]:
        del state[name]
    put(encoder.net, state, f"model.weights: {found[0]}: does not fit {encoder.architecture}")


def put(net: "nn.Module", state: "dict[str, Tensor]", problem: str) -> None:
    """Load a state of which every tensor must have its place, and every place its tensor.

    Raises:
        UserError: begins with `problem`, then names what is missing, not the network's own, or of another shape.
    """
    own = net.state_dict()
    shapes = [
        f"{name} {tuple(state[name].shape)}, not {tuple(own[name].shape)}"
        for name in own
        if name in state and state[name].shape != own[name].shape
    ]
    try:
        missing, foreign = ([], []) if shapes else net.load_state_dict(state, strict=False)
    except RuntimeError as error:  # shapes of tensors that the network itself renames
        shapes, missing, foreign = [" ".join(str(error).split())[:300]], [], []
    if shapes:  # what else differs is told, too
        missing, foreign = [name for name in own if name not in state], [name for name in state if name not in own]
    missing = [name for name in missing if not name.endswith(COUNTER)]
    kinds = (("missing", missing), ("not its own", foreign), ("of another shape", shapes))
    if faults := [f"{words}: {some(names[:FEW])}{_more(names)}" for words, names in kinds if names]:
        raise UserError(f"{problem}. {'; '.join(faults)}")


FEW = 3
"""Names of each kind that a message lists."""


def read(file: Path) -> "dict[str, Tensor]":
    """The tensors of a file by name, without prefixes that programs put before them.

    Raises:
        UserError: the file cannot be read, or holds something else. A pickle's code is never run.
    """
    import torch

    content = _content(file)
    for key in WITHIN:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, dict) or not content or not all(map(torch.is_tensor, content.values())):
        raise UserError(f"model.weights: {file}: does not hold a network's weights (a mapping of names to tensors)")
    for prefix in PREFIXES:
        if any(name.startswith(prefix) for name in content):
            own = {name: tensor for name, tensor in content.items() if name.startswith(prefix)}
            content = {name.removeprefix(prefix): tensor for name, tensor in own.items()}
    for name in [name for name in content if OLD_DENSE.search(name)]:
        content[OLD_DENSE.sub(r"\1\2", name)] = content.pop(name)
    return content


def _content(file: Path) -> Any:
    """What is in a file."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        if file.suffix == ".safetensors":
            return load_file(file)
        return torch.load(file, weights_only=True, map_location="cpu")
    except SafetensorError as error:
        raise UserError(f"model.weights: {file}: is not a safetensors file: {error}") from None
    except OSError as error:
        raise UserError(f"model.weights: {file}: cannot be read: {error.strerror or error}") from None
    except Exception as error:  # whatever PyTorch makes of a damaged file, or of one with more than weights
        said = str(error).rpartition("WeightsUnpickler error:")[2]  # before it PyTorch's advice, which leads past this
        reason = " ".join(said.partition("Check the documentation")[0].split())[:100]
        raise UserError(
            f"model.weights: {file}: cannot be read as weights alone ({reason}). Save its state_dict, or make it a "
            ".safetensors file"
        ) from None


def _published_name(model: Mapping[str, Any]) -> str:
    from study.models.published import published

    return published(architecture(model), model["weights"]).name


def _more(names: list[str]) -> str:
    return f" and {len(names) - FEW} more" if len(names) > FEW else ""
