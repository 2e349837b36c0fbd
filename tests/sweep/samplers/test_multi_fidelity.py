"""The Gaussian process over (configuration, epoch), as it searches several metrics."""

from statistics import fmean

import pytest
from helpers import quickstart

from study.errors import UserError
from study.spec import StudySpec
from study.spec.objective import Score
from study.sweep.sampler import Sampler, TrialEnd

ONE = "search.space={method.alpha: {low: 0.0, high: 1.0}}"
TWO = "search.metric=[val/accuracy, val/equalized_odds]"
LIMITED = "search.constraints=[val/equalized_odds <= 0.1]"


def spec_of(aims: str) -> StudySpec:
    return quickstart("search.sampler=mfgp", "search.baseline=null", ONE, aims)


def score(*gains: float) -> Score:
    return Score(gains, gains)


def of_two(pruned: bool = False) -> list[float]:
    """The places of suggestions where one metric is best at 0.3, the other at 0.7, and what lies between is a
    trade-off; `pruned`: every second one is stopped at half of its epochs."""
    sampler, places = Sampler(spec_of(TWO)), []
    for number in range(20):
        place = (sampler.ask(number) or {})["method.alpha"]
        gap = (place - 0.7) ** 2
        course = [
            (epoch, Score((epoch / 20 - (place - 0.3) ** 2, gap), (epoch / 20 - (place - 0.3) ** 2, -gap)))
            for epoch in range(1, 11 if pruned and number % 2 else 21)
        ]
        stopped = len(course) < 20
        sampler.tell(TrialEnd(number, "pruned" if stopped else "complete", course, None if stopped else course[-1][1]))
        places.append(place)
    return places


@pytest.mark.parametrize("pruned", [False, True])
def test_of_two_metrics_it_tries_the_whole_trade_off(pruned: bool) -> None:
    later = of_two(pruned)[8:]
    between = [place for place in later if 0.25 <= place <= 0.75]
    assert len(between) >= 10
    assert min(between) < 0.4
    assert max(between) > 0.6


def test_a_metric_that_ends_alike_everywhere_does_not_hide_the_other() -> None:
    """As the worst group's accuracy does, which is 0 with all; another study had other units."""
    sampler, places = Sampler(spec_of(TWO)), []
    sampler.learn([({"method.alpha": place}, score(100.0 + place, -50.0)) for place in (0.1, 0.5, 0.9)])
    for number in range(16):
        place = (sampler.ask(number) or {})["method.alpha"]
        gains = [(0.5 - (place - 0.3) ** 2, -0.01 if epoch < 20 else 0.0) for epoch in range(1, 21)]
        course = [(epoch, score(*gain)) for epoch, gain in enumerate(gains, 1)]
        stopped = number % 2 == 1
        end = None if stopped else course[-1][1]
        sampler.tell(TrialEnd(number, "pruned" if stopped else "complete", course[: 10 if stopped else 20], end))
        places.append(abs(place - 0.3))
    assert fmean(places[8:]) < 0.15


def test_constraints_are_refused() -> None:
    with pytest.raises(UserError, match="'mfgp' given with constraints"):
        spec_of(LIMITED)
