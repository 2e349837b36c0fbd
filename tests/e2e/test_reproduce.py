"""`study reproduce` on a part of a paper's grid, run for real on small digits: cut off, then to its end."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Command
from data_files import write_mnist

TABLE, ROW, SEEDS = "fairkl-table12", "0.999", [0, 7]
SMALL = ["--profile", "cpu", "--seeds", "7,0", "--set", f"search.space.data.rho.choices=[{ROW}]"]
SMALL += ["--set", "train.epochs=2", "--set", "search.concurrency=1"]


@pytest.fixture
def command(make_command: Callable[[], Command], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    write_mnist(tmp_path, train=30)
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    return make_command()


def cells(command: Command) -> dict[tuple[str, str], dict[str, Any]]:
    """What `--report --json` says of each cell; nothing else is on standard output."""
    done = command("reproduce", TABLE, "--report", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return {(one["row"], one["column"]): one for one in json.loads(done.stdout)["cells"]}


@pytest.mark.slow
def test_a_table_that_was_cut_off_is_partly_there_and_then_whole(command: Command) -> None:
    process = command.start("reproduce", TABLE, *SMALL, SABOTAGE='{"slow": 0.3}')
    command.wait_for(TABLE, lambda record: [one.state for one in record.trials.values()].count("complete") > 2)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert f"study resume {TABLE}" in out
    partly = {place: one["last_epoch"] for place, one in cells(command).items() if one["last_epoch"]}
    out = command.done("reproduce", TABLE, *SMALL)
    assert f"Budget: Biased-MNIST, lenet, 2 epochs, 2 seeds ({', '.join(map(str, SEEDS))})" in out
    assert f"| {ROW} | ours | " in out
    whole = cells(command)
    assert {place for place, one in whole.items() if one["missing"] is None} == {at for at in whole if at[0] == ROW}
    assert {one["missing"] for place, one in whole.items() if place[0] != ROW} == {"not run"}
    values = {place: one["last_epoch"] for place, one in whole.items() if one["last_epoch"]}
    assert [one["n"] for one in values.values()] == [len(SEEDS)] * 6
    assert 0 < len(partly) < len(values)
    assert all(values[place] == one for place, one in partly.items() if one["n"] == len(SEEDS))
    assert {trial.seed for trial in command.load(TABLE)[1].trials.values()} == set(SEEDS)
