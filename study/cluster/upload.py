"""What is uploaded for a job: this package, the shipped study files and one resolved study file, or a suite.

Nothing else."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import study
from study.errors import UserError
from study.spec.document import shipped_folder

STUDY_FILE = "job-study.yaml"
CODE = (".py", ".yaml", ".j2", ".html", ".css", ".js")
"""What the package is made of; caches, notes and anything that lies about is not uploaded."""


class Uploaded(Protocol):
    """A study, or a suite."""

    @property
    def name(self) -> str: ...

    @property
    def function_is_pickled(self) -> bool: ...

    def to_yaml(self) -> str: ...


@contextmanager
def upload(spec: Uploaded | None) -> Iterator[Path]:
    """A folder with it, until the block is left; Ray uploads no more than 500 MiB, this is about 2.5.

    Raises:
        UserError: its training function lies in another study's folder, here.
    """
    if spec is not None and spec.function_is_pickled:
        raise UserError(
            f"{spec.name}: its function was defined in a notebook or a script, and cannot be submitted. Put it into a "
            "module that the cluster's Python can import, and name it in method.function"
        )
    folder = Path(tempfile.mkdtemp(prefix="study-upload-"))
    try:
        _copy(Path(study.__file__).parent, folder / "study")
        _copy(shipped_folder(), folder / "search_spaces")
        if spec is not None:
            (folder / STUDY_FILE).write_text(spec.to_yaml(), encoding="utf-8")
        yield folder
    finally:
        shutil.rmtree(folder)


def size(folder: Path) -> tuple[int, int]:
    """Files in it, and their bytes."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


def _copy(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        inside = path.relative_to(source)
        hidden = any(part.startswith((".", "__pycache__")) for part in inside.parts)
        if path.is_file() and not path.is_symlink() and path.suffix in CODE and not hidden:
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / inside)
