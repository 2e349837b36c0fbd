"""A study's driver as a job of a Ray cluster."""

from dataclasses import dataclass
from typing import Any

from study.home.standing import USUAL, Standing

STUDY, FINAL, SUITE = "study", "final", "suite"
"""Kinds of drivers: of a search, of a final training, whose results are models, and of a suite."""

UNUSABLE, STOPPED = 2, 130
"""Exit statuses of `study`: what was given cannot be used; stopped by a signal."""


@dataclass(frozen=True)
class Job:
    """A study's driver on a cluster.

    Attributes:
        number: from 1, of the study's drivers.
        state: pending, running, stopped, succeeded or failed, as Ray tells it; waiting where it waits for its turn.
        began, ended: seconds since the epoch.
        python: the interpreter that runs it.
        environment: variables that it was given.
        node: Ray's id of the node that it is on; None: it is on none yet.
        exit_code: of its driver, None where Ray does not know it.
        kind: `STUDY`, `FINAL` or `SUITE`.
        place: in the queue, from 1; None: it is not in it, or that is not known.
    """

    id: str
    study: str
    spec: str
    number: int
    state: str
    message: str
    began: float | None
    ended: float | None
    python: str
    environment: dict[str, str]
    node: str | None = None
    exit_code: int | None = None
    kind: str = STUDY
    standing: Standing = USUAL
    place: int | None = None

    @property
    def owner(self) -> str:
        """Whose study it is."""
        return self.environment.get("STUDY_OWNER", "")

    @property
    def is_over(self) -> bool:
        return self.state in ("stopped", "succeeded", "failed")

    @property
    def exit_status(self) -> int:
        """That of the same command at home, once it is over: 0, 1, 2 or 130."""
        if self.state == "succeeded":
            return 0
        if self.state == "stopped":
            return STOPPED
        return self.exit_code if self.exit_code in (UNUSABLE, STOPPED) else 1

    @classmethod
    def of(cls, details: Any) -> "Job":
        """From what Ray tells of it."""
        metadata = details.metadata or {}
        return cls(
            str(details.submission_id),
            metadata.get("study", ""),
            metadata.get("spec", ""),
            int(metadata.get("number", 0)),
            str(details.status.value).lower(),
            details.message or "",
            details.start_time / 1000 if details.start_time else None,
            details.end_time / 1000 if details.end_time else None,
            metadata.get("python", "python"),
            dict((details.runtime_env or {}).get("env_vars", {})),
            details.driver_node_id,
            details.driver_exit_code,
            metadata.get("kind", STUDY),
            Standing.of(metadata),
        )


def job_id(name: str, number: int) -> str:
    """Ray's name for a driver of a study."""
    return f"study-{name}" if number == 1 else f"study-{name}-{number}"


def tags(
    name: str, spec: str, number: int, python: str, kind: str = STUDY, standing: Standing = USUAL
) -> dict[str, str]:
    """What a driver's job says of itself, as `Job.of` reads it."""
    told = {"study": name, "spec": spec, "number": str(number), "python": python, "kind": kind}
    return told | standing.tags()
