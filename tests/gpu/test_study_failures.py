"""Real studies on a simulated card: too little memory for four trials, a driver that is killed, a card that breaks."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from command import Command
from simulated_gpu import gpu_environment, missing

from study.home.ledger import read_entries
from study.home.record import StudyRecord

pytestmark = [pytest.mark.skipif(bool(missing()), reason=str(missing())), pytest.mark.timeout(900)]

FUNCTION = """\
import time

import torch


def train(config, epochs):
    held = torch.empty(config["mib"] << 20, dtype=torch.uint8, device="cuda")
    for epoch in range(epochs):
        held[:10] * 2
        time.sleep(config["pause"])
        share = torch.cuda.get_per_process_memory_fraction(0)
        yield {"val/accuracy": config["mib"] / 10000, "val/share": share, "val/cards": torch.cuda.device_count()}
"""

STUDY = """\
name: crowd
method: {name: own_function, function: crowd:train, pause: PAUSE}
train: {epochs: 3}
search:
  space:
    method.mib: {choices: [100, 300, 900, 3000]}
  sampler: grid
  early_stopping: {}
  confirm: {top: 0}
resources: {cpu: 0.25, gpu: 0.25}
"""

Make = Callable[[float], Command]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A command whose working folder has a study of four trials, on one card or a quarter of it each."""

    def command(pause: float) -> Command:
        (tmp_path / "crowd.py").write_text(FUNCTION)
        (tmp_path / "crowd.yaml").write_text(STUDY.replace("PAUSE", str(pause)))
        return Command(tmp_path / "home", tmp_path)

    return command


@pytest.mark.slow
def test_a_trial_that_its_share_does_not_suffice_for_runs_alone_on_the_whole_card(make: Make) -> None:
    """Of 2,000 MiB four trials have 500 each, of which a tenth is CUDA's: 900 fit alone, 3,000 do not."""
    command = make(0.2)
    command.done("run", "crowd.yaml", **gpu_environment(gpus=1, mib=2000))
    record = StudyRecord.load(command.folder("crowd").ledger_file)
    trials = {trial.params["method.mib"]: trial for trial in record.trials.values()}
    assert {mib: trial.state for mib, trial in trials.items()} == {
        100: "complete",
        300: "complete",
        900: "complete",
        3000: "failed",
    }
    assert trials[3000].failure_kind == "OOM"
    assert {mib: (trial.attempt, trial.needs_gpu_alone) for mib, trial in trials.items()} == {
        100: (0, False),
        300: (0, False),
        900: (1, True),
        3000: (1, True),
    }
    shares = {mib: trial.reports[-1]["val/share"] for mib, trial in trials.items() if trial.reports}
    assert shares == pytest.approx({100: 0.225, 300: 0.225, 900: 1.0}, abs=1e-3)
    assert {trial.reports[-1]["val/cards"] for trial in trials.values() if trial.reports} == {1}
    alone: set[int] = set()
    running: set[int] = set()
    for event in read_entries(command.folder("crowd").ledger_file):
        if event["event"] == "started":
            running.add(event["trial"])
            assert not alone & running or len(running) == 1, "another runs beside one that is to be alone"
        elif event["event"] in ("ended", "lost"):
            running.discard(event["trial"])
        if event["event"] == "lost":
            assert (event["kind"], event["alone"]) == ("OOM", True)
            alone.add(event["trial"])


@pytest.mark.long
def test_after_a_killed_driver_nothing_holds_the_card_and_a_broken_card_ends_the_study_until_it_is_mended(
    make: Make, tmp_path: Path
) -> None:
    command, broken = make(1.0), tmp_path / "broken"
    environment = gpu_environment(gpus=1, mib=20000, SIMULATED_GPU_ERROR=f"214:{broken}")
    killed = command.start("run", "crowd.yaml", **environment)
    command.wait_for("crowd", lambda record: any(trial.n_epochs for trial in record.trials.values()))
    assert holders(command.home)
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    deadline = time.monotonic() + 60
    while left := holders(command.home):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)

    going_on = command.start("resume", "crowd", **environment)
    command.wait_for(
        "crowd",
        lambda record: len(record.sessions) == 2 and any(trial.state == "running" for trial in record.trials.values()),
    )
    broken.touch()
    _, error = going_on.communicate(timeout=command.patience)
    assert going_on.returncode == 1
    assert "no node is left that trials can run on: " in error
    assert "CUDA error: uncorrectable ECC error encountered. Remedy: look for Xid in `dmesg`" in error
    assert "study resume crowd" in error
    record = StudyRecord.load(command.folder("crowd").ledger_file)
    assert record.state == "interrupted"
    assert record.unusable_nodes
    assert all(trial.state != "failed" and not trial.n_retries_used for trial in record.trials.values())

    broken.unlink()
    command.done("resume", "crowd", **environment)
    record = StudyRecord.load(command.folder("crowd").ledger_file)
    assert [trial.state for trial in record.trials.values()] == ["complete"] * 4
    assert not record.unusable_nodes


def holders(home: Path) -> list[str]:
    """The processes of a home's studies: with them ends what they hold of the card."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        if (process.info["environ"] or {}).get("STUDY_HOME") == str(home):
            found.append(" ".join(process.info["cmdline"] or []) or str(process.pid))
    return found
