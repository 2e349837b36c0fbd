"""A laptop that shares nothing with a real cluster but its token, each with a home of its own: it computes there, reads
the studies there and fetches them."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from command import Command

from study.cluster.dashboard import ClusterDashboard, NodeNotFoundError, RemoteFileNotFoundError
from study.cluster.local import LocalCluster
from study.home.folder import Home
from study.upstream import ray_internals

pytestmark = pytest.mark.timeout(900)

SMALL = ["--set", "search.trials=1", "--set", "train.epochs=2", "--set", "search.early_stopping={}"]
SMALL += ["--set", "search.confirm={top: 0}"]


class Laptop:
    """A cluster and, with a home of its own, the command on a laptop."""

    def __init__(self, folder: Path) -> None:
        for name in ("cluster", "laptop", "work"):
            (folder / name).mkdir()
        self.cluster = Command(folder / "cluster", folder / "work", patience=600)
        up = self.cluster.done("cluster", "up", "--nodes", "1", "--json")
        self.url = json.loads(up)["dashboard"]
        self.local = LocalCluster.of_home(Home(self.cluster.home))
        self.command = Command(folder / "laptop", folder / "work", patience=600)
        self.shell = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.local.token_file)}

    def __call__(self, *arguments: str) -> str:
        """What a command that has to succeed prints."""
        return self.command.done(*arguments, **self.shell, STUDY_ADDRESS=self.url)

    def refused(self, *arguments: str) -> str:
        """What a command that is refused says."""
        done = self.command(*arguments, **self.shell, STUDY_ADDRESS=self.url)
        assert (done.returncode, done.stdout) == (2, ""), done.stdout + done.stderr
        return done.stderr

    def status_of(self, url: str, token: str | None) -> int:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            return error.code


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Laptop]:
    found = Laptop(tmp_path_factory.mktemp("there"))
    yield found
    found.local.stop_cluster()


@pytest.mark.long
def test_a_study_is_confirmed_ablated_trained_and_removed(laptop: Laptop) -> None:
    """Nothing of it is left for the tests that follow."""
    home, address = Home(laptop.cluster.home), f"--address {laptop.url}"
    submitted = laptop("submit", "quickstart", *SMALL, "--set", "search.trials=3", "--follow")
    assert str(home.path) not in submitted
    assert "study ui" not in submitted
    assert f"study export quickstart -o best.yaml {address}" in submitted

    too_many = laptop.refused("confirm", "quickstart", "--top", "50", "-f")
    assert too_many.startswith("error: --top 50: quickstart has ")
    laptop("confirm", "quickstart", "--top", "1", "--seeds", "2", "--follow")
    plan = json.loads(laptop("ablate", "quickstart", "--dry-run", "--json"))
    assert plan["name"] == "quickstart"

    laptop("export", "quickstart", "-o", "found.yaml")
    trained = laptop("train", "found.yaml", "--seeds", "6", "--epochs", "1", "--follow")
    assert f"study fetch quickstart-final --models {address}" in trained
    assert home.find_study("quickstart-final").model_file(0).is_file()
    again = laptop.refused("train", "found.yaml", "--seeds", "7", "--epochs", "2", "-f")
    assert again.startswith("error: quickstart-final: exists already")

    for name in ("quickstart", "quickstart-final"):
        assert laptop("delete", name, "--yes") == f"{name}: removed\n"
    assert home.list_studies() == []
    assert json.loads(laptop("list", "--json")) == []
    gone = laptop.refused("delete", "quickstart", "--yes")
    assert (gone.count("\n"), gone.startswith("error: quickstart: no such study")) == (1, True)
    assert Home(laptop.command.home).list_studies() == []


@pytest.mark.slow
def test_a_study_is_submitted_read_and_fetched(laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    laptop("submit", "quickstart", "--name", "mine", *SMALL, "--follow")
    assert json.loads(laptop("status", "mine", "--json"))["study"]["state"] == "complete"
    (row,) = json.loads(laptop("list", "--json"))
    assert (row["name"], row["state"], row["job"]) == ("mine", "complete", "succeeded")
    assert json.loads(laptop("logs", "mine", "--trial", "0", "--json"))["events"][-1]["state"] == "complete"
    laptop("export", "mine", "-o", "best.yaml")
    assert json.loads(laptop("list", "--address", "local", "--json")) == []

    brought = json.loads(laptop("fetch", "mine", "--json"))
    assert {"study.yaml", "ledger.jsonl", "best.yaml", "report/report.html"} <= {*brought["files"]}
    here, there = laptop.command.folder("mine"), laptop.cluster.folder("mine")
    assert here.ledger_file.read_bytes() == there.ledger_file.read_bytes()
    assert here.best_file.read_bytes() == there.best_file.read_bytes()
    assert json.loads(laptop("fetch", "mine", "--json"))["files"] == []

    for name, value in laptop.shell.items():
        monkeypatch.setenv(name, value)
    head = ClusterDashboard(laptop.url)
    (job,) = head.driver_jobs()
    assert job.node is not None
    for _ in range(20):  # now and then Ray's answer is empty
        with pytest.raises(RemoteFileNotFoundError):
            next(head.read_log_file(job.node, "study/mine/folder/nothing"))
    with pytest.raises(NodeNotFoundError):
        next(head.read_log_file("0" * 56, "study/mine/manifest.json"))
    last = b"".join(head.read_log_file(job.node, "study/mine/folder/ledger.jsonl", lines=2))
    assert last == b"".join(there.ledger_file.read_bytes().splitlines(keepends=True)[-2:])
    reading_needs_the_token(laptop, job.node)


def reading_needs_the_token(laptop: Laptop, node: str) -> None:
    """Also at a node's own agent, whose file server does not follow the link."""
    token, name = laptop.local.token_file.read_text(encoding="utf-8"), "study/mine/folder/study.yaml"
    query = urlencode({"node_id": node, "filename": name, "lines": -1})
    url = f"{laptop.url}{ray_internals.DASHBOARD_LOG_FILE_PATH}?{query}"
    assert [laptop.status_of(url, given) for given in (token, None, "w" * 64)] == [200, 401, 403]
    request = urllib.request.Request(
        laptop.url + ray_internals.DASHBOARD_NODES_PATH, headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        (port,) = (
            one["raylet"]["dashboardAgentListenPort"]
            for one in json.load(answer)["data"]["summary"]
            if one["raylet"]["nodeId"] == node
        )
    agent = f"http://127.0.0.1:{port}/logs"
    assert [laptop.status_of(f"{agent}/", given) for given in (token, None, "w" * 64)] == [200, 401, 403]
    assert [laptop.status_of(f"{agent}/{name}", given) for given in (token, None)] == [404, 401]


@pytest.mark.long
def test_a_study_that_was_no_job_is_fetched_by_one(laptop: Laptop) -> None:
    """Nobody has made a window for it: a job does."""
    address = json.loads(laptop.cluster("cluster", "status", "--json").stdout)["address"]
    laptop.cluster.done("run", "quickstart", "--name", "within", *SMALL, "--address", address, **laptop.shell)
    laptop("fetch", "within")
    assert laptop.command.load("within")[1].state == "complete"
    refused = laptop.command("fetch", "nothing", **laptop.shell, STUDY_ADDRESS=laptop.url)
    assert refused.returncode == 2
    assert "nothing: no such study" in refused.stderr
    assert not (laptop.command.home / "nothing").exists()
