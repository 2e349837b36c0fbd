"""Which searched trials go on: Ray Tune's ASHA, fed from the ledger so that a resumed study keeps its cut-offs."""

from types import SimpleNamespace
from typing import Any, Protocol

from ray.tune.schedulers import ASHAScheduler, TrialScheduler

from study.objective import Score
from study.spec import StudySpec


class EarlyStopping(Protocol):
    """Hears the score of each searched trial's epochs and says which trial stops."""

    name: str

    def stops(self, trial: int, epoch: int, score: Score) -> bool:
        """Whether the trial stops after this epoch; never told of the last epoch of a full run."""


class NoEarlyStopping:
    """Every trial runs in full."""

    name = "none"

    def stops(self, trial: int, epoch: int, score: Score) -> bool:
        return False


class Asha:
    """Asynchronous successive halving (Li et al. 2018), one bracket, as Ray Tune implements it.

    A trial that reaches a rung (epoch `grace`, then each time `reduction` times as many) goes on if its metric is
    among the best 1/`reduction` of those seen at that rung. Hearing one rung of one trial twice changes nothing.
    """

    name = "asha"

    def __init__(self, spec: StudySpec) -> None:
        rule = spec.search.early_stopping
        self._scheduler: Any = ASHAScheduler(
            time_attr="epoch",
            metric="value",
            mode=spec.mode,
            max_t=spec.epochs,
            grace_period=rule.grace,
            reduction_factor=rule.reduction,
            stop_last_trials=False,
        )
        self._known: set[int] = set()

    def stops(self, trial: int, epoch: int, score: Score) -> bool:
        named = SimpleNamespace(trial_id=str(trial))
        if trial not in self._known:
            self._known.add(trial)
            self._scheduler.on_trial_add(None, named)
        decision = self._scheduler.on_trial_result(None, named, {"epoch": epoch, "value": score.values[0]})
        return bool(decision == TrialScheduler.STOP)


def early_stopping(spec: StudySpec) -> EarlyStopping:
    """The rule that a study asks for."""
    return Asha(spec) if spec.search.early_stopping.name == "asha" else NoEarlyStopping()
