"""What a study would cost: by hand at a given pace, and measured."""

import json
import os
import threading
from pathlib import Path

import pytest
from helpers import quickstart

from study.commands import cost, plan
from study.errors import UserError
from study.ranking.json_documents import to_plain_value
from study.spec import load_study

SMALL = ("train.epochs=4", "train.data_share=0.1", "search.early_stopping={name: asha, grace: 1, reduction: 2}")


def costed(*assignments: str, seconds: float = 10.0) -> cost.ExpectedCost:
    spec = quickstart("search.trials=5", "search.confirm={top: 1, seeds: 2}", *SMALL, *assignments)
    return cost.compute_cost(spec, plan.plan_study(spec), cost.EpochPace(seconds, "by hand", ()))


def test_the_hours_by_hand() -> None:
    """A baseline, 4 searched of 1 + 1/2 + 2/4 epochs expected, then 4 to confirm, in pairs."""
    told = costed("resources={cpu: 0.5, gpu: 0}", "search.concurrency=2")
    most, expected = told.without_early_stopping, told.expected
    assert told.trials_at_once_here == 2
    assert most.trial_hours * 3600 == pytest.approx((1 + 4 + 4) * 4 * 10)
    assert expected.trial_hours * 3600 == pytest.approx((4 + 4 * 2 + 4 * 4) * 10)
    beside = cost.STUDY_START_SECONDS + cost.STUDY_END_SECONDS + 9 / 2 * cost.PER_TRIAL_SECONDS
    assert told.seconds_beside_epochs == pytest.approx(beside)
    assert most.wall_hours * 3600 == pytest.approx((5 * 4 / 2 + 2 * 4) * 10 + beside)
    assert expected.wall_hours * 3600 == pytest.approx(((4 + 8) / 2 + 2 * 4) * 10 + beside)
    assert most.gpu_hours == expected.gpu_hours == 0


def test_no_study_is_shorter_than_its_longest_trial() -> None:
    told = costed("resources={cpu: 0.001, gpu: 0}", "search.concurrency=100")
    epochs = told.expected.wall_hours * 3600 - told.seconds_beside_epochs
    assert epochs == pytest.approx((4 + 4) * 10), "one full trial, then one to confirm"


@pytest.mark.slow
def test_where_no_trial_fits_there_is_no_time_of_the_clock() -> None:
    cpus = (os.cpu_count() or 1) + 1
    told = costed(f"resources={{cpu: {cpus}, gpu: 1}}")
    assert told.trials_at_once_here == 0
    assert told.expected.wall_hours is None
    assert told.expected.gpu_hours == pytest.approx(told.expected.trial_hours)
    shown = cost.cost_estimate_text(cost.CostEstimate(told, None))
    assert "a trial does not fit this machine" in shown
    assert "on the clock of this machine" not in shown


def test_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDY_HOME", str(tmp_path))
    spec = quickstart(*SMALL, "search.space.model.width={choices: [4, 8]}")
    document = cost.estimate_cost(spec, plan.plan_study(spec))
    told = document.cost
    assert told is not None
    assert document.not_measured is None
    assert 0 < told.seconds_per_epoch < 60
    assert told.expected.trial_hours < told.without_early_stopping.trial_hours
    assert any("with other values of model.width, which are searched" in one for one in told.caveats)
    assert json.loads(json.dumps(to_plain_value(document), allow_nan=False)) == to_plain_value(document)
    shown = cost.cost_estimate_text(document)
    assert "of the file's own configuration on" in shown
    assert "on the clock of this machine with" in shown
    assert not list(tmp_path.iterdir()), "nothing is started"


@pytest.mark.parametrize(
    ("assignments", "why"),
    [
        (["data={name: biased_mnist, rho: 0.99}"], "its data are not here, see study data prepare biased_mnist"),
        (["resources.gpu=1"], "resources.gpu: 1 given, but this machine's GPU cannot be used"),
        (["train.learning_rate=1e30"], "the trial diverged"),
    ],
)
def test_why_no_epoch_could_be_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, assignments: list[str], why: str
) -> None:
    monkeypatch.setenv("STUDY_DATA", str(tmp_path))
    spec = quickstart(*SMALL, *assignments)
    document = cost.estimate_cost(spec, plan.plan_study(spec))
    assert document.cost is None
    assert cost.cost_estimate_text(document).startswith(f"time: not measured: {why}")


def test_data_that_the_study_could_not_load_are_refused(tmp_path: Path) -> None:
    """As `study run` refuses them."""
    rows = (f"{n}.png,{'ab'[n % 2]},{'xy'[n // 2 % 2]}\n" for n in range(100))
    (tmp_path / "labels.csv").write_text("file,kind,place\n" + "".join(rows))
    section = f"data={{name: image_folder, path: {tmp_path}, target: kind, bias: place}}"
    spec = quickstart(*SMALL, section, "train.augmentation=none")
    with pytest.raises(UserError, match="100 files are listed but missing"):
        cost.estimate_cost(spec, plan.plan_study(spec))


def test_a_plan_runs_no_code_that_a_study_file_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef train(config): yield {{}}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "own.yaml").write_text(
        "name: own\nmethod: {name: own_function, function: 'theirs:train'}\ntrain: {epochs: 2}\n"
        "search: {space: {method.rate: {low: 0.1, high: 0.9}}, metric: val/accuracy, trials: 2}\n"
    )
    spec = load_study(str(tmp_path / "own.yaml"))
    begun: list[None] = []
    told = cost.estimate_cost(spec, plan.plan_study(spec), on_begin=lambda: begun.append(None))
    assert "runs no function" in told.not_measured
    assert not begun
    assert not (tmp_path / "ran").exists()


def test_on_a_busy_machine_trials_at_once_are_slower_than_one_alone() -> None:
    """One of two that share a CPU which others want half of; where there is room for all, none is slower."""
    pace = cost.EpochPace(1.0, "by hand", (), load_average=4.0)
    assert pace.slowdown(1.0, 2, 2.0) == pytest.approx(3.0 / 2.5)
    assert pace.slowdown(1.0, 2, 64.0) == 1.0
    assert cost.EpochPace(1.0, "by hand", ()).slowdown(1.0, 2, 2.0) == 1.0
    assert pace.slowdown_of_single_process(2.0) == 2.5
    assert pace.slowdown_of_single_process(64.0) == 1.0


def test_a_start_takes_longer_on_a_busy_machine() -> None:
    """Ray's start and a worker's imports are most of a small study: a plan without them told 13 s of its 66 s."""
    spec = quickstart("search.trials=5", *SMALL)
    busy, idle = (
        cost.compute_cost(spec, plan.plan_study(spec), cost.EpochPace(0.01, "by hand", (), load_average=load))
        for load in (4.0 * (os.cpu_count() or 1), 0.0)
    )
    assert idle.seconds_beside_epochs >= cost.STUDY_START_SECONDS + cost.STUDY_END_SECONDS
    assert busy.seconds_beside_epochs > 3 * idle.seconds_beside_epochs
    assert idle.expected.wall_hours * 3600 > idle.seconds_beside_epochs


def test_short_epochs_are_measured_more_than_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pace = cost.measure_pace(quickstart(*SMALL))
    assert isinstance(pace, cost.EpochPace)
    assert pace.basis.startswith("4 epochs of")
    monkeypatch.setattr(cost, "MAX_FIRST_EPOCH_SECONDS", 0.0)
    pace = cost.measure_pace(quickstart(*SMALL))
    assert isinstance(pace, cost.EpochPace)
    assert pace.basis.startswith("one epoch of")


def test_the_epoch_is_measured_behind_all_else_as_trials_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an error of its own, and without a change to the process that asked."""
    monkeypatch.setenv("RAY_worker_niceness", "7")
    before = os.getpriority(os.PRIO_PROCESS, 0)

    def told() -> dict[str, int]:
        return {"nice": os.getpriority(os.PRIO_PROCESS, threading.get_native_id())}

    def broken() -> dict[str, int]:
        raise UserError("its data are gone")

    assert cost.call_with_worker_priority(told) == {"nice": 7}
    with pytest.raises(UserError, match="are gone"):
        cost.call_with_worker_priority(broken)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
