"""A study's driver as a job of a Ray cluster."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from study.errors import StartInterruptedError, StudyStoppedError, UserError
from study.spec.load import check_study_name
from study.text import escape_control


def select_shell_variables(names: Sequence[str]) -> dict[str, str]:
    """Return the named variables of this shell with their values, for a job.

    Raises:
        UserError: one is not set here, or is not a name.
    """
    values = {}
    for name in names:
        if not name.isidentifier():
            raise UserError(f"--env {name}: the name of a variable is needed; its value is taken from this shell")
        if name not in os.environ:
            raise UserError(f"--env {name}: is not set in this shell")
        if name.startswith("RAY_AUTH"):
            raise UserError(f"--env {name}: the cluster's token is not given to jobs, they have it")
        values[name] = os.environ[name]
    return values


DRIVER_MODULE = "study.driver"
"""What the job of a driver runs: the room above this one."""

SEARCH_DRIVER, FINAL_TRAINING_DRIVER = "study", "final"
"""Kinds of drivers: of a search, and of a final training, whose results are models."""

MAX_SHOWN_JOB_CHARACTERS = 120
"""Most characters of a job's id that a message shows."""

MAX_TIMESTAMP_S = 1e11
"""Last moment that is believed, in seconds since the epoch: the year 5138."""


@dataclass(frozen=True)
class DriverJob:
    """A study's driver on a cluster.

    Attributes:
        driver_number: from 1, of the study's drivers.
        state: pending, running, stopped, succeeded or failed, as Ray says.
        began, ended: seconds since the epoch.
        python: the interpreter that runs it.
        environment: variables that it was given.
        node: Ray's id of its node; None: it has none yet.
        exit_code: of its driver, None where Ray does not know it.
        driver_kind: `SEARCH_DRIVER` or `FINAL_TRAINING_DRIVER`.
    """

    id: str
    study: str
    spec_hash: str
    driver_number: int
    state: str
    ray_message: str
    began: float | None
    ended: float | None
    python: str
    environment: dict[str, str]
    node: str | None = None
    exit_code: int | None = None
    driver_kind: str = SEARCH_DRIVER

    @property
    def study_owner(self) -> str:
        """The study's owner."""
        return escape_control(self.environment.get("STUDY_OWNER", ""))

    @property
    def has_ended(self) -> bool:
        return self.state in ("stopped", "succeeded", "failed")

    @property
    def command_exit_status(self) -> int:
        """Exit status that the same command has at home, once the job is over: 0, 1, 2 or 130."""
        if self.state == "succeeded":
            return 0
        if self.state == "stopped":
            return StartInterruptedError.exit_status
        known = (UserError.exit_status, StartInterruptedError.exit_status)
        return self.exit_code if self.exit_code in known else StudyStoppedError.exit_status

    @classmethod
    def from_ray_job(cls, details: Any) -> "DriverJob":
        """Build one from what Ray says of a job.

        Anybody who reaches the cluster may have written it: nothing is trusted.

        Raises:
            UserError: it is not what a job of a study says, or its study has a name that no study can have.
        """
        name = str(details.submission_id)
        try:
            metadata = {str(key): str(value) for key, value in (details.metadata or {}).items()}
            given = (details.runtime_env or {}).get("env_vars") or {}
            environment = {str(key): str(value) for key, value in given.items()}
            number, code = int(metadata.get("number", 0)), details.driver_exit_code
            began, ended = _milliseconds_to_seconds(details.start_time), _milliseconds_to_seconds(details.end_time)
            state, node = str(details.status.value).lower(), details.driver_node_id
            if not (name.isprintable() and state.isprintable() and isinstance(node, str | None)):
                raise ValueError
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise UserError(
                f"job {name[:MAX_SHOWN_JOB_CHARACTERS]!r}: what the cluster says of it is not what Ray says of a job"
            ) from None
        if "study" in metadata:
            _check_study_name(name, metadata["study"])
        study, spec, python = metadata.get("study", ""), metadata.get("spec", ""), metadata.get("python", "python")
        message, code = escape_control(str(details.message or "")), code if isinstance(code, int) else None
        about = name, study, spec, number, state, message, began, ended, python, environment, node, code
        return cls(*about, metadata.get("kind", SEARCH_DRIVER))


def _milliseconds_to_seconds(milliseconds: Any) -> float | None:
    """Convert milliseconds since the epoch to seconds; None where nothing is given."""
    if not milliseconds:
        return None
    seconds = float(milliseconds) / 1000
    if not math.isfinite(seconds) or not 0 <= seconds <= MAX_TIMESTAMP_S:
        raise ValueError
    return seconds


def _check_study_name(job: str, name: str) -> None:
    """Refuse a study's name that would be a path: it becomes the name of a folder here."""
    try:
        check_study_name(name)
    except UserError as error:
        why = str(error)[: 10 * MAX_SHOWN_JOB_CHARACTERS]
        raise UserError(f"job {job[:MAX_SHOWN_JOB_CHARACTERS]!r} on the cluster: {why}") from None


def driver_job_id(name: str, number: int) -> str:
    """Return Ray's name for a driver of a study."""
    return f"study-{name}" if number == 1 else f"study-{name}-{number}"


def driver_job_metadata(name: str, spec: str, number: int, python: str, kind: str = SEARCH_DRIVER) -> dict[str, str]:
    """Return the metadata of a driver's job, as `DriverJob.from_ray_job` reads it."""
    return {"study": name, "spec": spec, "number": str(number), "python": python, "kind": kind}
