"""A trial that ends with the networks of another epoch than the last."""

from itertools import islice
from pathlib import Path

import pytest
from helpers import timeless
from one_trial import bits, config, saved

from study.data import Dataset
from study.ranking.chosen_epoch import BestEpochTracker
from study.spec.objective import Objective
from study.training.trial import Trial

CONFIG = config("train.epochs=4", "train.learning_rate=0.03", "train.final=[knn]")


def choice(mode: str) -> BestEpochTracker:
    """Of the least or the largest loss: one falls from epoch to epoch, so that the other way the first window wins."""
    return BestEpochTracker(Objective(("train/loss",), (mode,), (), 2))  # type: ignore[arg-type]


@pytest.mark.slow
def test_it_ends_with_the_networks_of_the_chosen_epoch(dataset: Dataset, tmp_path: Path) -> None:
    """All that is measured of them is what that epoch reported; `train.final` is measured of them too."""
    plain, whole = Trial(CONFIG, dataset, "cpu"), choice("max")
    for epoch, _ in enumerate(plain.train_epochs(), start=1):
        plain.save_model(tmp_path / f"{epoch}.safetensors")
    trial = Trial(CONFIG, dataset, "cpu")
    reports = timeless(trial.train_epochs(choice=whole))
    assert [report["train/loss"] for report in reports] == sorted((r["train/loss"] for r in reports), reverse=True)
    assert whole.chosen_epoch == 2
    measured = trial.evaluate("val", final=True)
    assert {name: measured[name] for name in reports[1] if name.startswith("val/")} == {
        name: value for name, value in reports[1].items() if name.startswith("val/")
    }
    finals = {name: value for name, value in reports[-1].items() if "knn" in name}
    assert finals
    assert finals == {name: measured[name] for name in finals}
    assert saved(trial, tmp_path / "chosen.safetensors") == bits(tmp_path / "2.safetensors")
    expected = timeless(Trial(CONFIG, dataset, "cpu").train_epochs())
    assert [without_finals(report) for report in reports] == [without_finals(report) for report in expected]


def without_finals(report: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in report.items() if "knn" not in name}


@pytest.mark.slow
@pytest.mark.parametrize(("stop", "mode"), [(1, "max"), (3, "max"), (3, "min")])
def test_cut_off_and_resumed_it_ends_with_the_same_bits(dataset: Dataset, tmp_path: Path, stop: int, mode: str) -> None:
    """Behind the chosen epoch and before it; what was chosen before the stop lies in the checkpoint alone."""
    whole, file = Trial(CONFIG, dataset, "cpu"), tmp_path / "state.pt"
    expected = timeless(whole.train_epochs(choice=choice(mode)))
    first = list(islice(Trial(CONFIG, dataset, "cpu").train_epochs(file, choice=choice(mode)), stop + 1))[:stop]
    again, resumed = Trial(CONFIG, dataset, "cpu"), choice(mode)
    assert again.saved_epoch(file) == stop
    assert timeless([*first, *again.train_epochs(file, choice=resumed)]) == expected
    assert resumed.chosen_epoch == {"min": 4, "max": 2}[mode]
    assert saved(again, tmp_path / "again.safetensors") == saved(whole, tmp_path / "whole.safetensors")
