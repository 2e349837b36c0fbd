"""What needs no search is what scikit-learn and fairlearn give by hand, and a model like any other."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import skops.io
import torch
from fairlearn.metrics import MetricFrame, equalized_odds_difference
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import EqualizedOdds, ErrorRate, ExponentiatedGradient
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.class_weight import compute_sample_weight

from study.data.dataset import Dataset, Facts, Split
from study.errors import UserError
from study.methods.fitted_classifier import FittedClassifier, score_classes_by_sklearn
from study.methods.fitted_classifier import PassThroughEncoder as Taken
from study.methods.reference import EXPORTABLE_REFERENCES, REFERENCES
from study.models.encoder import Network
from study.models.frozen_networks import LayersOnFrozenNetwork
from study.models.network_keys import BackboneOptions, HeadOptions
from study.training.config import TrainOptions, TrialConfig
from study.training.reference_fitting import REFERENCE_FITTERS, ReferenceRows, fit_reference, measure_reference
from study.training.trial import Trial

FACTS = Facts(2, 2, (5,), aligned=(0, 1))
EXACT = 1e-12


def split(count: int, seed: int, classes: int = 2) -> Split:
    """ReferenceRows in which a class goes with its bias class in 80%, and one class is rarer."""
    random = np.random.default_rng(seed)
    target = np.minimum((random.random(count) < 0.4).astype(np.int64) + random.integers(0, classes - 1, count), 2)
    bias = np.where(random.random(count) < 0.8, target % 2, 1 - target % 2)
    inputs = random.normal(size=(count, 5)) + 0.8 * target[:, None] + 0.7 * bias[:, None] * (np.arange(5) < 2)
    return Split(inputs.astype(np.float32), target, bias.astype(np.int64))


TRAIN, VAL = split(400, 0), split(200, 1)


def by_hand(name: str, seed: int) -> np.ndarray:
    """The predictions for `VAL` of what a user would write with these libraries."""
    x, y, s = TRAIN.inputs.astype(np.float64), TRAIN.target, TRAIN.bias
    held = VAL.inputs.astype(np.float64)
    regression = LogisticRegression(max_iter=2000)
    positive = y.mean()
    match name:
        case "majority":
            return DummyClassifier(strategy="most_frequent").fit(x, y).predict(held)
        case "logistic_regression":
            return regression.fit(x, y).predict(held)
        case "logistic_regression_class_balanced":
            return LogisticRegression(max_iter=2000, class_weight="balanced").fit(x, y).predict(held)
        case "logistic_regression_cell_balanced":
            cells = [f"{a} {b}" for a, b in zip(y, s, strict=True)]
            return regression.fit(x, y, compute_sample_weight("balanced", cells)).predict(held)
        case "hist_gradient_boosting_class_balanced":
            model = HistGradientBoostingClassifier(class_weight="balanced", random_state=seed)
            return model.fit(x, y).predict(held)
        case "threshold_optimizer":
            optimizer = ThresholdOptimizer(
                estimator=regression,
                constraints="equalized_odds",
                objective="balanced_accuracy_score",
                predict_method="predict_proba",
            )
            optimizer.fit(x, y, sensitive_features=s)
            return optimizer.predict(held, sensitive_features=VAL.bias, random_state=seed)
        case _:
            costs = ErrorRate(costs={"fp": positive, "fn": 1 - positive})
            estimator = LogisticRegression(max_iter=2000, solver="newton-cholesky")
            model = ExponentiatedGradient(estimator, EqualizedOdds(), objective=costs)
            model.fit(x, y, sensitive_features=s)
            return model.predict(held, random_state=seed)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fairlearn's use of pandas
@pytest.mark.parametrize("name", REFERENCES)
def test_values_are_those_of_the_libraries_called_by_hand(name: str) -> None:
    rows = ReferenceRows.for_fitting(TRAIN, FACTS, 3)
    found = measure_reference(fit_reference(name, rows, 3), {"val": ReferenceRows.from_split(VAL, FACTS)}, 3)
    predicted = by_hand(name, 3)
    cells = MetricFrame(
        metrics=accuracy_score,
        y_true=VAL.target,
        y_pred=predicted,
        sensitive_features={"class": VAL.target, "bias": VAL.bias},
    )
    odds = equalized_odds_difference(VAL.target, predicted, sensitive_features=VAL.bias)
    expected = {
        "val/accuracy": accuracy_score(VAL.target, predicted),
        "val/balanced_accuracy": balanced_accuracy_score(VAL.target, predicted),
        "val/unbiased_accuracy": cells.by_group.mean(),
        "val/worst_group_accuracy": cells.by_group.min(),
        "val/equalized_odds_difference": odds,
    }
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=EXACT)
    assert found["val/accuracy_standard_error"] > 0
    ranks = name in EXPORTABLE_REFERENCES
    assert ("val/auc" in found) is ranks
    if ranks:
        model = fit_reference(name, rows, 3)
        sure = model.predict_proba(VAL.inputs.astype(np.float64))[:, 1]
        assert found["val/auc"] == pytest.approx(roc_auc_score(VAL.target, sure), abs=EXACT)


def test_each_has_what_fits_it() -> None:
    assert list(REFERENCE_FITTERS) == list(REFERENCES)


def test_samples_without_a_class_are_not_fitted_to() -> None:
    unlabelled = replace(TRAIN, target=np.where(np.arange(400) < 50, -1, TRAIN.target))
    fewer = Split(TRAIN.inputs[50:], TRAIN.target[50:], TRAIN.bias[50:])
    judged = {"val": ReferenceRows.from_split(VAL, FACTS)}
    name = "logistic_regression_cell_balanced"
    found, expected = (
        measure_reference(fit_reference(name, ReferenceRows.for_fitting(of, FACTS, 0), 0), judged, 0)
        for of in (unlabelled, fewer)
    )
    assert found == expected


def test_a_class_that_training_lacks_ranks_last() -> None:
    model = fit_reference("logistic_regression", ReferenceRows.from_split(TRAIN, FACTS), 0)
    ranked = score_classes_by_sklearn(model, VAL.inputs.astype(np.float64), 4)
    assert ranked.shape == (200, 4)
    assert np.isneginf(ranked[:, 2:]).all()
    assert (ranked.argmax(1) == model.predict(VAL.inputs)).all()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", EXPORTABLE_REFERENCES)
def test_a_trial_fits_it_keeps_it_and_reads_it_back(name: str, classes: int, tmp_path: Path) -> None:
    facts = replace(FACTS, classes=classes, aligned=None)
    dataset = Dataset(facts, {"train": split(400, 0, classes), "val": split(200, 1, classes)})
    document = {"data": {}, "model": {"name": "linear", "features": 4}, "method": {"name": "reference", "model": name}}
    config = TrialConfig(document["data"], document["model"], document["method"], TrainOptions(epochs=1))
    trial = Trial(config, dataset, "cpu")
    (reported,) = trial.train_epochs()
    rows = {name: ReferenceRows.from_split(each, facts) for name, each in dataset.splits.items()}
    expected = measure_reference(fit_reference(name, rows["train"], 0), {"val": rows["val"]}, 0)
    assert {key: reported.get(key, math.nan) for key in expected} == pytest.approx(expected, abs=1e-6, nan_ok=True)
    trial.save_model(tmp_path / "model.safetensors")
    again = Trial(config, dataset, "cpu", loads_weights=False)
    again.load_model(tmp_path / "model.safetensors")
    assert again.evaluate("val", final=True) == pytest.approx(
        {key: value for key, value in reported.items() if key.startswith("val/")}, abs=EXACT, nan_ok=True
    )


@pytest.mark.parametrize("what", ["foreign", "function", "cut"])
def test_a_stored_model_of_another_kind_is_not_read(what: str) -> None:
    x, y = TRAIN.inputs, TRAIN.target
    stored = {
        "foreign": skops.io.dumps(make_pipeline(LogisticRegression()).fit(x, y)),
        "function": skops.io.dumps(make_pipeline(FunctionTransformer(np.load), LogisticRegression())),
        "cut": skops.io.dumps(LogisticRegression().fit(x, y))[:2000],
    }[what]
    classifier = FittedClassifier(2)
    classifier.load_state_dict({"stored": torch.frombuffer(bytearray(stored), dtype=torch.uint8)})
    with pytest.raises(UserError, match="the stored model"):
        classifier(torch.zeros(1, 5))


def test_of_a_frozen_network_all_features_of_a_row_are_taken_without_the_maps_of_trained_stages() -> None:
    taken = Taken(Facts(2, 2, (12,)), Network(LayersOnFrozenNetwork(6, BackboneOptions(), 8), HeadOptions()))
    rows = torch.randn(5, 12, generator=torch.Generator().manual_seed(0)).half()
    assert taken.features == 8
    assert torch.equal(taken(rows), rows[:, 4:].float())


def test_of_images_and_of_large_tables_only_so_many_are_fitted_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("study.training.reference_fitting.MAX_FITTED_ROWS", 100)
    features = replace(TRAIN, inputs=TRAIN.inputs.astype(np.float16))
    one, other, again = (ReferenceRows.for_fitting(features, FACTS, seed) for seed in (0, 1, 0))
    assert len(one.target) == len(other.target) == 100
    assert np.array_equal(one.inputs, again.inputs)
    assert not np.array_equal(one.inputs, other.inputs)
    table = ReferenceRows.for_fitting(TRAIN, FACTS, 0)
    assert len(table.target) == 400
    gradients = [fit_reference("exponentiated_gradient", table, seed) for seed in (0, 0, 1)]
    weights = [gradient.predictors_[0].coef_.tolist() for gradient in gradients]
    assert weights[0] == weights[1] != weights[2]
