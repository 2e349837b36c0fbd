"""How far a ledger is in MLflow, kept beside it."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass
class Progress:
    """What MLflow has.

    Attributes:
        offset: bytes of the ledger.
        parent: run id of the study, empty if there is none yet.
        trials: run id of each trial, by number.
        epochs: last epoch that each trial's run holds.
        open: trials whose runs are not terminated.
        attached: whether the study's files are artifacts of its run.
    """

    offset: int = 0
    parent: str = ""
    trials: dict[str, str] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    attached: bool = False

    @classmethod
    def load(cls, path: Path) -> "Progress":
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else cls()

    def save(self, path: Path) -> None:
        """Write it in one step."""
        part = path.with_suffix(".part")
        part.write_text(json.dumps(asdict(self)), encoding="utf-8")
        part.replace(path)
