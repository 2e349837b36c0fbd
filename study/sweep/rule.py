"""What a rule of early stopping hears and decides. It is fed from the ledger, so that a resumed study decides as an
uninterrupted one: it hears every report of every searched trial in the ledger's order, and draws nothing at random.
"""

from abc import ABC, abstractmethod
from typing import Literal

from study.spec.objective import Score

Verdict = Literal["on", "prune"]


class EarlyStopping(ABC):
    """Says of each searched trial whether it goes on; of several seeds of a configuration it hears the first."""

    name: str

    @abstractmethod
    def judge(self, trial: int, epoch: int, score: Score) -> Verdict:
        """What becomes of a trial after this epoch; never asked of the last epoch of a full run.

        Hearing an epoch of a trial again changes nothing, and is answered by "on".
        """

    def prunes(self, trial: int, epoch: int, score: Score) -> bool:
        """Whether `judge` ends the trial here."""
        return self.judge(trial, epoch, score) == "prune"
