"""What processes report that train several trials as one, told to the agenda row by row, and what they are answered.

A report has `turn`, which counts a process's reports, and `rows`, a JSON list; each entry has `trial` and `run` and

* `behind` and `note`: it begins, see `Agenda.started`;
* `epoch` and `metrics`: an epoch is over;
* `diverged`: it is over, and why;
* `apart`: it has to be trained by itself, and why.

The answer is there before Tune asks the process for its next report: which rows leave, and which works join.
"""

import json
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ray.tune.experiment import Trial as TuneTrial

from study.sweep.agenda import Agenda
from study.sweep.failures import Failure
from study.sweep.stack_jobs import Row, StackJobs
from study.sweep.stack_words import key
from study.upstream.ray_internals import leave_word


class StackReports:
    """Hears such processes.

    Args:
        agenda: of the study.
        jobs: knows which rows a process has.
        tidy: is called for each trial that was heard of.
    """

    def __init__(self, agenda: Agenda, jobs: StackJobs, tidy: Callable[[int], None]) -> None:
        self._agenda, self._jobs, self._tidy = agenda, jobs, tidy
        self._turns: dict[str, int] = {}

    def begin(self, trial: TuneTrial, node: str, device: Mapping[str, str]) -> None:
        """Note the start of the rows that begin from their first epoch in a known process: they do not tell."""
        if self._agenda.stopping:
            return
        for row in self._jobs.rows(trial.trial_id).values():
            if not row.begun and not row.job.trial.epochs and self._is_current(row):
                row.begun = True
                stack = sorted(self._jobs.rows(trial.trial_id))
                self._agenda.started(row.trial.number, node, device=device, stack=stack)

    def heard(self, trial: TuneTrial, result: Mapping[str, Any], node: str, device: Mapping[str, str]) -> bool:
        """A process reported. Says whether it goes on; then it has its answer."""
        name, turn, rows = trial.trial_id, result.get("turn", 0), self._jobs.rows(trial.trial_id)
        if not rows or turn <= self._turns.get(name, 0):
            return bool(rows)  # Tune repeats the last result when a process's work is over
        self._turns[name] = turn
        told, stack = json.loads(result["rows"]), sorted(rows)
        if len(told) == len(rows) and all("metrics" in entry for entry in told):
            self._jobs.took(name, result["took"])
        leave = [
            (entry["trial"], entry["run"])
            for entry in told
            if not self._goes_on(rows.get(entry["trial"]), entry, node, device, stack)
        ]
        for entry in told:
            self._tidy(entry["trial"])
        for number, run in leave:
            if number in rows and rows[number].run == run:
                del rows[number]
        joining = [] if self._agenda.stopping else self._jobs.joining(name)
        if leave or joining:
            works = [self._jobs.work(row) for row in joining]
            self._agenda.journal.sync()
            leave_word(key(name, turn), pickle.dumps({"leave": leave, "join": works}))
        self.begin(trial, node, device)
        goes_on = bool(rows) and not self._agenda.stopping
        if not goes_on:
            self._forget(name)
        return goes_on

    def slowest(self, result: Mapping[str, Any]) -> tuple[int | None, float | None]:
        """The epoch that is nearest to its end, of those reported, and the seconds that the process took for all."""
        told = [entry for entry in json.loads(result["rows"]) if "metrics" in entry]
        if not told:
            return None, None
        return max(entry["epoch"] for entry in told), _seconds(told)

    def failed(self, trial: TuneTrial, failure: Failure, write: Callable[[int], None]) -> None:
        """A process ended before its rows did.

        Args:
            write: keeps the error of a trial.
        """
        name = trial.trial_id
        rows = self._forget(name, failure)
        shared = len(rows) > 1 or failure.kind == "BUG"
        if shared and not failure.node_died:
            failure = Failure(failure.kind, failure.reason, stacked=True)
        for row in rows:
            if self._is_current(row):
                write(row.trial.number)
                self._agenda.failed(row.trial.number, failure)
                self._tidy(row.trial.number)

    def over(self, trial: TuneTrial) -> None:
        """A process's work is over; rows that it leaves behind ended before their last epoch."""
        for row in self._forget(trial.trial_id):
            if self._is_current(row) and not self._agenda.stopping:
                self._agenda.failed(row.trial.number, Failure("BUG", "ended before its last epoch"))

    def _forget(self, name: str, failure: Failure | None = None) -> list[Row]:
        self._turns.pop(name, None)
        return self._jobs.ended(name, failure)

    def _goes_on(
        self, row: Row | None, entry: Mapping[str, Any], node: str, device: Mapping[str, str], stack: list[int]
    ) -> bool:
        number, agenda, goes_on = entry["trial"], self._agenda, True
        if row is None or row.run != entry["run"] or not self._is_current(row) or agenda.stopping:
            return False
        if "behind" in entry:
            row.begun = True
            goes_on = agenda.started(number, node, entry["behind"], entry.get("note"), device, stack)
        if not goes_on:
            return False
        if "diverged" in entry:
            agenda.failed(number, Failure("DIVERGED", f"diverged: {entry['diverged']}"))
            goes_on = False
        elif "apart" in entry:
            self._jobs.set_apart(number)
            agenda.failed(number, Failure("BUG", f"cannot be trained with others: {entry['apart']}", stacked=True))
            goes_on = False
        elif "metrics" in entry:
            goes_on = agenda.reported(number, entry["epoch"], entry["metrics"])
        return goes_on

    def _is_current(self, row: Row) -> bool:
        return row.run == row.trial.run


def _seconds(entries: Sequence[Mapping[str, Any]]) -> float:
    """What a process took for an epoch of all rows: each has its share of it."""
    return sum(float(entry["metrics"].get("time/epoch", 0.0)) for entry in entries)
