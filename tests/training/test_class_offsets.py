"""Thresholds of classes that are fitted to the validation split."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from study.commands.final_training import final_study
from study.data import Dataset, Facts
from study.data.dataset import Split
from study.errors import UserError
from study.spec import load_study
from study.training import Trial, metrics
from study.training.class_offsets import ClassOffsets, fitted

FACTS = Facts(2, 2, (4,), aligned=None)


def rows(count: int, seed: int) -> Split:
    """Two classes that overlap, one of them in a tenth of the rows."""
    draw = np.random.default_rng(seed)
    target, bias = (draw.random(count) < 0.1).astype(np.int64), draw.integers(0, 2, count)
    return Split((draw.normal(size=(count, 4)) + target[:, None]).astype(np.float32), target, bias)


DATA = Dataset(FACTS, {"train": rows(600, 1), "val": rows(300, 2), "test": rows(4000, 3)})


def trial(thresholds: str, **train: object) -> Trial:
    config = load_study("quickstart").trial_config({})
    options = replace(config.train, epochs=3, thresholds=thresholds, seed=0, learning_rate=0.01, **train)
    config = replace(config, model={"name": "linear", "head": "none"}, method={"name": "cross_entropy"}, train=options)
    return Trial(config, DATA, "cpu")


def scores(count: int = 400, classes: int = 3, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch.Generator().manual_seed(seed)
    target, bias = (torch.randint(0, classes, (count,), generator=draw) for _ in range(2))
    return torch.randn(count, classes, generator=draw), target, bias


def test_with_them_a_plain_loss_decides_as_if_the_cells_were_alike() -> None:
    plain, balanced = trial("none"), trial("fitted")
    epochs = [list(one.run())[-1] for one in (plain, balanced)]
    test = [one.evaluate("test") for one in (plain, balanced)]
    assert epochs[1]["train/loss"] == epochs[0]["train/loss"]
    assert test[1]["test/unbiased_accuracy"] > test[0]["test/unbiased_accuracy"] + 0.1
    assert test[1]["test/accuracy"] < test[0]["test/accuracy"]
    assert epochs[1]["val/unbiased_log_loss"] < epochs[0]["val/unbiased_log_loss"] - 0.1
    assert abs(epochs[1]["val/unbiased_accuracy"] - test[1]["test/unbiased_accuracy"]) < 0.1


def test_they_are_those_of_a_general_minimiser() -> None:
    values, target, bias = scores()
    of = Facts(3, 3, (1,), aligned=(0, 1, 2))

    def loss(offsets: np.ndarray) -> float:
        found = metrics.compute(values + torch.from_numpy(offsets), values.argmax(1), target, bias, of)
        return float(found["shrunk_unbiased_log_loss"]) + 1e-3 * float(np.mean(np.square(offsets)))

    expected = minimize(loss, np.zeros(3), tol=1e-10).x
    assert fitted(values.double(), target, bias, of).numpy() == pytest.approx(expected, abs=1e-4)


def test_no_sample_is_judged_by_what_it_was_fitted_to() -> None:
    """Scores that know nothing of the classes: fitted and judged by the same samples they would seem better."""
    of, gains = Facts(3, None, (1,)), []
    for seed in range(40):
        values, target, _ = scores(60, seed=seed)
        offsets = ClassOffsets(3)
        judged = offsets.fit(values, target, None, of)
        losses = [
            float(metrics.compute(each, each.argmax(1), target, None, of)["balanced_log_loss"])
            for each in (values, judged, offsets(values))
        ]
        assert losses[2] < losses[0]
        gains.append(losses[0] - losses[1])
    assert np.mean(gains) < 0


def test_a_class_without_samples_and_a_split_without_classes_get_none() -> None:
    values, target, bias = scores()
    of = Facts(3, 3, (1,), aligned=(0, 1, 2))
    assert torch.equal(fitted(values, torch.full_like(target, -1), bias, of), torch.zeros(3, dtype=torch.float64))
    without = fitted(values.double(), target.clamp(max=1), None, Facts(3, None, (1,)))
    assert without.isfinite().all()


def test_they_are_kept_with_the_weights(tmp_path: Path) -> None:
    first = trial("fitted")
    list(first.run())
    first.save(tmp_path / "weights.safetensors")
    again = trial("fitted")
    again.load(tmp_path / "weights.safetensors")
    assert again.evaluate("test") == first.evaluate("test")
    assert first.evaluate("val") != again.evaluate("val")  # each half by the other, and all by what is kept


def test_a_trial_that_is_resumed_ends_as_one_that_was_not(tmp_path: Path) -> None:
    whole = [{key: value for key, value in epoch.items() if key.startswith("val/")} for epoch in trial("fitted").run()]
    run = trial("fitted").run(resume=tmp_path / "state")
    next(run), next(run)
    run.close()
    *_, last = trial("fitted").run(resume=tmp_path / "state")
    assert {key: last[key] for key in whole[-1]} == whole[-1]


FILE = """
name: own
data: {name: compas}
model: {name: mlp}
method: {name: cross_entropy}
train: {epochs: 2, thresholds: fitted}
search: {space: {train.learning_rate: {low: 0.001, high: 0.01}}, metric: val/accuracy, trials: 2}
"""


def test_what_has_nothing_to_fit_them_to_or_has_its_own_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(FILE)
    spec = load_study(str(tmp_path / "own.yaml"))
    assert spec.base["train"]["thresholds"] == final_study(spec, [0]).base["train"]["thresholds"] == "fitted"
    with pytest.raises(UserError, match=r"train.thresholds: 'fitted' given.* none"):
        load_study(str(tmp_path / "own.yaml"), ["method.name=equalized_odds_postprocessing"])
    with pytest.raises(UserError, match=r"--data train\+val leaves no validation split, to which train.thresholds"):
        final_study(spec, [0], with_val=True)
