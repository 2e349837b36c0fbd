"""A last layer that is fitted anew to the features of the training samples."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_sample_weight
from torch.nn.functional import normalize

from study.data import Dataset, Facts
from study.data.dataset import Split
from study.methods import UNKNOWN, Labels
from study.spec import load_study
from study.training import Trial
from study.training.refitted_layer import STRENGTH, RefittedLayer

DRAW = torch.Generator().manual_seed(0)


def biased(count: int, goes_along: float, seed: int) -> Split:
    """Two classes whose first input is the class with noise, whose second is the bias without: it is the easier one."""
    draw = np.random.default_rng(seed)
    target = draw.integers(0, 2, count)
    bias = np.where(draw.random(count) < goes_along, target, 1 - target)
    inputs = np.stack([2 * target - 1 + draw.normal(size=count), 4 * bias - 2, *draw.normal(size=(2, count))], axis=1)
    return Split(inputs.astype(np.float32), target, bias)


DATA = Dataset(
    Facts(2, 2, (4,), aligned=(0, 1)),
    {"train": biased(600, 0.95, 1), "val": biased(300, 0.95, 2), "test": biased(3000, 0.5, 3)},
)


def trial(last_layer: str, data: Dataset = DATA, **train: object) -> Trial:
    config = load_study("quickstart").trial_config({})
    options = replace(config.train, epochs=3, last_layer=last_layer, seed=0, learning_rate=0.01, **train)
    config = replace(config, model={"name": "mlp", "head": "none"}, method={"name": "cross_entropy"}, train=options)
    return Trial(config, data, "cpu")


def test_it_is_scikit_learns_regression_with_cells_alike() -> None:
    features = torch.randn(500, 6, generator=DRAW) * 3
    target = (features[:, 0] + torch.randn(500, generator=DRAW) > 1).long() + (features[:, 1] > 2).long()
    bias = (torch.rand(500, generator=DRAW) < 0.2).long()
    layer = RefittedLayer(6, 3)
    layer.fit(features, Labels(target, bias))
    rows = normalize(features, dim=1).double().numpy()
    weight = compute_sample_weight("balanced", (target * 2 + bias).numpy())
    model = LogisticRegression(C=STRENGTH, max_iter=5000, tol=1e-8).fit(rows, target.numpy(), weight)
    probabilities = layer(features).softmax(1).detach().numpy()
    assert probabilities == pytest.approx(model.predict_proba(rows), abs=2e-3)


def test_without_bias_labels_classes_weigh_alike_and_samples_without_a_class_are_left_out() -> None:
    features, target = torch.randn(400, 5, generator=DRAW), (torch.rand(400, generator=DRAW) < 0.1).long()
    known, with_others = RefittedLayer(5, 2), RefittedLayer(5, 2)
    known.fit(features[:300], Labels(target[:300]))
    with_others.fit(features, Labels(torch.where(torch.arange(400) < 300, target, UNKNOWN)))
    assert known.weight == pytest.approx(with_others.weight, abs=1e-3)
    means = known(features[:300]).softmax(1).mean(0)
    assert means.tolist() == pytest.approx([0.5, 0.5], abs=0.02)  # as if both were as frequent


def test_with_it_a_network_that_follows_the_bias_follows_the_class() -> None:
    plain, refitted = trial("trained"), trial("refitted")
    losses = [[epoch["train/loss"] for epoch in one.run()] for one in (plain, refitted)]
    assert losses[0] == losses[1], "the network is trained as it was"
    accuracy = [one.evaluate("test")["test/accuracy"] for one in (plain, refitted)]
    assert accuracy[1] > accuracy[0] + 0.05
    assert accuracy[1] > 0.75


def test_it_is_kept_with_the_weights(tmp_path: Path) -> None:
    first, again = trial("refitted"), trial("refitted")
    list(first.run())
    first.save(tmp_path / "weights.safetensors")
    again.load(tmp_path / "weights.safetensors")
    assert again.evaluate("test") == first.evaluate("test")


def test_a_trial_that_is_resumed_ends_as_one_that_was_not(tmp_path: Path) -> None:
    whole = [
        {key: value for key, value in epoch.items() if key.startswith("val/")} for epoch in trial("refitted").run()
    ]
    run = trial("refitted").run(resume=tmp_path / "state")
    next(run), next(run)
    run.close()
    *_, last = trial("refitted").run(resume=tmp_path / "state")
    assert {key: last[key] for key in whole[-1]} == whole[-1]
