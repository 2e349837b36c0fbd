"""What `study cluster up` says where parts take long to come up."""

import re
import sys
import time
from pathlib import Path

import pytest

from study.cluster.local import ClusterPart, LocalCluster
from study.home.folder import Home


def test_a_long_wait_is_told_once_with_the_load_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("study.cluster.local.SLOW_START_NOTICE_S", 0.0)
    cluster = LocalCluster.of_home(Home(tmp_path))
    cluster.path.mkdir()
    ready = time.monotonic() + 1.5

    def part(name: str) -> ClusterPart:
        command = [sys.executable, "-c", "import time; time.sleep(60)"]
        return ClusterPart(name, lambda: command, {}, lambda: name == "head" or time.monotonic() > ready)

    told: list[str] = []
    try:
        cluster._start_and_wait([part("mlflow"), part("head")], lambda text: told.append(str(text)))
        cluster._start_and_wait([part("node-1")], lambda text: told.append(str(text)))
    finally:
        cluster.stop_cluster()
    waits = [line for line in told if line.startswith("still waiting for ")]
    assert len(waits) == 1, told
    assert re.fullmatch(
        r"still waiting for mlflow(, head)?; this machine (is busy, with|has) a load of \d+\.\d on \d+ CPUs?", waits[0]
    )
