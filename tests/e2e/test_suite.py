"""A suite of two methods on one data set, killed whole in mid-run: the same command goes on to the same table."""

import os
import signal
from collections.abc import Callable
from dataclasses import replace

import pytest
from command import Command
from ended import assert_nothing_was_lost
from helpers import computed
from runs import Runs

from study.home.folder import Home

TWO = """\
name: two
base:
  model: {name: small_conv_net, width: 4}
  train: {batch_size: 128, learning_rate: 0.003}
methods:
  plain:
    method: {name: cross_entropy}
    space: {train.learning_rate: {low: 0.001, high: 0.01}}
  margin:
    method: {name: eps_sup_info_nce, temperature: 0.1}
    space: {method.epsilon: {choices: [0.0, 0.25, 0.5]}}
data:
  rho_95: {name: biased_digits, rho: 0.95}
rules: [accuracy, unbiased_accuracy]
searches: 1
budget: {trials: 2, epochs: 2, seeds: 2}
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_suite_survives_kill_9_of_its_group_with_the_same_table(make_command: Callable[[], Command]) -> None:
    """Killed in the second study, with all its processes."""
    command, undisturbed = make_command(), make_command()
    for each in (command, undisturbed):
        (each.work / "two.yaml").write_text(TWO)
    patient = replace(command, patience=900)
    process = patient.start("suite", "two.yaml", SABOTAGE='{"slow": 0.3}')
    patient.wait_for("two--margin--rho_95--1", lambda record: any(t.n_epochs >= 1 for t in record.trials.values()))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    planned = patient("suite", "two.yaml", "--plan")
    assert "2 searches (1 complete, 1 interrupted)" in planned.stdout
    done = patient("suite", "two.yaml", "-o", "killed.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert "search 2 of 2: two--margin--rho_95--1" in done.stdout
    assert "search 1 of 2" not in done.stdout
    alone = replace(undisturbed, patience=900)("suite", "two.yaml", "-o", "undisturbed.csv")
    assert (alone.returncode, alone.stderr) == (0, "")
    table = (command.work / "killed.csv").read_text()
    assert table == (undisturbed.work / "undisturbed.csv").read_text()
    assert len(table.splitlines()) == 1 + 2 * (2 + 2)
    for folder in Home(command.home).list_studies():
        record = assert_nothing_was_lost(folder)
        assert (folder.best_file.exists(), folder.report_folder.exists()) == (True, False)
        assert computed(record) == computed(undisturbed.load(folder.name)[1])
        Runs(Home(command.home).tracking_uri, folder.name).agree_with(record)
    out = patient.done("suite", "two.yaml")
    assert "search" not in out.split("# two")[0]
