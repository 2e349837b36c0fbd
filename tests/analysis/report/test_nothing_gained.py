"""Why a search gained nothing, from the baseline's accuracy with and against the bias."""

import pytest

from study.analysis.report.caveats import ALIGNED, CONFLICTING, ERROR, why_nothing_gained
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
    ("best", "known", "sentence"),
    [
        (0.9, (0.9,), None),  # it gained
        (0.5, (), None),
        (0.5, (0.9,), "No validation sample conflicts with the bias"),
        (0.5, (0.9, 0.3, 0.2), "Few validation samples conflict with the bias"),
        (0.5, (0.9, 0.3, 0.03), None),
    ],
)
def test_the_reason_is_computed(best: float, known: tuple[float, ...], sentence: str | None) -> None:
    reason = why_nothing_gained(load_study("fairkl_digits"), side("baseline", 0.5, known), side("trial 1", best))
    assert reason is None if sentence is None else reason is not None and reason.startswith(sentence)
