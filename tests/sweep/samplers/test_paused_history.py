"""A configuration that is paused: a sampler learns from it as from a pruned one, until it is told of again."""

import pytest
from helpers import quickstart
from optuna.trial import TrialState

from study.home.events import State
from study.spec.objective import Score
from study.sweep.samplers.history import History, TrialEnd

PARAMS = {"method.alpha": 0.5, "method.lambda": 1.0, "method.epsilon": 0.25}


def course(*values: float) -> list[tuple[int, Score]]:
    return [(epoch, Score((value,), (value,))) for epoch, value in enumerate(values, start=1)]


@pytest.mark.parametrize("last", ["complete", "pruned", "failed"])
def test_it_is_told_again(last: State) -> None:
    history = History(quickstart())
    for number in (0, 1):
        history.adopt(number, {**PARAMS, "method.lambda": float(number)})
    for values in ((0.5,), (0.5, 0.6)):
        assert not history.tell(TrialEnd(0, "paused", course(*values)))
        seen = history.window(10, 10, pruned=True)
        assert [trial.number for trial in seen] == [0, 1]
        assert (seen[0].state, list(seen[0].intermediate_values.values())) == (TrialState.PRUNED, list(values))
    score = Score((0.7,), (0.7,)) if last == "complete" else None
    assert history.tell(TrialEnd(0, last, course(0.5, 0.6, 0.7), score))
    assert not history.tell(TrialEnd(0, last)), "it has ended"
    states = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED}
    seen = history.window(10, 10, pruned=True)
    assert [trial.state for trial in seen if trial.number == 0] == [states[one] for one in (last,) if one in states]
