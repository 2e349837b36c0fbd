"""Reading the pickled batches of CIFAR without running any code in them."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from study.errors import UserError


class _ArraysOnly(pickle.Unpickler):
    """Builds lists, dictionaries, strings, numbers and numpy arrays, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = {"_reconstruct": np._core.multiarray._reconstruct, "ndarray": np.ndarray, "dtype": _dtype}  # type: ignore[attr-defined]
        if module.split(".")[0] == "numpy" and name in allowed:
            return allowed[name]
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which a batch of CIFAR does not need")


def _dtype(kind: Any, *_: Any) -> np.dtype[Any]:
    """The type of an array; old pickles give `align` as a number, which numpy no longer accepts."""
    return np.dtype(kind)


def read_pickle(path: Path) -> dict[bytes, Any]:
    """The dictionary in a file of CIFAR's Python version; its keys are bytes.

    Raises:
        UserError: the file is cut short, damaged, or holds anything but plain values and arrays.
    """
    try:
        with path.open("rb") as file:
            content = _ArraysOnly(file, encoding="bytes").load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, IndexError, KeyError, AttributeError) as error:
        raise UserError(f"{path}: not a readable batch of CIFAR: {error}. Remove it and get it again") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}: holds {type(content).__name__}, a batch of CIFAR is a dictionary")
    return content
