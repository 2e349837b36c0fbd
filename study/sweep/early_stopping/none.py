"""No early stopping."""

from study.spec.objective import Score
from study.sweep.early_stopping import EarlyStopping, Verdict


class NoEarlyStopping(EarlyStopping):
    """Every trial runs in full."""

    def judge(self, trial: int, epoch: int, score: Score) -> Verdict:
        return "on"
