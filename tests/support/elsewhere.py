"""A cluster elsewhere that runs nothing, for commands that submit to it, and a study that is there."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ablated_study import PARAMS
from helpers import Told, quickstart, write_ledger

from study.cluster import job_client
from study.cluster.driver_job import DriverJob
from study.cluster.job_client import SubmissionResult
from study.commands import remote_studies
from study.home.events import SessionClosed
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.spec import StudySpec

URL = "http://127.0.0.1:8265"
THERE = ["--address", URL]


class Jobs(job_client.JobClient):
    """A cluster that runs nothing: it keeps what it is given. One study of it, `mine`, has a driver."""

    state, exit_code, answers = "succeeded", 0, dict[str, Any]()
    started: "list[tuple[str, list[str], dict[str, str], dict[str, str], StudySpec | None]]"
    forgotten: list[str]

    def __init__(self, address: str) -> None:
        self.address = address

    def all_driver_jobs(self) -> list[DriverJob]:
        given = {"KEY": "value"}
        return [
            DriverJob(
                "study-mine-3", "mine", "hash", 3, self.state, "", 1.0, 2.0, "python3", given, None, self.exit_code
            )
        ]

    def submit_job(
        self,
        job: str,
        command: Sequence[str],
        metadata: dict[str, str],
        environment: Any,
        spec: StudySpec | None = None,
    ) -> SubmissionResult:
        self.started.append((job, list(command), metadata, dict(environment), spec))
        return SubmissionResult(job, 3, 1000)

    def wait_for_answer(self, job: str, patience: float | None = None) -> Any:
        answer = self.answers[job.split("-")[1]]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _wait_for_answer_or_stop(self, job: str, patience: float | None = None) -> Any:
        return self.wait_for_answer(job, patience)

    def delete_job(self, job: str) -> None:
        self.forgotten.append(job)

    def follow_log(self, job: str) -> Iterator[str]:
        yield f"log of {job}\n"

    def wait_for_job(self, job: str, patience: float | None = None, expected: str = "stop") -> DriverJob:
        return DriverJob(job, "mine", "hash", 4, self.state, "", 1.0, 2.0, "python3", {}, None, self.exit_code)


SPEC = replace(quickstart("search.early_stopping={}", "search.confirm={top: 0}"), name="mine")


def as_it_is_there(home: Path, name: str = SPEC.name) -> StudyFolder:
    """The study, whose search is over."""
    folder = Home(home).create_study(replace(SPEC, name=name))
    start = dict(SPEC.search.baseline or {})
    trials = [Told("search", [value], params=PARAMS | {"method.alpha": value}) for value in (0.6, 0.7)]
    write_ledger(folder.ledger_file, Told("baseline", [0.5], params=start), *trials)
    ledger = Ledger(folder.ledger_file)
    ledger.append(SessionClosed(state="complete"))
    ledger.close()
    return folder


def replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[Jobs]:
    """It, in the place of every cluster."""
    monkeypatch.setattr(job_client, "JobClient", Jobs)
    monkeypatch.setattr(Jobs, "started", [], raising=False)
    monkeypatch.setattr(Jobs, "forgotten", [], raising=False)
    folder = cache(as_it_is_there)
    monkeypatch.setattr(remote_studies, "fetch_local_copy", lambda jobs, name: folder(tmp_path / "there"))
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("STUDY_OWNER", "somebody")
    return Jobs
