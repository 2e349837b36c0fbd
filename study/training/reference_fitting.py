"""Fit and judge references: models of scikit-learn and fairlearn on the same arrays that trials train on.

It imports scikit-learn and fairlearn: import it only where it is used, so that a trial needs neither.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import EqualizedOdds, ErrorRate, ExponentiatedGradient
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.utils.class_weight import compute_sample_weight

from study.data import holdout
from study.data.dataset import Facts, Split
from study.methods.fitted_classifier import score_classes_by_sklearn
from study.training import metrics
from study.training.cell_statistics import log_loss_of_samples

MAX_LOGISTIC_ITERATIONS = {"rows": 2000, "images": 200}
"""Maximum number of steps of a logistic regression, of rows and of pixels."""

MAX_FITTED_ROWS = 10_000
"""Rows, drawn by the seed, that ExponentiatedGradient takes at most, as it fits dozens of regressions; so does all that
is fitted to images.
"""


@dataclass(frozen=True)
class ReferenceRows:
    """Samples in the form in which these libraries take them.

    Attributes:
        inputs: (N, F), float64 of a table; of images their pixels as networks see them, or features, float32.
        facts: of the data.
    """

    inputs: NDArray[np.generic]
    target: NDArray[np.int64]
    bias: NDArray[np.int64] | None
    facts: Facts

    @classmethod
    def from_split(cls, split: Split, facts: Facts) -> "ReferenceRows":
        """Convert a split of data with these facts, to judge by."""
        return cls(samples_to_rows(split.sample_inputs, facts), split.target, split.bias, facts)

    @classmethod
    def for_fitting(cls, split: Split, facts: Facts, seed: int) -> "ReferenceRows":
        """Convert the samples to fit to: those with a class; of images at most `MAX_FITTED_ROWS`, drawn by the seed."""
        index = np.flatnonzero(split.target >= 0)
        index = index if split.inputs.dtype == np.float32 else subsample_positions(index, seed)
        return cls.from_split(holdout.select_samples(split, index), facts)

    def select_rows(self, index: NDArray[np.generic]) -> "ReferenceRows":
        """Select rows by index or mask."""
        bias = None if self.bias is None else self.bias[index]
        return replace(self, inputs=self.inputs[index], target=self.target[index], bias=bias)

    @property
    def come_from_images(self) -> bool:
        """Whether they are images, or features of images."""
        return self.inputs.dtype == np.float32

    @property
    def unfitted_logistic_regression(self) -> LogisticRegression:
        """Logistic regression to fit to them, without weights yet."""
        return LogisticRegression(max_iter=MAX_LOGISTIC_ITERATIONS["images" if self.come_from_images else "rows"])


def subsample_positions(places: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Draw `MAX_FITTED_ROWS` of these places, in their order; all where there are no more."""
    if len(places) <= MAX_FITTED_ROWS:
        return places
    return np.sort(np.random.default_rng(seed).choice(places, MAX_FITTED_ROWS, replace=False))


def samples_to_rows(samples: NDArray[np.generic], facts: Facts) -> NDArray[np.generic]:
    """Convert samples (N, ...) to rows (N, F).

    A table stays as it is, pixels are scaled to [0, 1] and normalised; of a frozen network's features those of its last
    layer are taken.
    """
    if facts.is_table:  # or features of a frozen network, float16
        return np.asarray(samples[:, -facts.shape[0] :], np.float32 if samples.dtype == np.float16 else np.float64)
    mean, deviation = (np.reshape(np.asarray(each, np.float32), (-1, 1, 1)) for each in (facts.mean, facts.deviation))
    scaled = (np.asarray(samples, np.float32) / 255 - mean) / deviation
    return scaled.reshape(len(samples), -1)


ReferenceFit = Callable[[ReferenceRows, int], Any]
"""Function that fits a model of scikit-learn or fairlearn to rows, with a seed."""


def majority(train: ReferenceRows, seed: int) -> DummyClassifier:
    """Predict the most frequent class for all."""
    return DummyClassifier(strategy="most_frequent").fit(train.inputs, train.target)


def logistic_regression(train: ReferenceRows, seed: int) -> LogisticRegression:
    """Fit a logistic regression with scikit-learn's penalty, samples as they are."""
    return train.unfitted_logistic_regression.fit(train.inputs, train.target)


def logistic_regression_class_balanced(train: ReferenceRows, seed: int) -> LogisticRegression:
    """Fit a logistic regression in which each class weighs alike."""
    return train.unfitted_logistic_regression.set_params(class_weight="balanced").fit(train.inputs, train.target)


def logistic_regression_cell_balanced(train: ReferenceRows, seed: int) -> LogisticRegression:
    """Fit a logistic regression in which each cell of class and bias class weighs alike."""
    assert train.bias is not None
    cells = train.target * (train.bias.max() + 1) + train.bias
    return train.unfitted_logistic_regression.fit(train.inputs, train.target, compute_sample_weight("balanced", cells))


def hist_gradient_boosting_class_balanced(train: ReferenceRows, seed: int) -> HistGradientBoostingClassifier:
    """Fit boosted trees with scikit-learn's defaults; each class weighs alike."""
    model = HistGradientBoostingClassifier(class_weight="balanced", random_state=seed)
    return model.fit(train.inputs, train.target)


def threshold_optimizer(train: ReferenceRows, seed: int) -> ThresholdOptimizer:
    """Fit a randomised threshold of a logistic regression for each bias class (Hardt et al. 2016).

    Of the thresholds with equal odds these have the highest balanced accuracy.
    """
    optimizer = ThresholdOptimizer(
        estimator=logistic_regression(train, seed),
        constraints="equalized_odds",
        objective="balanced_accuracy_score",
        prefit=True,
        predict_method="predict_proba",
    )
    return optimizer.fit(train.inputs, train.target, sensitive_features=train.bias)


def exponentiated_gradient(train: ReferenceRows, seed: int) -> ExponentiatedGradient:
    """Fit a random choice among logistic regressions with equal odds; errors weigh alike (Agarwal et al. 2018)."""
    train = train.select_rows(subsample_positions(np.arange(len(train.target)), seed))
    positive = float(train.target.mean())
    errors = ErrorRate(costs={"fp": positive, "fn": 1 - positive})
    # the same, and faster with few columns
    regression = train.unfitted_logistic_regression.set_params(solver="newton-cholesky")
    model = ExponentiatedGradient(regression, EqualizedOdds(), objective=errors)
    model.fit(train.inputs, train.target, sensitive_features=train.bias)
    return model


REFERENCE_FITTERS: Mapping[str, ReferenceFit] = {
    fit.__name__: fit
    for fit in (
        majority,
        logistic_regression,
        logistic_regression_class_balanced,
        logistic_regression_cell_balanced,
        hist_gradient_boosting_class_balanced,
        threshold_optimizer,
        exponentiated_gradient,
    )
}
"""Function of each reference, by its name in `study.methods.reference.REFERENCES`."""


def fit_reference(name: str, train: ReferenceRows, seed: int) -> Any:
    """Fit the model of scikit-learn or fairlearn of this name.

    Args:
        name: of `REFERENCE_FITTERS`.
        train: what it is fitted to, see `ReferenceRows.for_fitting`.
        seed: of all that it draws.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few steps, or one library's use of another: nothing that a user can mend
        return REFERENCE_FITTERS[name](train, seed)


def measure_reference(model: Any, judged: Mapping[str, ReferenceRows], seed: int) -> dict[str, float]:
    """Judge a fitted model as trials are judged.

    Args:
        judged: the rows that it is judged by, under the split of their metrics: `val`, `test`.

    Returns:
        The metrics that need no scores, or all where the model ranks classes, as `SPLIT/NAME`, with their standard
        errors.
    """
    found = dict[str, float]()
    for split, rows in judged.items():
        values = metrics.compute_metrics(
            _class_scores(model, rows),
            torch.as_tensor(_predict_classes(model, rows, seed)),
            torch.as_tensor(np.asarray(rows.target)),
            None if rows.bias is None else torch.as_tensor(np.asarray(rows.bias)),
            rows.facts.facts_of_split(split),
            errors=True,
        )
        found |= {f"{split}/{name}": float(value) for name, value in values.items()}
    return found


def predictions_and_losses(
    model: Any, rows: ReferenceRows, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float32] | None]:
    """Return the class that a fitted model predicts for each row, (N,), and -log p of the row's own class, (N,).

    The second is None where the model does not rank classes.
    """
    ranking, target = _class_scores(model, rows), torch.as_tensor(np.asarray(rows.target))
    losses = None if ranking is None else log_loss_of_samples(ranking, target).float().numpy()
    return _predict_classes(model, rows, seed), losses


def _class_scores(model: Any, rows: ReferenceRows) -> torch.Tensor | None:
    if isinstance(model, ThresholdOptimizer | ExponentiatedGradient):
        return None
    return torch.as_tensor(score_classes_by_sklearn(model, rows.inputs, rows.facts.classes))


def _predict_classes(model: Any, rows: ReferenceRows, seed: int) -> NDArray[np.int64]:
    if isinstance(model, ThresholdOptimizer):
        found = model.predict(rows.inputs, sensitive_features=rows.bias, random_state=seed)
    elif isinstance(model, ExponentiatedGradient):
        found = model.predict(rows.inputs, random_state=seed)
    else:
        found = model.predict(rows.inputs)
    return np.asarray(found).astype(np.int64)
