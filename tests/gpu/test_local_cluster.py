"""`study cluster up --gpus`: two simulated cards, one on each of two real nodes, and a study that shares them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Command
from simulated_gpu import gpu_environment, missing

from study.cluster.local import LocalCluster
from study.home.folder import Home

pytestmark = [pytest.mark.skipif(bool(missing()), reason=str(missing())), pytest.mark.long, pytest.mark.timeout(900)]

MODULE = """\
import os
import time
from pathlib import Path

import ray
import torch

CARDS = Path("{cards}")


def train(config, epochs):
    patience = time.monotonic() + 120
    for epoch in range(epochs):
        assert torch.cuda.device_count() == 1
        torch.ones(1 << 20, device="cuda").sum()
        node = float(int(ray.get_runtime_context().get_node_id()[:8], 16))
        card = float(os.environ["CUDA_VISIBLE_DEVICES"])
        (CARDS / str(card)).touch()
        while len(os.listdir(CARDS)) < 2 and time.monotonic() < patience:
            time.sleep(0.1)  # two trials fill a card; quicker ones might all have gone to one
        yield {{"val/accuracy": config["rate"], "val/card": card, "val/node": node}}
"""

STUDY = """\
name: cards
method: {name: own_function, function: function_of_this_test:train}
train: {epochs: 2}
resources: {cpu: 0.5, gpu: 0.5}
search:
  space:
    method.rate: {low: 0.01, high: 1.0}
  trials: 8
  sampler: random
  early_stopping: {}
  confirm: {top: 0}
"""


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    (tmp_path / "function_of_this_test.py").write_text(MODULE.format(cards=tmp_path / "cards"))
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards.yaml").write_text(STUDY)
    yield Command(tmp_path / "home", tmp_path, patience=600)
    LocalCluster.left(Home(tmp_path / "home")).stop()


def test_each_card_is_on_one_node_and_trials_share_it(command: Command) -> None:
    environment = gpu_environment(gpus=2, mib=8000)
    simulated = {key: environment[key] for key in environment if key.startswith(("LD_", "SIMULATED_"))}
    simulated["PYTHONPATH"] = f"{environment['PYTHONPATH']}:{command.work}"
    refused = command("cluster", "up", "--gpus", "3", **simulated)
    assert (refused.returncode, refused.stderr) == (2, "error: --gpus 3: this machine has 2\n")
    assert not (command.home / ".cluster").exists()

    out = command.done("cluster", "up", "--nodes", "2", "--gpus", "2", "--json", **simulated)
    address = json.loads(out)["dashboard"]
    shell = {**LocalCluster.of(Home(command.home)).environment(), "PYTHONPATH": simulated["PYTHONPATH"]}
    command.done("submit", "cards.yaml", "--address", address, "--follow", **shell)

    _, record = command.load("cards")
    assert [trial.state for trial in record.trials.values()] == ["complete"] * 8
    places = {(report["val/card"], report["val/node"]) for trial in record.trials.values() for report in trial.reports}
    assert {card for card, _ in places} == {0.0, 1.0}
    assert len({node for _, node in places}) == len(places) == 2
    devices = {(trial.device or {}).get("name") for trial in record.trials.values()}
    assert devices == {"NVIDIA H100 80GB HBM3 (simulated)"}
