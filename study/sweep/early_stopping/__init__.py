"""Which searched trials go on: the rules, one per module, which is named as study files name it.

A rule is fed from the ledger, so that a resumed study decides as an uninterrupted one: it hears every report of every
searched trial in the ledger's order, and draws nothing at random.
"""

from abc import ABC, abstractmethod
from typing import Literal

from study.spec import StudySpec
from study.spec.declarations import Schedule, schedule
from study.spec.objective import Objective, Score
from study.spec.schema import EarlyStopping as Rule

Verdict = Literal["on", "prune"]


class EarlyStopping(Schedule, ABC):
    """Says of each searched trial whether it goes on; of several seeds of a configuration it hears the first.

    A rule is one module with one such class, which also says when it compares trials and what it should save, for plans
    and figures: `Schedule` has what it may say. This one, as `study/sweep/early_stopping/floor.py`, is all that
    `early_stopping: floor` needs:

        from study.spec.objective import Score
        from study.sweep.early_stopping import EarlyStopping, Verdict


        class Floor(EarlyStopping):
            \"\"\"Ends what is worth less than nothing at a rung.\"\"\"

            about = "a trial stops that is worth less than nothing at a rung"

            def judge(self, trial: int, epoch: int, score: Score) -> Verdict:
                is_rung = epoch in self.brackets(self.rule, self.epochs)[0].rungs
                return "prune" if is_rung and score.gains[0] < 0 else "on"

    Args:
        rule: of the study file.
        epochs: of a full run.
        objective: what scores are of.
    """

    def __init__(self, rule: Rule, epochs: int, objective: Objective) -> None:
        self.rule, self.epochs, self.objective = rule, epochs, objective
        self.name: str = rule.name

    @abstractmethod
    def judge(self, trial: int, epoch: int, score: Score) -> Verdict:
        """Return what becomes of a trial after this epoch; never asked of the last epoch of a full run.

        Hearing an epoch of a trial again changes nothing, and is answered by "on".
        """

    def prunes(self, trial: int, epoch: int, score: Score) -> bool:
        """Return whether `judge` ends the trial here."""
        return self.judge(trial, epoch, score) == "prune"


def early_stopping(spec: StudySpec) -> EarlyStopping:
    """The rule that a study asks for."""
    found = schedule(spec.search.early_stopping)
    assert issubclass(found, EarlyStopping)
    return found(spec.search.early_stopping, spec.epochs, spec.objective)
