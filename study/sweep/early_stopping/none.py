"""No early stopping."""

from study.spec.objective import Score
from study.sweep.early_stopping import EarlyStopping


class NoEarlyStopping(EarlyStopping):
    """Rule that runs every trial in full."""

    def should_prune(self, trial: int, epoch: int, score: Score) -> bool:
        return False
