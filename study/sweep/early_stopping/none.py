"""No early stopping."""

from study.spec.declarations import Bracket
from study.spec.objective import Score
from study.spec.schema import EarlyStopping as Rule
from study.sweep.early_stopping import EarlyStopping, Verdict


class NoEarlyStopping(EarlyStopping):
    """Every trial runs in full."""

    about = "all trials run in full"

    def judge(self, trial: int, epoch: int, score: Score) -> Verdict:
        return "on"

    @classmethod
    def brackets(cls, rule: Rule, epochs: int) -> list[Bracket]:
        return [Bracket((), 1.0)]

    @classmethod
    def words(cls, rule: Rule, epochs: int) -> str:
        return "none"
