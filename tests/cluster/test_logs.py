"""A study's log: what `study logs` shows of one on a cluster, and what it refuses."""

import json
from types import SimpleNamespace

import pytest
from answers import answer

from study import cli
from study.cluster import job_client

THERE = ["--address", "http://127.0.0.1:8265"]


class Jobs:
    """A cluster on which one study runs."""

    def __init__(self, address: str) -> None:
        self.address, self.head = address, self

    def last_job_of_study(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(id=f"study-{name}-2")

    def driver_log(self, job: str) -> str:
        return f"log of {job}\n"


@pytest.fixture(autouse=True)
def _cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_client, "JobClient", Jobs)


def test_the_log_is_text_or_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    cli.app(["logs", "mine", *THERE], standalone_mode=False)
    assert capsys.readouterr().out == "log of study-mine-2\n"
    cli.app(["logs", "mine", *THERE, "--json"], standalone_mode=False)
    told = json.loads(capsys.readouterr().out)
    assert told == {"name": "mine", "job": "study-mine-2", "log": "log of study-mine-2\n"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["logs", "mine", "-f"], "-f follows the log of a study's driver on a cluster"),
        (["logs", "mine", "-f", "--trial", "1", *THERE], "-f follows the log of a study's driver on a cluster"),
        (["logs", "mine", "-f", "--json", *THERE], "--json prints one document"),
        (["submit", "quickstart", "-f", "--json", *THERE], "--json prints one document"),
    ],
)
def test_what_cannot_be_followed_is_refused(arguments: list[str], told: str) -> None:
    done = answer(*arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"error: {told}")
