"""Hashes that tell whether a file is the one that was written."""

import hashlib
import json
from pathlib import Path
from typing import Any


def of_values(values: Any) -> str:
    """SHA-256 of nested plain values, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, allow_nan=False).encode()).hexdigest()


def of_file(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
