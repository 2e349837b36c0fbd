"""What the live page shows, from the ledger as it grows: each line is read once."""

import math
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

from study import ranking
from study.analysis.statistics.frame import thin
from study.commands.live.trade_off import sentences, trade_off
from study.commands.progress import pace
from study.home import ledger
from study.home.collection import uncollected
from study.home.events import ENDED
from study.home.folder import StudyFolder
from study.home.record import StudyRecord, TrialRecord
from study.ranking import epochs
from study.spec import StudySpec

MOST_MARKS = 2000
"""Trials in a figure at most, evenly chosen; the best hundred are always among them."""

MOST_CURVES, MOST_POINTS = 60, 100
"""Learning curves at most, and points of each."""

MOST_ROWS = 100
"""Trials in the table of those that run."""

REST = 9.0
"""For how many times as long as it took to make a document it is given again: the driver may need the same CPU."""

SLICE = 0.5
"""Seconds for which a ledger is read before the page is answered."""


class LiveState:
    """A study's record, kept up with its ledger, and the page's document made from it.

    It may be asked by several threads at once.

    Attributes:
        spec: the study.
    """

    def __init__(self, folder: StudyFolder) -> None:
        self.spec: StudySpec = folder.spec()
        self._folder = folder
        self._tail, self._record = ledger.Tail(folder.ledger_file), StudyRecord()
        self._lock = threading.Lock()
        self._values: dict[int, float | None] = {}  # of the trials that have ended
        self._document: dict[str, Any] = {}
        self._made_from: tuple[int, bool] | None = None
        self._rests_until = 0.0

    def document(self) -> dict[str, Any]:
        """All that the page shows, as plain values; while a long ledger is read, `reading` alone: the share so far.

        Raises:
            UserError: the ledger is damaged.
        """
        with self._lock:
            if not self._read(SLICE):
                return {"reading": self._tail.offset / max(1, self._folder.ledger_file.stat().st_size)}
            if time.monotonic() < self._rests_until:
                return self._document
            began, made_from = time.monotonic(), (self._tail.offset, ledger.is_open(self._folder.ledger_file))
            if made_from != self._made_from:
                self._document, self._made_from = self._made(is_open=made_from[1]), made_from
                now = time.monotonic()
                self._rests_until = now + REST * (now - began)
            return self._document

    def record(self) -> StudyRecord:
        """What the ledger says at this moment, for what a user asks; not to be changed.

        Raises:
            UserError: the ledger is damaged.
        """
        with self._lock:
            self._read()
            return self._record

    def _read(self, seconds: float = math.inf) -> bool:
        """Read on, for so long at most; says whether all is read."""
        until = time.monotonic() + seconds
        with uncollected():
            for event in self._tail.new():
                self._record.apply(event)
                if event["event"] == "started":  # a final trial may run again
                    self._values.pop(event["trial"], None)
                if time.monotonic() > until:
                    return False
        return True

    def _made(self, is_open: bool) -> dict[str, Any]:
        spec, record = self.spec, self._record
        searched = list(record.by_stage("baseline", "search"))
        values = self._of_ended(searched)
        with ranking.ranked_once(record):
            best, reference = ranking.best(record, spec), ranking.baseline(record, spec)
            rate = pace(spec, record)
            drawn = self._drawn_marks(searched, values)
            further = sentences(spec, record, best, reference)
            trade = trade_off(spec, record, drawn)
        state = record.state if is_open or record.state != "running" else "interrupted"
        running = [trial for trial in record.trials.values() if trial.state == "running"] if is_open else []
        limit = record.limit(spec.trials)
        over = record.ending or len(searched) >= limit or state == "complete" or spec.final_seeds is not None
        return {
            "version": self._tail.offset,
            "name": spec.name,
            "state": state,
            "running": is_open,
            "metric": spec.metric,
            "mode": spec.mode,
            "percent": spec.metric.rsplit("/", 1)[-1].endswith("accuracy"),
            "epochs": spec.epochs,
            "counts": {name: count for name, count in record.counts().items() if count},
            "tried": len(searched),
            "limit": limit,
            "over": over,
            "ended_by": record.enough,
            "pace": rate,
            "best": _candidate(best),
            "baseline": _candidate(reference),
            "keys": [_key(spec, key) for key in spec.space.domains],
            "waiting": self._not_tried(),
            "now": [_row(spec, trial) for trial in running[:MOST_ROWS]],
            "more_now": max(0, len(running) - MOST_ROWS),
            "marks": self._marks(drawn, values),
            "further": further,
            "trade": trade,
            "steps": _steps(spec, searched, values),
            "curves": [
                _curve(spec, trial, kind) for kind, trial in self._with_curves(searched, running, best, reference)
            ],
            "answers": dict(list(record.requests.items())[-20:]),
        }

    def _of_ended(self, trials: Iterable[TrialRecord]) -> dict[int, float | None]:
        for trial in trials:
            if trial.state in ENDED and trial.number not in self._values:
                value = epochs.value(self.spec.objective, trial, self.spec.metric) if trial.reports else None
                self._values[trial.number] = value
        return self._values

    def _not_tried(self) -> list[dict[str, Any]]:
        tried = sum(trial.enqueued for trial in self._record.trials.values())
        return self._record.enqueued[tried:]

    def _drawn_marks(self, trials: Sequence[TrialRecord], values: dict[int, float | None]) -> list[TrialRecord]:
        """The trials that have ended with a value: the best of them, and others evenly chosen."""
        ended = [trial for trial in trials if values.get(trial.number) is not None]
        if len(ended) > MOST_MARKS:
            worst_first = sorted(ended, key=lambda trial: values[trial.number] or 0.0, reverse=self.spec.mode == "min")
            kept = {trial.number for trial in worst_first[-100:]}
            kept |= {trial.number for trial in thin(ended, MOST_MARKS - 100)}
            ended = [trial for trial in ended if trial.number in kept]
        return ended

    def _marks(self, ended: Sequence[TrialRecord], values: dict[int, float | None]) -> dict[str, list[Any]]:
        """Columns of these trials."""
        columns: dict[str, list[Any]] = {
            "trial": [trial.number for trial in ended],
            "value": [values[trial.number] for trial in ended],
            "state": [trial.state if trial.stage == "search" else trial.stage for trial in ended],
        }
        return columns | {key: [trial.params.get(key) for trial in ended] for key in self.spec.space.domains}

    def _with_curves(
        self,
        searched: Sequence[TrialRecord],
        running: Sequence[TrialRecord],
        best: ranking.Candidate | None,
        reference: ranking.Candidate | None,
    ) -> list[tuple[str, TrialRecord]]:
        """The trials whose curves are drawn, by kind, the most important last."""
        named = [("baseline", reference.trial)] if reference else []
        named += [("best", best.trial)] if best and best.trial.stage != "baseline" else []
        live = [("running", trial) for trial in running[: MOST_CURVES // 3] if trial.reports]
        known = {trial.number for _, trial in named + live}
        ended = [trial for trial in searched if trial.state in ENDED and trial.reports and trial.number not in known]
        others = [(trial.state, trial) for trial in thin(ended, MOST_CURVES - len(live))]
        return [*others, *live, *named]


def _candidate(candidate: ranking.Candidate | None) -> dict[str, Any] | None:
    if candidate is None:
        return None
    confirmed = candidate.confirmed.to_document() if candidate.confirmed else None
    trial = candidate.trial
    return {"trial": trial.number, "value": candidate.value, "params": trial.params, "confirmed": confirmed}


def _key(spec: StudySpec, key: str) -> dict[str, Any]:
    domain = spec.space.domains[key]
    return {"key": key, "low": domain.low, "high": domain.high, "log": domain.log, "choices": domain.choices}


def _row(spec: StudySpec, trial: TrialRecord) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "stage": trial.stage,
        "epoch": trial.epochs,
        "value": trial.last(spec.metric),
        "params": trial.params,
        "stopping": trial.stops_at is not None,
        "stoppable": trial.stage in ("search", "replicate") and trial.stops_at is None,
    }


def _steps(spec: StudySpec, trials: Sequence[TrialRecord], values: dict[int, float | None]) -> dict[str, list[Any]]:
    """The best value so far: each trial of the search that raised it, and the last one."""
    steps: dict[str, list[Any]] = {"trial": [], "value": []}
    last = None
    for trial in trials:
        value = values.get(trial.number)
        if trial.stage != "search" or trial.state != "complete" or value is None:
            continue
        last = trial.number
        if not steps["value"] or spec.better(value, steps["value"][-1]):
            steps["trial"].append(trial.number)
            steps["value"].append(value)
    if last is not None and steps["trial"][-1] != last:
        steps["trial"].append(last)
        steps["value"].append(steps["value"][-1])
    return steps


def _curve(spec: StudySpec, trial: TrialRecord, kind: str) -> dict[str, Any]:
    reports = list(thin(trial.reports[:-1], MOST_POINTS - 1)) + trial.reports[-1:]
    points = [(report["epoch"], report.get(spec.metric)) for report in reports]
    return {
        "trial": trial.number,
        "kind": kind,
        "epoch": [epoch for epoch, _ in points],
        "value": [value for _, value in points],
    }
