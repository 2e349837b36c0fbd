"""The settings of Ray and MLflow: one table, and the files that run without the package agree with it."""

import os
import re
import runpy
from pathlib import Path

import pytest
from cluster_files import CLUSTER, image_environment
from helpers import ROOT

from study.upstream.environment import (
    VARIABLES_OF_PROCESS_KINDS,
    ProcessKind,
    set_variables_here,
    variables_of_processes,
)


@pytest.mark.parametrize("part", ProcessKind)
def test_no_part_gets_a_variable_twice(part: ProcessKind) -> None:
    names = [setting.variable for setting in VARIABLES_OF_PROCESS_KINDS if part in setting.process_kinds]
    assert sorted(names) == sorted(set(names))
    assert names


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in variables_of_processes(ProcessKind.MLFLOW_CLIENT):
        monkeypatch.setenv(name, "the user's")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "")  # so that what is set below is taken back
    monkeypatch.delenv("MLFLOW_DISABLE_TELEMETRY")
    set_variables_here(ProcessKind.MLFLOW_CLIENT)
    there = {name: os.environ[name] for name in variables_of_processes(ProcessKind.MLFLOW_CLIENT)}
    assert there == dict.fromkeys(there, "the user's") | {"MLFLOW_DISABLE_TELEMETRY": "true"}


def test_the_server_of_the_ready_files_has_the_values_of_the_table() -> None:
    """It runs alone, on a machine without this package."""
    settings = runpy.run_path(str(CLUSTER / "mlflow_server.py"))["SETTINGS"]
    assert variables_of_processes(ProcessKind.MLFLOW_SERVER).items() <= settings.items()


def test_the_image_has_the_values_of_the_table() -> None:
    assert variables_of_processes(ProcessKind.NODE).items() <= image_environment().items()


@pytest.mark.parametrize(
    ("file", "without"), [("ray-up/setup.sh", set()), ("slurm/study.sbatch", {"RAY_JOB_STOP_WAIT_TIME_S"})]
)
def test_the_scripts_have_the_values_of_the_table(file: str, without: set[str]) -> None:
    """A batch of Slurm has its driver in it, and needs none of Ray's jobs."""
    text = (CLUSTER / file).read_text(encoding="utf-8")
    exported = dict(re.findall(r"\b([A-Z_]+)=(\S+)", " ".join(re.findall(r"^export (.*)$", text, re.MULTILINE))))
    wanted = {name: value for name, value in variables_of_processes(ProcessKind.NODE).items() if name not in without}
    assert wanted.items() <= exported.items()


def test_no_other_module_writes_them() -> None:
    names = re.compile("|".join(rf"\b{setting.variable}\b" for setting in VARIABLES_OF_PROCESS_KINDS))
    table = ROOT / "study" / "upstream" / "environment.py"
    others = [path for path in (ROOT / "study").rglob("*.py") if path != table]
    assert [str(path) for path in others if names.search(Path(path).read_text(encoding="utf-8"))] == []
