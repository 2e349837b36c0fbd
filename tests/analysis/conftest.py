"""Studies for the tests: real ledgers, written event by event and folded as every reader folds them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from ablated_study import BASELINE, PARAMS, write_ablation
from helpers import quickstart

from study.analysis.figures.style import MATPLOTLIB_RC_PARAMS
from study.commands.final_training import final_training_spec
from study.home.events import (
    EpochReported,
    Event,
    SessionClosed,
    SessionOpened,
    TrialDecided,
    TrialEnded,
    TrialStarted,
    TrialTested,
)
from study.home.ledger import Ledger
from study.home.record import StudyRecord
from study.spec import StudySpec


class Writer:
    """Writes a study's ledger; a trial starts 10 s after the one before it and takes 2 s per epoch."""

    def __init__(self, path: Path) -> None:
        Ledger.create(path)
        self.path, self.ledger, self.trials, self.clock = path, Ledger(path), count(), 1_800_000_000.0
        self.append(
            SessionOpened(
                owner="ada",
                libraries={"torch": "2.15.0"},
                commit="abc1234",
                data="0123456789abcdef",
                dataset="Digits (8 x 8)",
            )
        )

    def append(self, event: Event) -> None:
        self.ledger.append(replace(event, time=self.clock))

    def trial(
        self,
        stage: str,
        values: Sequence[float | None],
        state: str | None = "complete",
        test: float | None = None,
        metric: str = "val/accuracy",
        also: Mapping[str, float] | None = None,
        **given: Any,
    ) -> int:
        """One trial with its metric at each epoch, and others that stay; state None: it is still running."""
        number, reason = next(self.trials), given.pop("reason", None)
        default = BASELINE if stage == "baseline" else PARAMS
        self.append(TrialDecided(trial=number, stage=stage, **{"params": default, "seed": 0} | given))
        self.clock += 10.0
        self.append(TrialStarted(trial=number, node="here"))
        for epoch, value in enumerate(values, start=1):
            self.clock += 2.0
            metrics: dict[str, float | None] = {"train/loss": 2.0 / epoch, **(also or {})}
            self.append(EpochReported(trial=number, epoch=epoch, metrics=metrics | {metric: value}))
        if state:
            self.append(TrialEnded(trial=number, state=state, reason=reason))
        if test is not None:
            self.append(TrialTested(trial=number, metrics={"test/accuracy": test}))
        return number

    def record(self, state: str | None = "complete") -> StudyRecord:
        """Close the ledger and read it; state None: the driver is still at it."""
        if state:
            self.append(SessionClosed(state=state))
            self.ledger.close()
            return StudyRecord.load(self.path)
        record = StudyRecord.load(self.path)
        self.ledger.close()
        return record


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures as files cost little: few pixels."""
    monkeypatch.setitem(MATPLOTLIB_RC_PARAMS, "savefig.dpi", 40)


@pytest.fixture(scope="session")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Writer]:
    """Opens new ledgers."""
    return lambda: Writer(tmp_path_factory.mktemp("study") / "ledger.jsonl")


@pytest.fixture(scope="session")
def spec() -> StudySpec:
    """The quickstart, of 4 epochs."""
    return quickstart("train.epochs=4", "search.early_stopping.grace=1", "search.trials=5")


@pytest.fixture(scope="session")
def final_spec() -> StudySpec:
    """A configuration without a search, as `study train` runs it."""
    return final_training_spec(quickstart("train.epochs=4", "search.early_stopping.grace=1"), [0, 1], "trained")


@pytest.fixture(scope="session")
def frozen_ledger(writer: Callable[[], Writer]) -> Path:
    """A finished study: the luckiest trial of the search (4) is not the best on fresh seeds (1)."""
    study = writer()
    study.trial("baseline", [0.2, 0.3, 0.4, 0.56])
    study.trial("search", [0.3, 0.4, 0.5, 0.70], params=PARAMS)
    study.trial("search", [0.2], state="pruned", reason="ASHA at epoch 1", params=PARAMS | {"method.alpha": 0.5})
    study.trial("search", [], state="failed", reason="Diverged: loss is nan in epoch 1")
    study.trial("search", [0.3, 0.4, 0.5, 0.72], params=PARAMS | {"method.alpha": 0.123456})
    for seed, value, test in ((1, 0.50, 0.48), (2, 0.52, 0.50), (3, 0.54, 0.52)):
        study.trial("confirm", [0.3, value], seed=seed, repeats=0, params=BASELINE, test=test)
    for seed, value, test in ((1, 0.70, 0.68), (2, 0.74, 0.70), (3, 0.78, 0.72)):
        study.trial("confirm", [0.3, value], seed=seed, repeats=1, test=test)
    for seed, value in ((1, 0.60), (2, 0.70), (3, 0.80)):
        study.trial("confirm", [0.3, value], seed=seed, repeats=4, params=PARAMS | {"method.alpha": 0.123456})
    study.record()
    return study.path


@pytest.fixture(scope="session")
def frozen(frozen_ledger: Path) -> StudyRecord:
    """What it tells."""
    return StudyRecord.load(frozen_ledger)


@pytest.fixture(scope="session")
def wide(writer: Callable[[], Writer]) -> StudyRecord:
    """A study of which every figure can be drawn: alpha alone decides, gaps and worst groups differ."""
    study = writer()
    fair = {"val/equalized_odds": 0.2, "val/worst_group_accuracy": 0.3}
    study.trial("baseline", [0.3, 0.4, 0.45, 0.5], also=fair)
    for number in range(14):
        alpha = 10 ** (-2 * number / 13)
        params = {
            "method.alpha": alpha,
            "method.lambda": number * 0.618 % 2,
            "method.epsilon": [0.0, 0.1, 0.5][number % 3],
        }
        value = 0.9 - 0.3 * number / 13
        fair = {"val/equalized_odds": 0.05 + value / 10, "val/worst_group_accuracy": value - 0.1}
        study.trial("search", [0.2, 0.3, value - 0.1, value], params=params, also=fair)
    study.trial("search", [0.2], state="pruned", params=params, also=fair)
    for repeats, value in ((0, 0.5), (1, 0.85)):
        for seed in (1, 2):
            study.trial("confirm", [value, value + seed / 100], seed=seed, repeats=repeats, also=fair, test=value)
    write_ablation(
        study, 3, {"method.alpha": 10 ** (-4 / 13), "method.lambda": 1.236, "method.epsilon": 0.5}, also=fair
    )
    return study.record()
