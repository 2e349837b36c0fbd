"""The state of a trial between two epochs, in a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from study.errors import UserError


def keep(
    path: Path, epoch: int, made_from: Any, states: Mapping[str, Any], generators: Mapping[str, torch.Generator]
) -> None:
    """Write the state after an epoch in one step: a reader sees the whole file or the one before.

    Args:
        made_from: plain values that say which trial it is.
        states: what has a `state_dict`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    content = {name: one.state_dict() for name, one in states.items()}
    random = {name: one.get_state() for name, one in generators.items()} | {"torch": torch.get_rng_state()}
    torch.save({"epoch": epoch, "made_from": made_from, "states": content, "random": random}, part)
    part.replace(path)


def restore(path: Path, made_from: Any, states: Mapping[str, Any], generators: Mapping[str, torch.Generator]) -> int:
    """Take the state that `keep` wrote; the epoch that it was written after.

    Raises:
        UserError: it was written by another trial.
    """
    content = torch.load(path, weights_only=True, map_location="cpu")
    if content["made_from"] != made_from:
        raise UserError(f"{path}: is the state of a trial of another configuration or other data; remove it")
    for name, one in states.items():
        one.load_state_dict(content["states"][name])
    for name, generator in generators.items():
        generator.set_state(content["random"][name])
    torch.set_rng_state(content["random"]["torch"])
    return int(content["epoch"])
