"""Prepared data sets on disk: per split one memory-mapped array file, beside its labels."""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from study.data.dataset import Dataset, Facts, Split
from study.data.source import root


def cached(name: str, key: Mapping[str, Any], facts: Facts, build: Callable[[], Mapping[str, Split]]) -> Dataset:
    """The data set built once for this key, then mapped from disk.

    Args:
        name: of the data set, for the folder's name.
        key: everything that the arrays depend on, plain values: options, source files' checksums or sizes and times,
            a version of the code that builds them.
        build: makes the splits.
    """
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    folder = root() / "prepared" / f"{name}-{digest}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            for split_name, split in build().items():
                np.save(part / f"{split_name}.npy", split.inputs)
                labels = {"target": split.target, "bias": split.bias, "condition": split.condition}
                np.savez(part / f"{split_name}.labels.npz", **{k: v for k, v in labels.items() if v is not None})
            part.replace(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return Dataset(facts, {split: _read(folder, split) for split in facts.splits})


def _read(folder: Path, split: str) -> Split:
    labels = np.load(folder / f"{split}.labels.npz", allow_pickle=False)
    inputs = np.load(folder / f"{split}.npy", mmap_mode="r", allow_pickle=False)
    return Split(inputs, **{name: labels[name] for name in labels.files})
