"""The folder of a training function between two epochs, in one file."""

import hashlib
import json
import time
import zipfile
from pathlib import Path
from typing import Any

from study.files.whole import whole
from study.training.checkpoint import FIRST, Unusable

HEAD = ".study-head.json"
"""The file in the archive that tells of the folder; a function's own of this name is not kept."""


class KeptFolder:
    """The folder of a function that goes on after a stop, as it was behind an epoch that was reported.

    Args:
        path: of the file.
        scratch: the folder.
        made_from: plain values that say which trial it is.
        pause: see `study.training.checkpoint.Checkpoint`.
    """

    def __init__(self, path: Path, scratch: Path, made_from: Any, pause: float = 0.0) -> None:
        self._path, self._scratch, self._made_from, self._pause = path, scratch, made_from, pause
        self._due = time.perf_counter() + pause * FIRST

    def holds(self) -> int:
        """The epoch that it is of; 0 without a file. Raises Unusable."""
        return int(self._head()["epoch"])

    def _head(self) -> dict[str, Any]:
        if not self._path.exists():
            return {"epoch": 0}
        try:
            with zipfile.ZipFile(self._path) as archive:
                if damaged := archive.testzip():
                    raise ValueError(f"checksum of {damaged}")
                head = dict(json.loads(archive.read(HEAD)))
            made_from, _ = head["made_from"], int(head["epoch"])
        except (OSError, ValueError, LookupError, TypeError, zipfile.BadZipFile) as error:
            raise Unusable(f"{self._path}: is damaged ({' '.join(str(error).split())[:100]}); remove it") from None
        if made_from != self._digest:
            raise Unusable(f"{self._path}: is the state of a trial of another configuration or function; remove it")
        return head

    def restore(self) -> tuple[int, Any]:
        """Fill the folder. Gives the epoch that it is of, and what was kept beside it; None without a file."""
        head = self._head()
        if head["epoch"]:
            with zipfile.ZipFile(self._path) as archive:
                archive.extractall(self._scratch, [name for name in archive.namelist() if name != HEAD])
        return int(head["epoch"]), head.get("beside")

    def keep(self, epoch: int, beside: Any) -> None:
        """Write the folder and plain values beside it, if it is time, in one step."""
        began = time.perf_counter()
        if began < self._due:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with whole(self._path) as part, zipfile.ZipFile(part, "w", strict_timestamps=False) as archive:
            archive.writestr(HEAD, json.dumps({"epoch": epoch, "made_from": self._digest, "beside": beside}))
            for file in sorted(self._scratch.rglob("*")):
                if file.exists() and (name := file.relative_to(self._scratch)) != Path(HEAD):  # a link may lead nowhere
                    archive.write(file, name)
        ended = time.perf_counter()
        self._due = ended + self._pause * (ended - began)

    @property
    def _digest(self) -> str:
        return hashlib.sha256(json.dumps(self._made_from, sort_keys=True).encode()).hexdigest()
