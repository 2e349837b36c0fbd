"""Two cards that trials share by quarters: through `study run`, Ray and workers as they are, on simulated cards."""

from collections import Counter
from pathlib import Path

import pytest
from command import Command
from simulated_gpu import gpu_environment, missing

from study.home.ledger import read_entries

pytestmark = [pytest.mark.skipif(bool(missing()), reason=str(missing())), pytest.mark.slow, pytest.mark.timeout(600)]

MODULE = """\
import os
import pathlib
import time
import torch

STARTED = pathlib.Path(__file__).with_name("started")


def train(config, epochs):
    STARTED.mkdir(exist_ok=True)
    (STARTED / str(config["rate"])).touch()
    while len(list(STARTED.iterdir())) < 5:  # one card has room for four: a fifth starts on the other
        time.sleep(0.05)
    for epoch in range(epochs):
        assert torch.cuda.device_count() == 1
        torch.ones(1 << 20, device="cuda").sum()
        yield {"val/accuracy": config["rate"], "val/card": float(os.environ["CUDA_VISIBLE_DEVICES"])}
"""

STUDY = """\
name: shares
method: {name: own_function, function: function_of_this_test:train}
train: {epochs: 3}
resources: {cpu: 0.25, gpu: 0.25}
search:
  space:
    method.rate: {low: 0.01, high: 1.0}
  trials: 16
  sampler: random
  early_stopping: {}
  confirm: {top: 0}
"""


def test_each_trial_has_one_card_which_four_share_at_most(tmp_path: Path) -> None:
    (tmp_path / "function_of_this_test.py").write_text(MODULE)
    (tmp_path / "shares.yaml").write_text(STUDY)
    command, environment = Command(tmp_path / "home", tmp_path, patience=500), gpu_environment(gpus=2, mib=8000)
    changed = {key: environment[key] for key in environment if key.startswith(("LD_", "SIMULATED_", "PYTHONPATH"))}
    command.done("run", "shares.yaml", **changed)
    _, record = command.load("shares")
    cards = {number: {report["val/card"] for report in trial.reports} for number, trial in record.trials.items()}
    assert len(cards) == 16
    assert all(len(one) == 1 for one in cards.values())
    assert set.union(*cards.values()) == {0.0, 1.0}
    running: Counter[float] = Counter()
    for event in read_entries(command.folder("shares").ledger_file):
        if event["event"] in ("started", "ended"):
            (card,) = cards[event["trial"]]
            running[card] += 1 if event["event"] == "started" else -1
            assert running[card] <= 4
    assert not +running
    devices = {
        event["device"]["name"]
        for event in read_entries(command.folder("shares").ledger_file)
        if event["event"] == "started"
    }
    assert devices == {"NVIDIA H100 80GB HBM3 (simulated)"}
