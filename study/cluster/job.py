"""A study's driver as a job of a Ray cluster."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """A study's driver on a cluster.

    Attributes:
        number: from 1, of the study's drivers.
        state: pending, running, stopped, succeeded or failed, as Ray tells it.
        began, ended: seconds since the epoch.
        python: the interpreter that runs it.
        environment: variables that it was given.
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

    @property
    def is_over(self) -> bool:
        return self.state in ("stopped", "succeeded", "failed")

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
        )


def job_id(name: str, number: int) -> str:
    """Ray's name for a driver of a study."""
    return f"study-{name}" if number == 1 else f"study-{name}-{number}"


def tags(name: str, spec: str, number: int, python: str) -> dict[str, str]:
    """What a driver's job says of itself, as `Job.of` reads it."""
    return {"study": name, "spec": spec, "number": str(number), "python": python}
