"""`study doctor` on this machine, and on one thing after the other gone wrong."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import ROOT, Told, quickstart, write_ledger
from ray._private.authentication_test_utils import reset_auth_token_state
from servers import answering, closed_port
from typer.testing import CliRunner

from study import doctor
from study.cli import app
from study.doctor import health_checks
from study.doctor.health_checks import Finding, run_isolated_check
from study.home.folder import Home
from study.text import redact_credentials
from study.tracking.connection import connect_to_mlflow


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in ("MLFLOW_TRACKING_URI", "RAY_AUTH_TOKEN_PATH", "RAY_AUTH_TOKEN", "RAY_AUTH_MODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    reset_auth_token_state()  # Ray keeps the mode that another test of this process gave it
    return Home(tmp_path / "home")


def test_all_of_this_machine(home: Home) -> None:
    """It makes nothing, answers as one document, and its exit status is what the findings say."""
    told = doctor.findings_document(doctor.run_checks())
    names = [one["name"] for one in told["checks"]]
    for name in ("python", "libraries", "torch", "torchvision", "GPUs", "CPUs", "memory", "home", "MLflow", "Ray"):
        assert name in names
    assert {"disk, home", "disk, data", "disk, temporary"} <= set(names)
    assert json.loads(json.dumps(told)) == told
    assert not home.path.exists()
    shown = doctor.findings_text(told)
    for one in told["checks"]:
        assert f"{one['state']:<8} {one['name']}" in shown
        assert (one["remedy"] or "") in shown
        assert one["state"] != "problem", one


@pytest.mark.slow
def test_a_broken_torch_is_told_of_not_stumbled_over(home: Home, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.1: cannot open shared object file')\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, "-m", "study", "doctor", "--json"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)["checks"]
    (found,) = (one for one in told if one["name"] == "torch")
    assert "libcudart.so.1" in found["told"]
    assert "pip install" in found["remedy"]
    assert {one["name"]: one["state"] for one in told}["python"] == "ok"
    assert done.stderr == ""


def test_a_problem_is_exit_status_1(home: Home) -> None:
    home.create_study(quickstart())
    (home.path / "format").write_text('{"format": 3, "study": "9.8.7"}')
    done = CliRunner().invoke(app, ["doctor", "--json"])
    assert done.exit_code == 1
    told = json.loads(done.stdout)
    (found,) = (one for one in told["checks"] if one["name"] == "home")
    assert (told["state"], found["state"]) == ("problem", "problem")
    assert "Use study 9.8.7 there" in found["told"]


def breaks() -> Iterator[Finding]:
    yield Finding("first", "ok", "was fine")
    raise RuntimeError("a library\nis broken")


def hangs() -> Iterator[Finding]:
    time.sleep(5)
    yield Finding("late", "ok", "too late")


def test_a_look_that_raises_or_hangs_harms_no_other() -> None:
    first, broken = run_isolated_check("it", breaks)
    assert (first.state, broken.state, broken.told) == ("ok", "problem", "RuntimeError: a library is broken")
    (hung,) = run_isolated_check("it", hangs, timeout_s=0.1)
    assert (hung.name, hung.state, hung.told) == ("it", "problem", "no answer within 0 s")


def test_a_home_and_its_studies(home: Home) -> None:
    assert [one.state for one in health_checks.home_findings(home)] == ["ok"]
    write_ledger(home.create_study(quickstart("name=one")).ledger_file, Told("baseline", [0.5]))
    home.create_study(quickstart("name=two")).ledger_file.write_text("no event\n")
    whole, damaged = health_checks.home_findings(home)
    assert "writable, form 2, 2 studies" in whole.told
    assert damaged.state == "problem"
    assert damaged.told.startswith("two: ")
    assert "study delete two --yes" in (damaged.remedy or "")
    home.path.rename(home.path.with_name("elsewhere"))
    home.path.write_text("a file")
    (found,) = health_checks.home_findings(home)
    assert (found.state, found.remedy) == ("problem", "another home: STUDY_HOME=...")


@pytest.mark.slow
@pytest.mark.parametrize(("status", "told"), [(401, "does not accept the user name and password"), (500, "500")])
def test_an_mlflow_that_refuses(home: Home, monkeypatch: pytest.MonkeyPatch, status: int, told: str) -> None:
    with answering(status) as uri:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
        (found,) = health_checks.mlflow_findings(home)
    assert found.state == "problem"
    assert told in found.told
    assert redact_credentials(uri) in found.told
    assert "secret" not in f"{found}"


def test_an_mlflow_that_is_not_there_yet_is_not_made(home: Home) -> None:
    (found,) = health_checks.mlflow_findings(home)
    assert (found.state, "not there yet" in found.told) == ("ok", True)
    assert not home.path.exists()


@pytest.mark.slow
def test_the_homes_own_database(home: Home) -> None:
    home.path.mkdir()
    connect_to_mlflow(home.tracking_uri)
    (found,) = health_checks.mlflow_findings(home)
    assert (found.state, found.told) == ("ok", f"{home.database_file}: answers")
    home.database_file.write_bytes(b"no database" * 100)
    (found,) = health_checks.mlflow_findings(home)
    assert (found.state, str(home.database_file) in found.told) == ("problem", True)


@pytest.mark.slow
def test_clusters_that_cannot_be_used(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with closed_port() as port:
        for address, told in (
            (f"127.0.0.1:{port}", f"--address 127.0.0.1:{port}: nothing answers there"),
            (f"http://127.0.0.1:{port}", "no Ray dashboard answers there"),
            ("10.0.0.1:6379", "no token is given"),
            ("nonsense", "allowed: auto, HOST:PORT"),
        ):
            (found,) = health_checks.ray_findings(home, address)
            assert found.state == "problem"
            assert told in found.told
    with answering(401) as uri:
        (found,) = health_checks.ray_findings(home, redact_credentials(uri))
    assert "refuses the token" in found.told
    token = home.path.with_name("token")
    token.write_text("x" * 64)
    token.chmod(0o644)
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(token))
    (found,) = health_checks.ray_findings(home, None)
    assert (found.state, "others can read this token: chmod 600" in found.told) == ("problem", True)
