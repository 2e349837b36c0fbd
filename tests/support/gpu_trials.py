"""One trial on the CPU and on the simulated device with values, side by side."""

from collections.abc import Mapping
from typing import Any

from helpers import timeless
from real_values import real_values
from small import config, digits

from study.data.dataset import Dataset
from study.training.trial import Trial


def apart(method: Mapping[str, Any], dataset: Dataset | None = None, **train: Any) -> dict[str, Any]:
    """How far two trials of one configuration are apart, the CPU's and the device's.

    Returns:
        `keys`: figures that one of them has alone; `figures`: how many were compared, over all epochs and on the test
        split; `most`: the largest difference, of figures above 1 relative.
    """
    told, data = config(method, **train), dataset or digits()
    on_cpu = Trial(told, data, "cpu")
    expected = [*timeless(on_cpu.train_epochs()), on_cpu.evaluate("test", final=True)]
    with real_values():
        on_gpu = Trial(told, data, "cuda")
        found = [*timeless(on_gpu.train_epochs()), on_gpu.evaluate("test", final=True)]
    pairs = [(one, other) for one, other in zip(expected, found, strict=True)]
    keys = sorted({key for one, other in pairs for key in one.keys() ^ other.keys()})
    differences = [
        abs(one[key] - other[key]) / max(1, abs(one[key])) for one, other in pairs for key in one.keys() & other
    ]
    return {"keys": keys, "figures": len(differences), "most": max(differences)}
