"""What a rule of early stopping hears and decides. It is fed from the ledger, so that a resumed study decides as an
uninterrupted one: it hears every decision, report, pause, thaw and end of every searched trial in the ledger's order,
and draws nothing at random.
"""

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping
from typing import Any, Literal

from study.home.events import State
from study.spec.objective import Score

Verdict = Literal["on", "pause", "prune"]


class EarlyStopping(ABC):
    """Hears of each searched trial and says whether it goes on, pauses or is pruned, and which paused one goes on.

    A rule that pauses nothing has to say `judge` alone. Of several seeds of a configuration it hears the first.
    """

    name: str

    @abstractmethod
    def judge(self, trial: int, epoch: int, score: Score) -> Verdict:
        """What becomes of a trial after this epoch; never asked of the last epoch of a full run.

        Hearing an epoch of a trial again changes nothing, and is answered by "on".
        """

    def prunes(self, trial: int, epoch: int, score: Score) -> bool:
        """Whether `judge` ends the trial here."""
        return self.judge(trial, epoch, score) == "prune"

    def pauses_at(self, trial: int) -> Container[int]:
        """Epochs behind which the trial may pause: its state is kept there, before the report. One that pauses behind
        another epoch goes on from the last state that was kept, and reports the epochs since then again."""
        return ()

    def decided(self, trial: int, params: Mapping[str, Any]) -> None:  # noqa: B027 (most remember nothing)
        """The search has this trial from now on."""

    def thaw(self, more: bool) -> int | None:
        """The paused trial that is to go on next; None: none is. It only asks: what came of it is told by `thawed`.

        Args:
            more: whether the search may begin new trials. If it may not, None is said and no searched trial runs or
                waits for a process, then those that are paused end as pruned.
        """
        return None

    def thawed(self, trial: int) -> None:  # noqa: B027
        """A paused trial goes on."""

    def completed(self, trial: int, score: Score) -> None:  # noqa: B027
        """A trial ran in full and was worth this at its end; told before `ended`."""

    def ended(self, trial: int, state: State) -> None:  # noqa: B027
        """A trial is complete, pruned or failed, whether it ran or was paused."""
