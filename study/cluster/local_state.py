"""What is remembered of a cluster on this machine: its processes, addresses, secrets and files."""

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from study.cluster.process import Process
from study.errors import UserError
from study.files import write_whole
from study.home.folder import Home

MLFLOW_USER = "admin"

SECRETS = ("token", "mlflow-password", "mlflow-auth.ini", "mlflow-users.db*")
"""The files that let somebody into a cluster; they end with it."""

STATE, LINK = "state.json", "ray"
"""What was started, in the cluster's folder, and a link there to the folder of Ray's session."""


@dataclass
class LocalState:
    """The cluster of a home: what of it was started, and where it is.

    Attributes:
        address: for `study run --address`.
        dashboard: for `study submit --address`.
        mlflow: URI of its server.
        scratch: the folder of Ray's session.
        host: the machine that it runs on.
    """

    path: Path
    address: str = ""
    dashboard: str = ""
    mlflow: str = ""
    scratch: str = ""
    host: str = ""
    processes: list[Process] = field(default_factory=list)

    @classmethod
    def of(cls, home: Home) -> Self:
        """That of a home; without processes if none was started.

        Raises:
            UserError: its file is damaged.
        """
        path = home.path / ".cluster"
        file = path / STATE
        if not file.exists():
            return cls(path, scratch=_linked(path))
        try:
            state: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            state["processes"] = [Process(**process) for process in state["processes"]]
            found = cls(path, **state)
            if not all(type(part.pid) is int and 0 < part.pid < 2**31 for part in found.processes):
                raise ValueError
            if not all(type(value) is str for key, value in state.items() if key != "processes"):
                raise ValueError
            return found
        except (ValueError, TypeError, KeyError):
            raise UserError(f"{file}: damaged. What it started is ended by: study cluster down") from None

    @classmethod
    def left(cls, home: Home) -> Self:
        """The same, to be stopped: of one whose file is damaged what can be found without it.

        Raises:
            UserError: it runs on another machine.
        """
        try:
            found = cls.of(home)
        except UserError:
            path = home.path / ".cluster"
            return cls(path, scratch=_linked(path))
        found.check_host()
        return found

    @property
    def mark(self) -> str:
        """What its processes have inherited, see `study.cluster.process.MARK`."""
        return os.path.realpath(self.path)

    @property
    def token_file(self) -> Path:
        return self.path / "token"

    @property
    def password_file(self) -> Path:
        return self.path / "mlflow-password"

    def alive(self) -> list[Process]:
        return [process for process in self.processes if process.is_alive]

    def environment(self) -> dict[str, str]:
        """What talks to it needs, but for MLflow's password: the secrets stay in their files."""
        return {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.token_file),
            "MLFLOW_TRACKING_URI": self.mlflow,
            "MLFLOW_TRACKING_USERNAME": MLFLOW_USER,
        }

    def left_files(self) -> list[Path]:
        """What is to go with the cluster: all of its folder but the logs."""
        link = [self.path / LINK] if (self.path / LINK).is_symlink() else []  # to what may be gone
        return [*link, *(file for pattern in (*SECRETS, STATE) for file in self.path.glob(pattern))]

    def check_host(self) -> None:
        """Refuse a cluster of another machine, of whose processes nothing is known here.

        Raises:
            UserError: says which machine.
        """
        if self.host not in ("", platform.node()) and self.processes:
            raise UserError(
                f"{self.path}: its cluster was started on {self.host}; there: study cluster down. If that machine is "
                "gone, remove the folder"
            )

    def save(self) -> None:
        """Write it down."""
        state = {key: value for key, value in asdict(self).items() if key != "path"}
        write_whole(self.path / STATE, json.dumps(state, indent=2))


def _linked(path: Path) -> str:
    """The folder of Ray's session that a cluster's folder links to."""
    try:
        return os.readlink(path / LINK)
    except OSError:
        return ""
