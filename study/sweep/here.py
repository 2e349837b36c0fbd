"""The process that this is: what it tells the driver of itself, once."""

import json
import os
import socket
from typing import Any

import ray
import torch

from study.training.device import CPU, facts

_known = False


def known() -> bool:
    """Whether the driver was told."""
    return _known


def told(device: torch.device | None) -> dict[str, Any]:
    """What the driver is told: where the process is and what it computes on."""
    machine = ray.get_runtime_context().get_node_id()
    # a text: what is nested Tune flattens
    return {
        "node": f"{socket.gethostname()}:{os.getpid()}",
        "machine": machine,
        "device": json.dumps(facts(device or torch.device(CPU))),
    }


def note() -> None:
    """The driver was told."""
    global _known
    _known = True
