"""What is told of a study on a cluster elsewhere, and when an answer does not come."""

from typing import Any

import pytest
from helpers import Told, quickstart, record

from study.analysis.report import report_lead
from study.cluster.job_client import DriverJob
from study.commands import remote_studies as there
from study.commands.progress import StudyProgress
from study.commands.status import StudyStatus
from study.ranking import Results
from study.ranking.study_summary import summarise_study

CLUSTER: dict[str, Any] = {"nodes": 3, "lost": [], "usage": {"CPU": {"used": 2.0, "there": 2.0}}}
LOST = [{"id": f"{index}" * 56, "ended": 100.0 + index, "why": "Unexpected termination"} for index in range(3)]
FAILED = """\
Job entrypoint command failed with exit code 2, last available logs (truncated to 20,000 chars):
a library has something to say
error: data.name: 'nothing' is not there
"""


def a_job(state: str = "running", message: str = "", began: float | None = 101.0, number: int = 1) -> DriverJob:
    name = "study-mine" if number == 1 else f"study-mine-{number}"
    return DriverJob(name, "mine", "hash", number, state, message, began, None, "python", {})


def a_study() -> StudyStatus:
    spec, found = quickstart("name=mine"), record(Told("baseline", [0.5]), Told("search", [0.75, 0.8], "running"))
    results = Results(spec, found)
    pace = StudyProgress(spec, found).pace()
    return StudyStatus(
        summarise_study(results), report_lead.build_report_lead(results), None, pace, [], [], {}, {}, None, None
    )


def told(jobs: list[DriverJob], study: StudyStatus | str) -> there.RemoteStudyStatus:
    cluster = {**CLUSTER, "lost": LOST}
    found, reason = (None, study) if isinstance(study, str) else (study, None)
    return there.remote_study_status("mine", jobs, cluster, found, reason)


def test_what_is_asked_of_a_running_study() -> None:
    """Its job, trials by state, the best so far, rate and time to go, resources in use, nodes lost since it began."""
    document = told([a_job()], a_study())
    assert (document.study.summary.name, document.reason) == ("mine", None)
    assert [node["ended"] for node in document.cluster["lost"]] == [101.0, 102.0]
    lines = there.remote_status_text(document).splitlines()
    assert lines[:2] == ["job       study-mine: running", "study mine, of ada: running (1 running, 1 complete)"]
    assert "baseline  val/accuracy               50.0% (1 seed)" in lines
    assert any(line.startswith("pace      ") and line.endswith("to go") for line in lines)
    assert "cluster   3 nodes, 2 lost since it began; in use: 2 of 2 CPU" in lines
    assert lines[-1].startswith("lost      node 222222222222 at ")
    assert lines[-1].endswith(": Unexpected termination")


def test_lost_nodes_count_since_the_first_driver_and_none_while_it_waits() -> None:
    assert len(told([a_job("stopped", began=99.0), a_job(number=2, began=102.0)], a_study()).cluster["lost"]) == 3
    assert told([a_job("pending", began=None)], a_study()).cluster["lost"] == []


@pytest.mark.parametrize(
    ("state", "message", "line"),
    [
        ("failed", FAILED, "job       study-mine: failed: data.name: 'nothing' is not there"),
        ("failed", "Job entrypoint command failed:\n\nKilled\n", "job       study-mine: failed: Killed"),
        ("failed", "The actor died.\n\tclass_name: JobSupervisor", "job       study-mine: failed: The actor died."),
        ("failed", " ", "job       study-mine: failed"),
        ("failed", "x" * 1000, f"job       study-mine: failed: {'x' * 300} ..."),
        ("pending", "It may wait for resources.", "job       study-mine: pending: It may wait for resources."),
        ("running", "Job is currently running.", "job       study-mine: running"),
    ],
)
def test_a_study_that_is_not_made_yet_hides_nothing_of_its_job(state: str, message: str, line: str) -> None:
    document = told([a_job(state, message)], "mine: no such study in /home. There is no study there yet")
    assert document.study is None
    assert document.reason.startswith("mine: no such study")
    assert document.job.message == message
    lines = there.remote_status_text(document).splitlines()
    assert lines[0] == line
    assert lines[1] == "study     mine: no such study in /home. There is no study there yet"
    assert lines[2].startswith("cluster   3 nodes")
