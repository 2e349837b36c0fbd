"""Trials on nodes with GPUs: where they are placed, what they run on, and what becomes of a node whose GPU is no use.

Ray and the nodes are real, the cards are simulated: one node has a card, the other says it has one and has no CUDA.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from simulated_gpu import ROOT, gpu_environment, missing

from study.home.folder import StudyFolder
from study.home.ledger import read_entries
from study.home.ledger_line import Entry
from study.upstream.environment import ProcessKind, variables_of_processes

pytestmark = [pytest.mark.skipif(bool(missing()), reason=str(missing())), pytest.mark.long]

SCRIPT = """
import json, os, sys
from study.upstream.environment import KEEP_LOOPBACK_VARIABLES

os.environ |= KEEP_LOOPBACK_VARIABLES
import ray
from ray.cluster_utils import Cluster
from study import data
from study.errors import StudyStoppedError, UserError
from study.home.folder import Home
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.spec import load_study
from study.sweep import nodes
from study.sweep.driver import drive_study

simulated, told = json.loads(sys.argv[1]), {}
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "num_gpus": 0, "node_ip_address": "127.0.0.1"})
for label, variables in (("H100", simulated), ("T4", {})):
    cluster.add_node(
        num_cpus=2, num_gpus=1, labels={"ray.io/accelerator-type": label}, env_vars=variables,
        node_ip_address="127.0.0.1",
    )
nodes.NODE_JOIN_TIMEOUT_S = 1.0

def study(name, *assignments):
    spec = load_study("devices.yaml", assignments, name=name)
    home, told[name] = Home.locate(), []
    folder = home.create_study(spec)
    datasets, ledger = data.load_datasets(spec.trial_data_sections), Ledger(folder.ledger_file)
    try:
        drive_study(
            folder,
            spec,
            datasets,
            ledger,
            StudyRecord.load_without_closing(folder.ledger_file),
            cluster.address,
            told[name].append,
        )
    except (StudyStoppedError, UserError) as problem:
        told[name].append(f"{type(problem).__name__}: {problem}")
    ledger.close()

study("both", "method.wait=true")
study("kind", "resources.accelerator=H100", "search.trials=2")
study("none", "resources.accelerator=T4")
study("other", "resources.accelerator=H10")
cluster.shutdown()
print(json.dumps(told))
"""


FUNCTION = """
import os
import time
from pathlib import Path

import torch


def train(config, epochs):
    ledger, end = Path(os.environ["STUDY_HOME"]) / "both" / "ledger.jsonl", time.monotonic() + 120
    while config["wait"] and '"unusable"' not in ledger.read_text() and time.monotonic() < end:
        time.sleep(0.1)  # a quick trial would leave nothing for the other node to be tried with
    for epoch in range(epochs):
        torch.ones(100, device="cuda").sum()
        yield {"val/accuracy": config["rate"]}
"""

STUDY = """
name: devices
method: {name: own_function, function: function_of_devices:train, wait: false}
train: {epochs: 2}
resources: {cpu: 0.5, gpu: 0.5}
search:
  space:
    method.rate: {low: 0.01, high: 1.0}
  trials: 4
  sampler: random
  early_stopping: {}
  confirm: {top: 0}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """The home in which the studies ran, and what each said."""
    home, work = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work")
    (work / "function_of_devices.py").write_text(FUNCTION)
    (work / "devices.yaml").write_text(STUDY)
    simulated = {"LD_PRELOAD": gpu_environment()["LD_PRELOAD"], "SIMULATED_GPUS": "1", "SIMULATED_GPU_MIB": "8000"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(simulated)],
        capture_output=True,
        text=True,
        timeout=400,
        cwd=work,
        env={
            **os.environ,
            **variables_of_processes(ProcessKind.DRIVER, ProcessKind.LOCAL_NODE),
            "RAY_JEMALLOC_LIB_PATH": "",  # else Ray's own library is preloaded in place of the simulated device
            "STUDY_HOME": str(home),
            "PYTHONPATH": f"{ROOT}{os.pathsep}{work}",
        },
    )
    assert done.returncode == 0, done.stderr
    return home, json.loads(done.stdout.splitlines()[-1])


def events(home: Path, name: str, kind: str) -> list[Entry]:
    return [event for event in read_entries(StudyFolder(home / name).ledger_file) if event["event"] == kind]


@pytest.mark.timeout(500)
def test_a_node_without_a_usable_gpu_is_named_and_the_study_runs_on_the_others(ran: Any) -> None:
    home, told = ran
    assert not any(text.startswith("warning: function_of_devices.py has changed") for text in told["both"])
    (unusable,) = events(home, "both", "unusable")
    assert "Found no NVIDIA driver" in unusable["reason"]
    assert "Remedy: check that nvidia-smi works" in unusable["reason"]
    assert any(f"{unusable['node']} is not used: {unusable['reason']}" == text for text in told["both"])
    assert events(home, "both", "closed")[-1]["state"] == "complete"
    devices = [event["device"] for event in events(home, "both", "started")]
    assert len(devices) >= 4
    assert all(device["name"].startswith("NVIDIA H100") for device in devices)
    assert all(device["capability"] == "9.0" and device["cuda"] for device in devices)
    assert all(event.get("node_died") for event in events(home, "both", "lost"))


def test_a_kind_of_gpu_is_where_trials_run(ran: Any) -> None:
    """No trial begins on the other node, whose GPU would not do."""
    home, _ = ran
    assert events(home, "kind", "unusable") == []
    assert [event["device"]["capability"] for event in events(home, "kind", "started")] == ["9.0", "9.0"]
    assert events(home, "kind", "closed")[-1]["state"] == "complete"


def test_a_study_ends_where_no_node_is_left_and_nothing_is_lost(ran: Any) -> None:
    home, told = ran
    assert told["none"][-1].startswith("StudyStoppedError: no node is left that trials can run on: ")
    assert told["none"][-1].endswith("Nothing is lost; go on with it: study resume none")
    assert events(home, "none", "closed")[-1]["state"] == "interrupted"
    assert events(home, "none", "ended") == []


def test_a_kind_that_the_cluster_has_not_is_refused(ran: Any) -> None:
    home, told = ran
    assert (
        "accelerator: H10: no node of the cluster has it; Did you mean 'H100'? there are: H100, T4" in told["other"][-1]
    )
    assert told["other"][-1].startswith("UserError")
    assert events(home, "other", "trial") == []
