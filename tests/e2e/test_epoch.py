"""A real study that takes each trial at its best epoch: the weights that it keeps are those of that epoch."""

import json
from collections.abc import Callable

import pytest
from command import Command
from ended import assert_nothing_was_lost
from helpers import computed

from study import data
from study.home.record import TrialRecord
from study.ranking.chosen_epoch import metrics_at_chosen_epoch
from study.spec import StudySpec
from study.training.trial import Trial

PEAKED = """\
name: peaked
data:   {name: biased_digits, rho: 0.9}
model:  {name: small_conv_net, width: 4}
method: {name: eps_sup_info_nce, temperature: 0.1, regulariser: fair_kl}
train:  {epochs: 6, batch_size: 128, learning_rate: 0.03, final: [knn]}
search:
  space: {method.alpha: {low: 0.001, high: 1.0, log: true}}
  trials: 1
  concurrency: 1
  metric: val/equalized_odds
  epoch: best
  epoch_window: 1
  confirm: {top: 1, seeds: 2}
"""
"""The gap is least in the first epochs, in which all samples are given one class."""


def assert_kept_weights_give_the_chosen_epoch(command: Command, spec: StudySpec, told: TrialRecord) -> int:
    """Every validation metric of that epoch, to the bit, and what `train.final` measured. Gives the epoch."""
    chosen = metrics_at_chosen_epoch(spec.objective, told)["epoch"]
    config = spec.trial_config(told.params, told.seed)
    trial = Trial(config, data.load(config.data), "cpu")
    trial.load_model(command.folder(spec.name).model_file(told.number))
    reported = {**told.reports[-1], **told.reports[chosen - 1]}  # of train.final in the last one alone
    measured = trial.evaluate("val", final=True)
    assert {f"{probe}accuracy" for probe in ("", "knn_")} <= {name.removeprefix("val/") for name in measured}
    assert measured == {name: reported[name] for name in measured}
    assert trial.evaluate("test", final=True) == told.test_metrics
    return int(chosen)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_and_resumed_a_study_keeps_the_weights_of_the_chosen_epochs(make_command: Callable[[], Command]) -> None:
    """Killed in the midst of a confirm trial it ends as one that was not disturbed; a final training keeps its own."""
    command, calm = make_command(), make_command()
    for each in (command, calm):
        (each.work / "peaked.yaml").write_text(PEAKED)
    assert calm("run", "peaked.yaml").returncode == 0
    kill = json.dumps({"driver": ["study.home.ledger.Ledger", "append", 17, "after"], "slow": 0.2})
    assert command("run", "peaked.yaml", SABOTAGE=kill).returncode == -9
    _, cut = command.load("peaked")
    assert [(trial.state, trial.n_epochs) for trial in cut.trials_of_stages("confirm")] == [("interrupted", 4)]
    assert command.folder("peaked").checkpoint_file(1).exists()
    assert command("resume", "peaked").returncode == 0
    spec, record = command.load("peaked")
    assert_nothing_was_lost(command.folder("peaked"))
    assert computed(record) == computed(calm.load("peaked")[1])
    chosen = [
        assert_kept_weights_give_the_chosen_epoch(command, spec, told) for told in record.trials_of_stages("confirm")
    ]
    assert len(chosen) == 2
    assert min(chosen) < 4, "before it was killed, else this shows nothing"

    assert command("export", "peaked", "-o", "best.yaml").returncode == 0
    assert command("train", "best.yaml", "--seeds", "0").returncode == 0
    spec, record = command.load("peaked-final")
    assert (spec.search.epoch, spec.search.epoch_window) == ("best", 1)
    (told,) = record.trials_of_stages("final")
    chosen_of_final = assert_kept_weights_give_the_chosen_epoch(command, spec, told)
    described = json.loads(command.folder("peaked-final").model_description_file(told.number).read_text())
    assert described["told"]["metrics"]["epoch"] == chosen_of_final
