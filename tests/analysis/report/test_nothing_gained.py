"""Why a search gained nothing, from the baseline's accuracy with and against the bias."""

import pytest

from study.analysis.report.caveats import ALIGNED, CONFLICTING, ERROR, GainUnseen, why_nothing_gained
from study.home.record import Epoch, TrialRecord
from study.home.trial_record import Stretch
from study.ranking.difference import Side
from study.spec import load_study


def side(label: str, accuracy: float, known: tuple[float, ...] = ()) -> Side:
    """Two seeds of a configuration, two points apart, with what is known of aligned and conflicting samples."""
    metrics = dict(zip((ALIGNED, CONFLICTING, ERROR), known, strict=False))
    epochs = [Epoch(1, {"val/accuracy": accuracy + change, **metrics}) for change in (-0.01, 0.01)]
    trials = [
        TrialRecord(0, "confirm", {}, seed, stretches=[Stretch(state="complete", reports=[epoch])])
        for seed, epoch in enumerate(epochs)
    ]
    return Side(label, 0, trials, load_study("fairkl_digits"))


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
    reason = why_nothing_gained(load_study("fairkl_digits"), side("baseline", 0.5, known), side("trial 1", best))
    assert reason == (None if error is False else GainUnseen(error))
