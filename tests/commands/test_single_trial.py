"""What `study trial` prints."""

from typing import Any

import own_functions
import pytest
from helpers import quickstart

from study.api.run_study import build_function_study
from study.commands.single_trial import SingleTrial, epoch_line, metrics_table
from study.errors import UserError

METRICS = {
    "epoch": 2,
    "train/loss": 1.23456,
    "val/accuracy": 0.75,
    "val/equalized_odds": 0.1,
    "test/accuracy": 0.7,
    "time/epoch": 0.5,
}


def test_an_epoch_is_a_line_of_what_the_study_is_about() -> None:
    spec = quickstart("train.epochs=20", "search.constraints=[val/equalized_odds <= 0.2]")
    told = epoch_line(spec, METRICS)
    assert told == "epoch 2 of 20  train/loss 1.235  val/accuracy 75.0%  val/equalized_odds 0.100  time/epoch 0.500 s"


def test_all_metrics_are_a_table_with_a_column_for_each_split() -> None:
    assert metrics_table(METRICS | {"val/accuracy_standard_error": 0.0123}) == [
        "                val                 test",
        "accuracy        75.0 ± 1.2%         70.0%",
        "equalized_odds  0.100",
        "train/loss      1.235",
        "time/epoch      0.500 s",
        "±: standard error, as the split is a sample",
    ]
    assert metrics_table({"epoch": 1}) == []
    (_, group) = metrics_table({"val/group_0_1_accuracy": 0.5}, ["no", "yes"], ["a", "b"])
    assert group.split(maxsplit=2) == ["group_0_1_accuracy", "50.0%", "class 'no', bias class 'b'"]


def test_the_accuracy_of_a_group_comes_with_its_size() -> None:
    own = {"val/group_0_1_accuracy": 0.5, "test/group_0_1_accuracy": 1.0, "val/group_1_1_accuracy": float("nan")}
    (_, group, empty) = metrics_table(own, sizes={"val/group_0_1_accuracy": 4, "val/group_1_1_accuracy": 0})
    assert group == "group_0_1_accuracy  50.0% of 4          100.0%"
    assert empty == "group_1_1_accuracy  not defined"


def test_a_short_time_is_told_with_two_digits() -> None:
    assert metrics_table({"time/epoch": 0.00123}) == ["time/epoch  0.0012 s"]


def test_what_is_no_number_has_no_unit() -> None:
    spec = quickstart("search.metric=val/unbiased_accuracy")
    nan = float("nan")
    assert epoch_line(spec, {"epoch": 1, "val/unbiased_accuracy": nan}).endswith("val/unbiased_accuracy not defined")
    (_, accuracy, _) = metrics_table({"val/accuracy": 0.5, "val/accuracy_standard_error": nan})
    assert accuracy == "accuracy  50.0%"


def test_the_speed_on_a_table_is_in_rows() -> None:
    speed = {"speed/images_per_second": 12.5}
    assert metrics_table(speed) == ["speed/images_per_second  12.5"]
    assert metrics_table(speed, is_table=True) == ["speed/rows_per_second  12.5"]


def test_what_a_users_function_raises_is_the_users(capsys: pytest.CaptureFixture[str]) -> None:
    given: dict[str, Any] = {"name": "mine", "metric": "val/accuracy", "maximize": None, "epochs": 1, "baseline": None}
    fixed = {"how": "LookupError"}
    spec, _ = build_function_study(own_functions.ends, space={}, fixed=fixed, assignments=["search.trials=1"], **given)
    with pytest.raises(UserError, match=r"ends \(own_functions\.py, line \d+\): LookupError: 3"):
        list(SingleTrial(spec, "cpu").epochs())
    told = capsys.readouterr().err
    assert "LookupError: 3" in told
    assert "own_functions.py" in told
    assert "function_trial.py" not in told
