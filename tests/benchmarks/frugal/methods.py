"""The searches that are compared, each as a study file would ask for it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from study.home.events import State
from study.spec import StudySpec
from study.spec.objective import Score
from study.spec.schema import EarlyStopping as Rule
from study.sweep.early_stopping import early_stopping
from study.sweep.sampler import Sampler, TrialEnd


class Production:
    """The sampler and the rule of a study, told of everything as a study's search tells them."""

    def __init__(self, spec: StudySpec) -> None:
        self.spec, self.sampler, self.rule = spec, Sampler(spec), early_stopping(spec)
        self.courses: dict[int, list[tuple[int, Score]]] = {}

    def propose(self, number: int) -> dict[str, Any]:
        params = self.sampler._strategy.suggest(number)
        assert params is not None
        return params

    def begun(self, number: int, params: dict[str, Any]) -> None:
        self.sampler.adopt(number, params)
        self.rule.decided(number, params)
        self.courses[number] = []

    def hear(self, number: int, epoch: int, score: Score) -> str:
        """on, pause, or end; after the last epoch always end."""
        course = self.courses[number]
        course.append((epoch, score))
        if epoch == self.spec.epochs:
            self.rule.completed(number, score)
            return self._ended(number, "complete", score)
        verdict = self.rule.judge(number, epoch, score)
        if verdict == "pause":
            self.sampler.tell(TrialEnd(number, "paused", course))
        return self._ended(number, "pruned", None) if verdict == "prune" else verdict

    def thaw(self, more: bool) -> int | None:
        """Which paused trial goes on; None: a new one begins."""
        trial = self.rule.thaw(more)
        if trial is not None:
            self.rule.thawed(trial)
        return trial

    def _ended(self, number: int, state: State, score: Score | None) -> str:
        self.rule.ended(number, state)
        self.sampler.tell(TrialEnd(number, state, self.courses[number], score))
        return "end"


Make = Callable[[StudySpec], Production]


def search(sampler: str, name: str = "none", **rule: Any) -> Make:
    """A sampler with a rule, whose grace is that of the table's study unless it is given."""

    def make(spec: StudySpec) -> Production:
        given = {"grace": spec.search.early_stopping.grace, "reduction": 3, **rule}
        stopping = Rule(name=name, **given)  # type: ignore[arg-type]
        update = {"sampler": sampler, "early_stopping": stopping}
        return Production(replace(spec, search=spec.search.model_copy(update=update)))

    return make


def at_half(sampler: str) -> Make:
    """ASHA whose first rung is half of the epochs, as a study file that gives no grace has it."""
    return search(sampler, "asha", grace=None)


METHODS: dict[str, Make] = {
    "random": search("random"),
    "tpe": search("tpe"),
    "gp": search("gp"),
    "mfgp": search("mfgp"),
    "random + asha": search("random", "asha"),
    "tpe + asha": search("tpe", "asha"),
    "mfgp + asha": search("mfgp", "asha"),
    "tpe + median": search("tpe", "median"),
    "tpe + hyperband": search("tpe", "hyperband"),
    "tpe + promotion": search("tpe", "promotion"),
    "mfgp + promotion": search("mfgp", "promotion"),
    "tpe + asha at half": at_half("tpe"),
    "mfgp + asha at half": at_half("mfgp"),
    "tpe + freeze_thaw": search("tpe", "freeze_thaw", reduction=2),
    "mfgp + freeze_thaw": search("mfgp", "freeze_thaw", reduction=2),
}
EARLY = "tpe + asha"
"""ASHA at a fifth of the epochs or before, of 24 trials: the 1.0 of every comparison."""
TRIALS = (6, 8, 10, 12, 24)
"""Of studies that are not played until the budget is spent."""
