"""Files beside pictures that programs leave there: never pictures themselves."""

from pathlib import Path, PurePath

FOLDERS = {"__MACOSX"}
"""Folders that programs leave; those whose names begin with a dot, as `.ipynb_checkpoints`, are hidden anyway."""


def is_hidden(name: str | PurePath) -> bool:
    """Whether a file's name, or a path relative to the folder that is looked at, has a hidden part."""
    parts = name.split("/") if isinstance(name, str) else name.parts
    return any(part in FOLDERS or (part.startswith(".") and part not in (".", "..")) for part in parts)


def shown(folder: Path, pattern: str = "*") -> list[Path]:
    """What is at any depth under a folder and not hidden, by name; the folder's own name may be anything."""
    return sorted(path for path in folder.rglob(pattern) if not is_hidden(path.relative_to(folder)))
