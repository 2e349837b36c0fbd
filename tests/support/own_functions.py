"""Training functions such as users write: right ones and wrong ones."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def train(config: dict[str, Any], seed: int, epochs: int) -> Iterator[dict[str, float]]:
    """Nears 1 by `rate` in each epoch."""
    value = 0.0
    for _ in range(epochs):
        value += (1 - value) * config["rate"]
        yield {"train/loss": 1 - value, "val/accuracy": value + 0.001 * seed, "test/accuracy": value / 2}


def random(config: dict[str, Any]) -> Iterator[dict[str, float]]:
    """Draws from the global generators of three libraries, for ever."""
    import random as python

    import numpy as np
    import torch

    while True:
        yield {"val/accuracy": (python.random() + np.random.rand() + float(torch.rand(()))) / 3}


def goes_on(config: dict[str, Any], epochs: int, checkpoint: Path) -> Iterator[dict[str, float]]:
    """A sum that is kept, and how often it was begun."""
    file = checkpoint / "deep" / "state.json"
    done, total, begun = json.loads(file.read_text()) if file.exists() else (0, 0.0, 0)
    for epoch in range(done + 1, epochs + 1):
        total += config["rate"] * epoch
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps((epoch, total, begun + 1)))
        yield {"val/accuracy": total, "train/begun": begun + 1, "test/accuracy": total / 2}


def clutters(config: dict[str, Any], epochs: int, checkpoint: Path) -> Iterator[dict[str, float]]:
    """Many test values, a file of 1970 and a link that leads nowhere."""
    file, link = checkpoint / "state", checkpoint / "latest"
    for epoch in range(int(file.read_text()) + 1 if file.exists() else 1, epochs + 1):
        file.write_text(str(epoch))
        os.utime(file, (0, 0))
        link.unlink(missing_ok=True)
        link.symlink_to("gone")
        yield {"val/accuracy": epoch / 8, **{f"test/{'m' * 60}{number}": 0.1 for number in range(1000)}}


def peaks(config: dict[str, Any]) -> Iterator[dict[str, float]]:
    """Best in its second epoch."""
    for value in (0.1, 0.9, 0.2, 0.3):
        yield {"val/accuracy": value, "test/accuracy": value / 2}


def folds(config: dict[str, Any], fold: int | None, folds: int) -> Iterator[dict[str, float]]:
    """What it was told of folds."""
    yield {"train/loss": float(folds)} if fold is None else {"val/accuracy": fold / folds}


def yields(config: dict[str, Any]) -> Iterator[Any]:
    """Whatever it is told to, decoded."""
    yield from config["values"]


def ends(config: dict[str, Any]) -> Iterator[Any]:
    """Raises what is no Exception."""
    import builtins

    raise getattr(builtins, config["how"])(3)
    yield


def returns(config: dict[str, Any]) -> float:
    """No generator."""
    return 0.5


def wants_more(config: dict[str, Any], data: Any) -> Iterator[dict[str, float]]:
    """Takes what nobody gives it."""
    yield {"val/accuracy": 0.0}


def takes_nothing(seed: int = 0) -> Iterator[dict[str, float]]:
    """Not even a configuration."""
    yield {"val/accuracy": 0.0}


class Holder:
    """Has one inside."""

    @staticmethod
    def inner(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        """Within a class."""
        yield {"val/accuracy": config["rate"]}


def lasts(config: dict[str, Any], checkpoint: Path) -> Iterator[dict[str, float]]:
    """A sum that is kept, for as many epochs as are asked for."""
    file = checkpoint / "state.json"
    epoch, total = json.loads(file.read_text()) if file.exists() else (0, 0.0)
    while True:
        epoch, total = epoch + 1, total + config["rate"] * (epoch + 1)
        file.write_text(json.dumps((epoch, total)))
        yield {"val/accuracy": total, "test/accuracy": total / 2}
