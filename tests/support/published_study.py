"""A study of a published table whose ledger is written by a test."""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from study.home.events import EpochReported, SessionClosed, SessionOpened, TrialDecided, TrialEnded, TrialStarted
from study.home.folder import Home, StudyFolder
from study.home.ledger import Ledger
from study.spec import load_study


class Course:
    """Writes what happened in a study of a table, trial by trial."""

    def __init__(
        self, home: Home, table: str, *assignments: str, profile: str | None = None, name: str | None = None
    ) -> None:
        self.folder: StudyFolder = home.create_study(load_study(table, assignments, profile, name))
        self._ledger, self._number = Ledger(self.folder.ledger_file), count()
        self._ledger.append(SessionOpened(owner="ada", data="d", dataset="Biased-MNIST", spec="s"))

    def trial(
        self,
        params: Mapping[str, Any],
        seed: int,
        test: Iterable[float],
        state: str | None = "complete",
        further: Mapping[str, float] | None = None,
    ) -> None:
        """A trial with its test accuracy, and `further` metrics, at each epoch; `state` None: it still runs."""
        number = next(self._number)
        stage = {"stage": "search"} if seed == 0 else {"stage": "replicate", "repeats": number - seed}
        self._ledger.append(TrialDecided(trial=number, params=dict(params), seed=seed, **stage))
        self._ledger.append(TrialStarted(trial=number, node="here"))
        for epoch, value in enumerate(test, start=1):
            metrics = {"train/loss": 1.0, "val/accuracy": value - 0.01, "test/accuracy": value, **(further or {})}
            self._ledger.append(EpochReported(trial=number, epoch=epoch, metrics=metrics))
        if state:
            self._ledger.append(
                TrialEnded(trial=number, state=state, reason=None if state == "complete" else "because")
            )

    def close(self, state: str) -> StudyFolder:
        self._ledger.append(SessionClosed(state=state))
        self._ledger.close()
        return self.folder
