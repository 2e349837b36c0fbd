"""No early stopping."""

from study.spec.objective import Score
from study.sweep.early_stopping import EarlyStopping, Verdict


class NoEarlyStopping(EarlyStopping):
    """Rule that runs every trial in full."""

    def judge(self, trial: int, epoch: int, score: Score) -> Verdict:
        return "on"
