"""Equalize odds after training: a threshold for each bias class (WCL paper Table 3, "Eq. Odds"; Hardt et al. 2016).

It imports fairlearn and scikit-learn: import it only where it is used, so that a trial without it needs neither.
"""

from dataclasses import dataclass

import numpy as np
import torch
from fairlearn.postprocessing import ThresholdOptimizer
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor

from study.errors import UserError

NumberArray = NDArray[np.number]


@dataclass(frozen=True)
class EqualizedOddsThresholds:
    """A randomised threshold for each bias class; see `fit_equalized_odds_thresholds`."""

    optimizer: ThresholdOptimizer
    bias_classes: frozenset[int]

    def predict(self, scores: Tensor, bias: Tensor, seed: int) -> Tensor:
        """Predict classes 0 or 1, int64 (N,) on the scores' device.

        Args:
            scores: logits, (N, 2), from the classifier whose scores `fit_equalized_odds_thresholds` had.
            bias: bias classes, (N,).
            seed: of the draws between two thresholds.

        Raises:
            UserError: a bias class that `fit_equalized_odds_thresholds` did not see.
        """
        groups = _to_numpy(bias)
        if unseen := sorted(set(groups.tolist()) - self.bias_classes):
            raise UserError(
                f"equalized odds: bias classes {unseen} are not among those that the thresholds were fitted to, "
                f"{sorted(self.bias_classes)}: fit them on a split that has all of them"
            )
        predicted = self.optimizer.predict(_score_margin(scores), sensitive_features=groups, random_state=seed)
        return torch.as_tensor(np.asarray(predicted).astype(np.int64), device=scores.device)


def fit_equalized_odds_thresholds(scores: Tensor, target: Tensor, bias: Tensor) -> EqualizedOddsThresholds:
    """Fit the thresholds of highest accuracy with which true and false positive rates are equal in all bias classes.

    Args:
        scores: logits of any classifier, (N, 2), on a split that may choose: training or validation.
        target: classes 0 and 1, (N,); samples of -1 are left out.
        bias: bias classes, (N,); samples of -1 are left out.

    Raises:
        UserError: not two classes, or a bias class without samples of both.
    """
    if scores.ndim != 2 or scores.shape[1] != 2:
        raise UserError(
            f"equalized odds by thresholds is for two classes, got scores of shape {tuple(scores.shape)}: "
            "choose a data set or a target with two classes"
        )
    labelled = (target >= 0) & (bias >= 0)
    labels, groups = _to_numpy(target[labelled]), _to_numpy(bias[labelled])
    _check_each_group_has_both_classes(labels, groups)
    optimizer = ThresholdOptimizer(
        estimator=_ScoreMarginClassifier(),
        constraints="equalized_odds",
        prefit=True,
        predict_method="decision_function",
    )
    optimizer.fit(_score_margin(scores[labelled]), labels, sensitive_features=groups)
    return EqualizedOddsThresholds(optimizer, frozenset(groups.tolist()))


class _ScoreMarginClassifier(BaseEstimator):
    """The classifier that fairlearn asks for: its inputs are the scores already."""

    def fit(self, inputs: NumberArray, target: NumberArray) -> "_ScoreMarginClassifier":
        return self

    def decision_function(self, inputs: NumberArray) -> NumberArray:
        return np.asarray(inputs)[:, 0]

    def __sklearn_is_fitted__(self) -> bool:
        return True


def _check_each_group_has_both_classes(labels: NumberArray, groups: NumberArray) -> None:
    if not len(labels):
        raise UserError("equalized odds by thresholds: no sample has both a class and a bias class")
    if labels.max() > 1:
        raise UserError(f"equalized odds by thresholds is for classes 0 and 1, got class {labels.max()}")
    for group in np.unique(groups):
        seen = np.unique(labels[groups == group])
        if len(seen) < 2:
            raise UserError(
                f"equalized odds by thresholds: every sample of bias class {group} has class {seen[0]}, and a true "
                "and a false positive rate need both: fit them on a larger split"
            )


def _score_margin(scores: Tensor) -> NumberArray:
    return _to_numpy(scores[:, 1].double() - scores[:, 0].double())[:, None]


def _to_numpy(values: Tensor) -> NumberArray:
    return values.detach().cpu().numpy()
