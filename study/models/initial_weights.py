"""The weights that training begins from: find their file, identify it, and load it into a network."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from study import files
from study.data.label_files import find_user_path
from study.data.source import Source
from study.errors import UserError
from study.models import network_keys, published_weights
from study.text import list_few_names

if TYPE_CHECKING:
    from torch import Tensor, nn

    from study.models.encoder import Encoder


STATE_DICT_KEYS = ("state_dict", "model", "net", "student", "teacher")
"""Keys under which programs keep the weights in their file, possibly nested."""

OWN_MODEL_PREFIXES = ("method.network.encoder.net.", "encoder.net.")
"""Prefixes of each name in a trained model of this project and in its encoder: preferred to any other."""

OLD_DENSENET_NAME_PATTERN = re.compile(r"(denselayer\d+\.(?:norm|relu|conv))\.([12]\.)")
"""Names in torchvision's files of DenseNets, which have a dot too many."""

MAX_NESTING_DEPTH = 4
"""Maximum number of nested keys that weights may lie under."""


class FoundStateDict(NamedTuple):
    """A mapping of names to tensors, a prefix of some of its names, and how many wanted names it leads to."""

    nesting_keys: tuple[str, ...]
    prefix: str
    n_matching_names: int
    content: Mapping[str, Any]


def unwrap_state_dict(content: Any, wanted: Collection[str], place: str) -> "dict[str, Tensor]":
    """Return the tensors of the network's names in a file's content, without nesting and prefix.

    The prefix, which may be empty, is the one with which all wanted names are found, or else most of them. Names
    without it are left out.

    Args:
        content: what is in a file.
        wanted: the network's own names.
        place: what a message begins with.

    Raises:
        UserError: there are no tensors, or several mappings or prefixes lead to all wanted names.
    """
    mappings = list(_tensor_mappings(content))
    if not mappings:
        raise UserError(f"{place}: does not hold a network's weights (a mapping of names to tensors)")
    found = [
        FoundStateDict(within, prefix, fitting, tensors)
        for within, tensors in mappings
        for prefix, fitting in _count_matches_by_prefix(tensors, frozenset(wanted)).items()
    ]
    whole = [one for one in found if one.n_matching_names == len(wanted)]
    ours = [one for one in whole if one.prefix in OWN_MODEL_PREFIXES]
    if len(whole) > 1 and len(ours) != 1:
        names = list_few_names(["/".join((*one.nesting_keys, f"{one.prefix}*")) for one in whole])
        raise UserError(
            f"{place}: holds the weights of several networks that fit: {names}. Save the one to begin from as a file "
            "of its own"
        )
    best = (ours or whole or [max(found, key=lambda one: one.n_matching_names)])[0]
    return {
        name.removeprefix(best.prefix): tensor for name, tensor in best.content.items() if name.startswith(best.prefix)
    }


def check_weights_finite(state: "Mapping[str, Tensor]", place: str) -> None:
    """Check that all values are finite.

    Raises:
        UserError: begins with `place`, then names the tensors that hold others.
    """
    faulty = [name for name, tensor in state.items() if not bool(tensor.float().isfinite().all())]
    if faulty:
        raise UserError(f"{place}: values that are not finite (nan or infinity) in {list_few_names(faulty)}")


def _tensor_mappings(
    content: Any, within: tuple[str, ...] = ()
) -> "Iterator[tuple[tuple[str, ...], dict[str, Tensor]]]":
    """Yield each mapping of names to tensors in a file's content, with the keys that it lies under."""
    import torch

    if not isinstance(content, Mapping) or len(within) > MAX_NESTING_DEPTH:
        return
    if content and all(isinstance(name, str) and torch.is_tensor(tensor) for name, tensor in content.items()):
        yield within, {OLD_DENSENET_NAME_PATTERN.sub(r"\1\2", name): tensor for name, tensor in content.items()}
        return
    for key in STATE_DICT_KEYS:
        yield from _tensor_mappings(content.get(key), (*within, key))


def _count_matches_by_prefix(names: Collection[str], wanted: Collection[str]) -> dict[str, int]:
    """Return each prefix that ends in a dot, and the empty one, with how many wanted names it leads to."""
    found = {"": 0}
    for name in names:
        for at in [0, *(dot.end() for dot in re.finditer(r"\.", name))]:
            if name[at:] in wanted:
                found[name[:at]] = found.get(name[:at], 0) + 1
    return found


BATCH_COUNTER_BUFFER = "num_batches_tracked"
"""Buffer of batch norm that older files do not have."""


def describe_weights_file(model: Mapping[str, Any]) -> dict[str, str]:
    """Describe which weights a `model` section begins from: `name`, `file` (its name alone) and `sha256`.

    Raises:
        UserError: the file is not there (says how to get it), cannot be read, or is not the one that is published.
    """
    file, source = find_weights_file(model)
    found = file_sha256(file)
    if source is not None and source.sha256 is not None and not found.startswith(source.sha256):
        raise UserError(
            f"{file}: sha256 is {found}, {source.sha256}... was published: not the file, or damaged. Remove it, then "
            f"run `{source.command}`"
        )
    architecture, weights = published_weights.architecture_name(model), model["weights"]
    name = published_weights.find_published_weights(architecture, weights).name if source else weights
    return {"name": name, "file": file.name, "sha256": found}


PathAndSha256 = tuple[str, str]
"""Path and sha256 of a file."""

_located_files: dict[str, PathAndSha256] = {}
"""Files that another process found, by `_weights_key`: a worker of Ray runs in a folder of its own."""


def locate_weights(sections: Iterable[Mapping[str, Any]]) -> dict[str, PathAndSha256]:
    """Find the weights of `model` sections, for `use_located_weights` in another process."""
    files_of = {
        _weights_key(model): find_weights_file(model)[0] for model in sections if model.get("weights") is not None
    }
    return {key: (str(file.absolute()), file_sha256(file)) for key, file in files_of.items()}


def use_located_weights(located: Mapping[str, PathAndSha256]) -> None:
    """Look for weights first where another process found them, then where a user's paths lead.

    `load_weights_into` refuses a file whose content has changed since.
    """
    _located_files.update(located)


@contextmanager
def use_weights_file(model: Mapping[str, Any], file: Path) -> Iterator[None]:
    """Look for the weights of a `model` section in this file, within the block."""
    before = dict(_located_files)
    _located_files[_weights_key(model)] = str(file), file_sha256(file)
    try:
        yield
    finally:
        _located_files.clear()
        _located_files.update(before)


def _weights_key(model: Mapping[str, Any]) -> str:
    return f"{published_weights.architecture_name(model)} {model['weights']}"


def find_weights_file(model: Mapping[str, Any]) -> tuple[Path, Source | None]:
    """Find the file of a `model` section's weights, and where it is published; None: it is the user's own.

    Raises:
        UserError: the file is not there; says how to get it.
    """
    weights = model["weights"]
    told_place = _located_files.get(_weights_key(model))
    elsewhere = Path(told_place[0]) if told_place and os.path.exists(told_place[0]) else None
    if network_keys.is_weights_file(weights):
        return elsewhere or find_user_path(weights, "It is the file of model.weights."), None
    source = published_weights.find_published_weights(published_weights.architecture_name(model), weights).source
    path = elsewhere or source.path_or_none()
    if path is None:
        raise UserError(f"model.weights {weights!r}: {source.missing_message()}")
    return path, source


def file_sha256(file: Path) -> str:
    """Hash a file's content, once for each state of the file."""
    status = file.stat()
    return _cached_sha256(file, (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino))


@lru_cache
def _cached_sha256(file: Path, state: tuple[int, ...]) -> str:
    try:
        return files.sha256_of_file(file)
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None


def load_weights_into(encoder: "Encoder", model: Mapping[str, Any]) -> None:
    """Load the weights of a `model` section into its encoder; the layer of a classifier in the file is left out.

    Raises:
        UserError: as `describe_weights_file`; or the file does not hold weights, not those of this network, values that
            are not finite, or other weights than when the study was started.
    """
    from study.models.backbone_network import Backbone

    assert isinstance(encoder, Backbone)  # no other network has the key
    file, _ = find_weights_file(model)
    describe_weights_file(model)
    wanted = [name for name in encoder.net.state_dict() if not name.endswith(BATCH_COUNTER_BUFFER)]
    state = read_tensors(file, wanted)
    told_place = _located_files.get(_weights_key(model))
    now = file_sha256(file)  # after it was read: it may be written meanwhile
    if told_place and told_place[1] != now:
        raise UserError(
            f"model.weights: {file}: has changed while the study runs: sha256 is {now}, was {told_place[1]}. Put "
            "the earlier file back, or begin a study of another name"
        )
    for name in encoder.dropped & state.keys():
        del state[name]
    check_weights_finite(state, f"model.weights: {file}")
    load_state_exactly(encoder.net, state, f"model.weights: {file}: does not fit {encoder.architecture}")


def load_state_exactly(net: "nn.Module", state: "dict[str, Tensor]", problem: str) -> None:
    """Load a state in which every tensor must have its place, and every place its tensor.

    Raises:
        UserError: begins with `problem`, then names what is missing, not the network's own, or of another shape.
    """
    try:
        net.load_state_dict(state)
    except RuntimeError as error:
        raise UserError(f"{problem}. {' '.join(str(error).split())[:MAX_ERROR_CHARACTERS]}") from None


MAX_ERROR_CHARACTERS = 500
"""Maximum length, in characters, of PyTorch's message on what does not fit."""


def read_tensors(file: Path, wanted: Collection[str]) -> "dict[str, Tensor]":
    """Read the tensors of a file by name, without what programs put around them and before their names.

    Args:
        wanted: names that the network must have.

    Raises:
        UserError: the file cannot be read, holds something else, or several networks of these names. A pickle's code is
            never run.
    """
    return unwrap_state_dict(_load_file_content(file), wanted, f"model.weights: {file}")


def _load_file_content(file: Path) -> Any:
    """Load what is in a file."""
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
