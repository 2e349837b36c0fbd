"""A real cluster of several nodes: submitted to, watched, stopped, gone on with, and its nodes lost."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from command import Command
from ended import assert_nothing_was_lost, lost
from helpers import timeless
from ray.job_submission import JobSubmissionClient
from routes import PUBLIC, let_in, mlflow_lets_in, routes, spoken

from study.cluster.local import LocalCluster, node_part
from study.home.folder import Home
from study.home.record import StudyRecord

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SMALL = ["--set", "search.trials=6", "--set", "train.epochs=6", "--set", "search.confirm={top: 1, seeds: 2}"]
MINUTES = ["--set", "search.trials=40", "--set", "train.epochs=40", "--set", "search.early_stopping={}", *SMALL[4:]]
"""Long enough for a few commands to find it running."""


class Cluster:
    """The cluster, and the command in a shell that knows its token and MLflow."""

    def __init__(self, home: Path, work: Path) -> None:
        self.command = Command(home, work, patience=600)
        told = json.loads(self.command.done("cluster", "up", "--nodes", "2", "--json"))
        self.dashboard, self.address = told["dashboard"], told["address"]
        self.local = LocalCluster.of_home(Home(home))
        self.shell = self.local.client_environment()
        self.token = self.local.token_file.read_text(encoding="utf-8")
        self.shell["MLFLOW_TRACKING_PASSWORD"] = self.local.password_file.read_text(encoding="utf-8")

    def __call__(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self.command(*arguments, **self.shell)

    def there(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self(*arguments, "--address", self.dashboard)

    def secrets(self) -> list[bytes]:
        return [file.read_bytes() for file in (self.local.token_file, self.local.password_file)]

    def wait_for(self, name: str, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The status of a study, once a condition holds of it; Ray tells of its nodes with a delay of seconds."""
        deadline = time.monotonic() + self.command.patience
        while True:
            done = self.there("status", name, "--json")
            assert done.returncode == 0, done.stderr
            told: dict[str, Any] = json.loads(done.stdout)
            if condition(told):
                return told
            assert time.monotonic() < deadline, told

    def add_node(self, name: str) -> None:
        """One more, of one CPU."""
        self.local._start_and_wait([node_part(self.local, Home(self.command.home), name, 1, ())], print)

    def kill(self, name: str) -> None:
        """As when a machine loses its power."""
        next(one for one in self.local.processes if one.name == name).signal_group(signal.SIGKILL)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work"))
    yield found
    found.local.stop_cluster()


def test_a_study_from_submission_to_its_end(cluster: Cluster) -> None:
    """Submitted, seen, stopped, gone on with, followed to its end; MLflow has every trial once."""
    sent = cluster.there("submit", "quickstart", *MINUTES, "--json")
    assert sent.returncode == 0, sent.stderr
    assert json.loads(sent.stdout)["job"] == "study-quickstart"
    again = cluster.there("submit", "quickstart", *MINUTES)
    assert again.returncode == 2
    assert "was submitted already" in again.stderr
    cluster.command.wait_for("quickstart", lambda record: any(trial.n_epochs > 1 for trial in record.trials.values()))

    cluster.add_node("spare")
    cluster.wait_for("quickstart", lambda told: told["cluster"]["usage"] == {"CPU": {"used": 3.0, "there": 3.0}})
    cluster.kill("spare")
    cluster.wait_for("quickstart", lambda told: len(told["cluster"]["lost"]) == told["study"]["lost"] == 1)
    seen = cluster.there("status", "quickstart")
    assert (seen.returncode, seen.stderr) == (0, "")
    for words in (": running", "best  ", " to go", "1 lost since it began", " of 2 CPU", "Unexpected termination"):
        assert words in seen.stdout

    stopped = cluster.there("stop", "quickstart")
    assert stopped.returncode == 0, stopped.stderr
    status = json.loads(cluster.there("status", "quickstart", "--json").stdout)
    assert (status["job"]["state"], status["study"]["state"]) == ("stopped", "interrupted")
    assert status["cluster"]["nodes"] == 3

    gone_on = cluster.there("resume", "quickstart")
    assert gone_on.returncode == 0, gone_on.stderr
    followed = cluster.there("logs", "quickstart", "-f")
    assert followed.returncode == 0, followed.stdout + followed.stderr
    _, record = cluster.command.load("quickstart")
    assert record.state == "complete"
    assert {trial.state for trial in record.trials.values()} <= {"complete", "pruned"}
    rows = json.loads(cluster.there("list", "--json").stdout)
    assert [(row["name"], row["job"]) for row in rows] == [("quickstart", "succeeded")]
    trial = json.loads(cluster.there("logs", "quickstart", "--trial", "0", "--json").stdout)
    assert trial["events"][-1]["state"] == "complete"


ONE_TRIAL = ["--set", "search.trials=1", "--set", "train.epochs=1", "--set", "search.early_stopping={}"]
ONE_TRIAL += ["--set", "search.confirm={top: 0}"]


def test_what_ran_at_home_ran_already_and_is_read_there(cluster: Cluster) -> None:
    """The cluster has this home: nothing runs again, and what is proposed then works."""
    assert cluster.command("run", "quickstart", "--name", "mine", *ONE_TRIAL).returncode == 0
    told = cluster.there("submit", "quickstart", "--name", "mine", *ONE_TRIAL, "--follow").stdout
    assert "mine ran already" in told
    assert f"study fetch mine --address {cluster.dashboard}" in told
    for command in ("report", "status", "fetch"):
        done = cluster.there(command, "mine")
        assert done.returncode == 0, done.stderr
    again = cluster.there("submit", "quickstart", "--name", "mine", *ONE_TRIAL)
    assert "ran already" in again.stderr
    assert "study report mine" in again.stderr


def test_a_submission_that_failed_is_made_again(cluster: Cluster, tmp_path: Path) -> None:
    """Its data were not there, so that there is no study to go on with; a file without the fault may have its name."""
    shell = {**cluster.shell, "STUDY_DATA": str(tmp_path)}
    again = ["submit", "quickstart", "--name", "again", *ONE_TRIAL, "--follow", "--address", cluster.dashboard]
    wrong = cluster.command(*again, "--set", "data={name: biased_mnist}", "--env", "STUDY_DATA", **shell)
    assert wrong.returncode == 1
    assert "not found. `study data prepare NAME` downloads it" in wrong.stdout
    told = cluster.wait_for("again", lambda told: told["job"]["state"] == "failed")
    assert told["study"] is None
    assert "no such study" in told["reason"]
    seen = cluster.there("status", "again")
    assert (seen.returncode, seen.stderr) == (0, "")
    job, study, there = seen.stdout.splitlines()
    assert job.startswith("job       study-again: failed: ")
    assert "train-images-idx3-ubyte.gz: not found" in job
    assert "no such study" in study
    assert "3 nodes" in there
    right = cluster(*again)
    assert right.returncode == 0, right.stdout + right.stderr
    assert [trial.state for trial in cluster.command.load("again")[1].trials.values()] == ["complete"]


def test_data_are_prepared_on_the_head(cluster: Cluster, tmp_path: Path) -> None:
    """Where they would be downloaded, or here: where only their makers give them out, what is missing is told."""
    shell = {**cluster.shell, "STUDY_DATA": str(tmp_path)}
    prepare = ["data", "prepare", "waterbirds", "--address", cluster.dashboard, "--env", "STUDY_DATA"]
    there, here = cluster.command(*prepare, **shell), cluster.command(*prepare[:3], **shell)
    assert (there.returncode, here.returncode) == (1, 2)
    assert here.stderr.strip() in there.stdout
    digits = cluster.there("data", "prepare", "biased_digits", "--set", "rho=0.9", "--json")
    assert digits.returncode == 0, digits.stderr
    local = cluster("data", "prepare", "biased_digits", "--set", "rho=0.9", "--json")
    assert json.loads(digits.stdout) == json.loads(local.stdout)


def test_a_study_whose_jobs_the_head_forgot_is_submitted_again(cluster: Cluster) -> None:
    """As a head that was started anew has."""
    again = ["submit", "quickstart", "--name", "forgotten", *ONE_TRIAL, "--follow", "--address", cluster.dashboard]
    assert cluster(*again).returncode == 0
    client = JobSubmissionClient(cluster.dashboard, headers={"Authorization": f"Bearer {cluster.token}"})
    client.delete_job("study-forgotten")
    resumed = cluster.there("resume", "forgotten")
    assert resumed.returncode == 2
    assert "study submit of the same file goes on with it" in resumed.stderr
    assert cluster(*again).returncode == 0
    _, record = cluster.command.load("forgotten")
    assert (record.state, len(record.trials)) == ("complete", 1)


def test_the_doctor_looks_at_it(cluster: Cluster) -> None:
    """By its dashboard, and from within its network, where it also looks whether the nodes see the home."""
    for address, told in ((cluster.dashboard, "3 nodes"), (cluster.address, "all of them see")):
        done = cluster("doctor", "--address", address, "--json")
        (found,) = (one for one in json.loads(done.stdout)["checks"] if one["name"] == "Ray")
        assert found["state"] == "ok", found
        assert told in found["told"]
    done = cluster.command("doctor", "--address", cluster.dashboard, "--json")
    (found,) = (one for one in json.loads(done.stdout)["checks"] if one["name"] == "Ray")
    assert (done.returncode, found["state"]) == (1, "problem")
    assert "token" in found["told"]


def test_a_wrong_token_is_told_as_submit_tells_it_and_leaves_no_study(cluster: Cluster, tmp_path: Path) -> None:
    wrong = tmp_path / "token"
    wrong.write_text("wrong" * 10)
    wrong.chmod(0o600)
    shell = {**cluster.shell, "RAY_AUTH_TOKEN_PATH": str(wrong)}
    for words, address in (("run", cluster.address), ("submit", cluster.dashboard)):
        done = cluster.command(words, "quickstart", "--name", "refused", *ONE_TRIAL, "--address", address, **shell)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert done.stderr.startswith(f"error: --address {address}: refuses the token, or none was given.")
    right = cluster("run", "quickstart", "--name", "refused", *ONE_TRIAL, "--address", cluster.address)
    assert right.returncode == 0, right.stderr


def test_nodes_come_and_go_and_nothing_is_lost(cluster: Cluster) -> None:
    """One node dies in mid-trial, one joins late, then the other one dies: each trial ends once, and as it would have
    without: an epoch is the same wherever it runs.
    """
    given = ["--set", "search.sampler=random", "--set", "search.early_stopping={}", "--set", "train.epochs=120"]
    given += [*SMALL[:2], "--set", "search.confirm={top: 0}", "--address", cluster.address]
    calm = cluster("run", "quickstart", "--name", "calm", *given)
    assert calm.returncode == 0, calm.stderr
    stormy = cluster.command.start("run", "quickstart", "--name", "stormy", *given, **cluster.shell)
    cluster.command.wait_for("stormy", lambda record: sum(trial.n_epochs for trial in record.trials.values()) >= 6)
    cluster.kill("node-1")
    cluster.add_node("node-3")
    cluster.command.wait_for("stormy", lambda record: any(trial.attempt for trial in record.trials.values()))
    cluster.command.wait_for("stormy", lambda record: running(record) == 2)
    cluster.kill("node-2")
    out, err = stormy.communicate(timeout=600)
    assert stormy.returncode == 0, out + err

    (_, before), after = cluster.command.load("calm"), assert_nothing_was_lost(cluster.command.folder("stormy"))
    assert {number: timeless(trial.reports) for number, trial in after.trials.items()} == {
        number: timeless(trial.reports) for number, trial in before.trials.items()
    }
    events = lost(cluster.command.folder("stormy"))
    assert events
    assert all(event["kind"] == "PREEMPTED" and event.get("node_died") for event in events)


def running(record: StudyRecord) -> int:
    return sum(trial.state == "running" for trial in record.trials.values())


def listening(cluster: Cluster) -> set[tuple[str, int]]:
    """Where its processes take connections."""
    groups = {one.pid for one in cluster.local.processes}
    ours = [one for one in psutil.process_iter() if os.getpgid(one.pid) in groups]
    assert len(ours) > 10
    return {
        (connection.laddr.ip, connection.laddr.port)
        for one in ours
        for connection in one.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


def test_everything_listens_on_loopback_alone(cluster: Cluster) -> None:
    """Ray's own ports too, which by default do not."""
    open_to = {host for host, _ in listening(cluster)}
    assert open_to <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}, open_to


@pytest.fixture(scope="module")
def ray_routes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return routes("ray", tmp_path_factory.mktemp("ray"))


WRONG_TOKEN = f"Bearer {'wrong' * 10}"


@pytest.mark.parametrize("token", [None, WRONG_TOKEN])
def test_ray_answers_nobody_without_the_token(
    cluster: Cluster, ray_routes: dict[str, list[str]], token: str | None
) -> None:
    paths = ray_routes["dashboard"]
    assert {"/api/jobs/", "/api/jobs/1/logs", "/api/packages/1/1", "/api/cluster_status", "/nodes"} <= set(paths)
    assert let_in(cluster.dashboard, paths, PUBLIC["dashboard"], token) == []


@pytest.mark.parametrize("token", [None, WRONG_TOKEN])
def test_no_other_port_answers_without_the_token(
    cluster: Cluster, ray_routes: dict[str, list[str]], token: str | None
) -> None:
    """Each node has two agents that speak HTTP, and metrics for everybody; the other ports speak gRPC."""
    known = {urlsplit(server).port for server in (cluster.dashboard, cluster.local.mlflow)}
    found, agents = [], 0
    for host, port in sorted(listening(cluster)):
        answer = None if port in known else spoken(host, port)
        if answer and answer.status == 200 and answer.kind.startswith("text/plain; version="):
            assert not any(secret in answer.body for secret in cluster.secrets())
            found += let_in(f"http://{host}:{port}", PUBLIC["metrics"], PUBLIC["metrics"], token)
        elif answer:
            agents += 1
            found += let_in(f"http://{host}:{port}", ray_routes["agent"], PUBLIC["agent"], token)
    assert found == []
    assert agents >= 2 * len([one for one in cluster.local.living_processes() if one.name != "mlflow"])


def test_mlflow_answers_nobody_without_the_password(cluster: Cluster, tmp_path: Path) -> None:
    assert mlflow_lets_in(cluster.local.mlflow, tmp_path) == []


def test_the_secrets_are_nowhere_but_in_their_files(cluster: Cluster) -> None:
    """No argument of a process, log, study file, MLflow run or exported file has them."""
    local, home, secrets = cluster.local, cluster.command.home, cluster.secrets()
    for one in psutil.process_iter(["cmdline"]):
        told = " ".join(one.info["cmdline"] or ()).encode()
        assert not any(secret in told for secret in secrets), one
    kept = {local.token_file, local.password_file, local.path / "mlflow-auth.ini"}
    for folder in (home, Path(local.scratch)):
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink() and path not in kept:
                assert not any(secret in path.read_bytes() for secret in secrets), path
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept)
