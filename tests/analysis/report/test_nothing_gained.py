"""Why a search gained nothing, from the baseline's accuracy with and against the bias."""

import pytest

from study.analysis.report.caveats import (
    ALIGNED_METRIC,
    CONFLICTING_ERROR_METRIC,
    CONFLICTING_METRIC,
    GainHiddenInValidation,
    find_gain_hidden_in_validation,
)
from study.home.record import EpochMetrics, TrialRecord
from study.ranking.arms import Arm
from study.spec import load_study


def arm(label: str, accuracy: float, known: tuple[float, ...] = ()) -> Arm:
    """Two seeds of a configuration, two points apart, with what is known of aligned and conflicting samples."""
    metrics = dict(zip((ALIGNED_METRIC, CONFLICTING_METRIC, CONFLICTING_ERROR_METRIC), known, strict=False))
    epochs = [EpochMetrics(1, {"val/accuracy": accuracy + change, **metrics}) for change in (-0.01, 0.01)]
    trials = [
        TrialRecord(0, "confirm", {}, seed, state="complete", reports=[epoch]) for seed, epoch in enumerate(epochs)
    ]
    return Arm(label, 0, trials, load_study("fairkl_digits"))


@pytest.mark.parametrize(
    ("best", "known", "error"),
    [
        (0.9, (0.9,), False),  # it gained
        (0.5, (), False),
        (0.5, (0.9,), None),
        (0.5, (0.9, 0.3, 0.2), 0.2),
        (0.5, (0.9, 0.3, 0.03), False),
    ],
)
def test_the_reason_is_computed(best: float, known: tuple[float, ...], error: float | bool | None) -> None:
    reason = find_gain_hidden_in_validation(
        load_study("fairkl_digits"), arm("baseline", 0.5, known), arm("trial 1", best)
    )
    assert reason == (None if error is False else GainHiddenInValidation(error))
