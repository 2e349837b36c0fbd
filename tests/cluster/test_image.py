"""The image: short, of one version, not root; and the scripts, by their linters."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cluster_files import CLUSTER, image_environment
from helpers import ROOT

DOCKERFILE = CLUSTER / "Dockerfile"
SCRIPTS = [CLUSTER / "ray-up" / "setup.sh", CLUSTER / "slurm" / "study.sbatch"]


def run(*command: str) -> "subprocess.CompletedProcess[str]":
    program = shutil.which(command[0], path=str(Path(sys.executable).parent)) or command[0]
    return subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=60)


def test_the_linter_says_nothing() -> None:
    done = run("hadolint", str(DOCKERFILE))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_linter_of_scripts_says_nothing(script: Path) -> None:
    done = run("shellcheck", str(script))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_image_is_of_one_version_and_not_root() -> None:
    text = DOCKERFILE.read_text(encoding="utf-8")
    assert re.search(r"^FROM python:\d+\.\d+\.\d+-", text, re.MULTILINE)
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == ["1000"]


def test_what_is_copied_is_there_and_nothing_else_is_sent() -> None:
    copied = set()
    for line in re.findall(r"^COPY (.*)$", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE):
        copied.update(line.split()[:-1])
    assert all((ROOT / path).exists() for path in copied)
    lines = (CLUSTER / "Dockerfile.dockerignore").read_text(encoding="utf-8").split()
    assert lines[0] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == copied


def test_a_node_wants_a_token_and_sends_no_statistics() -> None:
    environment = image_environment()
    assert environment["RAY_AUTH_MODE"] == "token"
    assert environment["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] == "1"
    assert environment["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] == "0"
    assert environment["RAY_USAGE_STATS_ENABLED"] == "0"
