"""How far a ledger is in MLflow, kept beside it."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Progress:
    """What MLflow has.

    Attributes:
        uri: which MLflow.
        offset: bytes of the ledger.
        parent: run id of the study, empty if there is none yet.
        trials: run id of each trial, by number.
        epochs: last epoch that each trial's run holds.
        open: trials whose runs are not terminated.
        attached: whether the study's files are artifacts of its run.
    """

    uri: str = ""
    offset: int = 0
    parent: str = ""
    trials: dict[str, str] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    attached: bool = False

    @classmethod
    def load(cls, path: Path, uri: str) -> "Progress":
        """What this MLflow has: nothing, where the file tells of another one, is missing or cannot be read."""
        try:
            found = cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return cls(uri)
        return found if found.uri == uri else cls(uri)

    def save(self, path: Path) -> None:
        """Write it in one step."""
        part = path.with_suffix(".part")
        part.write_text(json.dumps(asdict(self)), encoding="utf-8")
        part.replace(path)
