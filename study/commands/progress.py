"""The numbers of a study while it runs, from its record, which they only read."""

import math
import time
from dataclasses import dataclass

from study import ranking
from study.commands.plan import confirm_trials, rule_trials
from study.home.events import ENDED, Stage
from study.home.record import StudyRecord, TrialRecord
from study.metrics import printed, searchable
from study.ranking import Candidate, Results, ablation_steps
from study.spec import StudySpec, objective
from study.sweep import LOADING, STARTING, STEPS, STOPPING

SEARCHING = "searching"
EXTENDING = "extending"
"""Trials go on beyond the end that they had."""

PHASES: dict[Stage, str] = {
    "baseline": SEARCHING,
    "search": SEARCHING,
    "replicate": SEARCHING,
    "confirm": "confirming",
    "rule": "confirming",
    "ablation": "ablating",
    "final": "training",
}
"""The purpose of trials, by their stage."""

TESTING = "testing"
"""Trials have run to their end, and models read the test split."""

ENDING, STOPS = "ending the search", "stopping"
"""The stage of a study once a user has ended its search, and once a signal has come."""


@dataclass(frozen=True)
class Pace:
    """Epochs per minute, and seconds to go at that pace; None once the study is complete."""

    epochs_per_minute: float
    remaining: float | None


class StudyProgress:
    """The current numbers of a running study."""

    def __init__(self, spec: StudySpec, record: StudyRecord) -> None:
        self._spec, self._record = spec, record
        self._began = time.monotonic()
        self._phase = STARTING if record.id else LOADING
        self._begun = len(self._begun_trials())
        self._to_repeat: set[int] | None = None
        self._warned_of: tuple[int, list[str]] = 0, []

    def _results(self) -> Results:
        """What is known now: the record grows."""
        return Results(self._spec, self._record)

    def tell(self, text: str) -> bool:
        """Take a step of the driver (`study.sweep.STEPS`) as the phase, until a trial runs; says whether it is one."""
        if text == STOPPING:
            self._phase = STOPS
        elif text in STEPS:
            self._phase, self._begun = text, len(self._begun_trials())
        return text in STEPS

    def phase(self) -> str:
        """Return what the study is at: a step of the driver, or what its trials are run for."""
        if self._phase == STOPS:
            return STOPS
        trials = list(self._record.trials.values())
        running = {trial.stage for trial in trials if trial.state == "running"}
        if not running and self._phase in STEPS:  # what began since that step, and was over before anybody looked
            running = {trial.stage for trial in self._begun_trials()[self._begun :][-1:]}
        if any(trial.state == "running" and trial.is_extended for trial in trials):
            self._phase = EXTENDING
        elif running:
            words = dict.fromkeys(word for stage, word in PHASES.items() if stage in running)
            told = (ENDING if word == SEARCHING and self._record.ending else word for word in words)
            self._phase = " and ".join(told)
        elif self._phase not in STEPS and not self.counts()["waiting"]:
            self._phase = TESTING
        return self._phase

    def _begun_trials(self) -> list[TrialRecord]:
        return [trial for trial in self._record.trials.values() if trial.state != "waiting"]

    def counts(self) -> dict[str, int]:
        """Trials by state, planned ones as waiting; `interrupted` is left out if there is none."""
        counts = self._record.counts()
        counts["waiting"] += max(0, self._planned() - sum(counts.values()))
        return {state: count for state, count in counts.items() if count or state != "interrupted"}

    def numbers(self) -> tuple[object, ...]:
        """Return what a plain line is written for when it changes."""
        has_pace = self._done() > 0  # from a long trial's first epoch on it is told how long all will take
        return self.counts(), self.enqueued(), self.stopping(), self._record.ending, has_pace

    def best(self) -> str:
        """The best complete trial so far and the baseline's value; of a final training the mean of what is complete.
        Empty before there is one."""
        spec, record = self._spec, self._record
        if spec.final_seeds is not None:
            finals = [trial for trial in record.by_stage("final") if trial.state == "complete"]
            mean = ranking.spreads(spec.objective, finals).get(spec.metric)
            return f"{spec.metric} {printed(spec.metric, mean.mean)} (mean of {mean.count})" if mean else ""
        results = self._results()
        best = next(iter(results.searched), None)
        reference = results.baseline
        if best is None:
            return f"baseline {spec.metric} {printed(spec.metric, reference.value)}" if reference else ""
        if spec.objective.several:
            return self._best_of_front(best)
        way = f"{'lowest' if spec.mode == 'min' else 'highest'} in the search"
        value, before = best.value, reference.value if reference else None
        fresh = results.candidates[0]
        if fresh.confirmed and results.is_confirmed:
            best, value, seeds = fresh, fresh.confirmed.mean, fresh.confirmed.count
            way = f"mean of {seeds} fresh seed{'s' * (seeds > 1)}"
            before = reference.confirmed.mean if reference and reference.confirmed else None
        against = f", baseline {printed(spec.metric, before)}" if before is not None else ""
        if without := results.best_reference:
            against += f", without a search {printed(spec.metric, without.metrics[spec.metric] or 0.0)}"
        return f"{spec.metric} {printed(spec.metric, value)} ({way}, trial {best.trial.number}){against}"

    def _best_of_front(self, best: Candidate) -> str:
        """With several metrics: what is chosen of the front of the search, and how large that is."""
        goal = self._spec.objective
        scores = [candidate.score for candidate in self._results().searched]
        pairs = zip(goal.metrics, best.score.values, strict=True)
        values = ", ".join(f"{name} {printed(name, value)}" for name, value in pairs)
        return f"{values} (trial {best.trial.number}, {goal.choose.name} of a front of {len(objective.front(scores))})"

    def enqueued(self) -> int:
        """Configurations that users asked for and that were not tried yet."""
        return to_try(self._record)

    def stopping(self) -> int:
        """Trials that run, and end at their next report because a user asked for that."""
        return len(to_stop(self._record))

    def warnings(self) -> list[str]:
        """Return what is wrong with the metric that is searched for, as far as it shows yet; looked for again each time
        that a tenth more trials are complete."""
        complete, (before, found) = self._record.counts()["complete"], self._warned_of
        if complete > 1.1 * before or self._record.state != "running":
            found = [str(tie) for tie in self._results().ties]
            self._warned_of = complete, found
        return found

    def remaining(self) -> float | None:
        """Seconds to go; None before the first epoch."""
        pace = self.pace()
        return (pace.remaining or 0.0) if pace else None

    def pace(self) -> Pace | None:
        """Epochs per minute while drivers worked, and seconds to go at that pace (None once the study is complete).

        The time before the first trial of this session does not count. Of the trials that run, that which was heard
        last has just ended an epoch, and the others are taken to be in the middle of one. None before the first epoch.
        """
        record, trials, done = self._record, list(self._record.trials.values()), self._done()
        if not done or not record.sessions:
            return None
        opened = record.sessions[-1]["time"]
        starts = [trial.started for trial in trials if trial.started is not None and trial.started >= opened]
        began = min(starts, default=record.heard)
        seconds = record.worked - max(0.0, began - opened)
        if seconds <= 0:
            return None
        running = sum(trial.state == "running" for trial in trials)
        rate = (done + max(0, running - 1) / 2) / seconds
        if record.state == "complete":
            return Pace(60 * rate, None)
        since = max(0.0, time.time() - record.heard) if record.state == "running" else 0.0
        return Pace(60 * rate, max(0.0, (self.expected() - done) / rate - since))

    def line(self) -> str:
        """All that is known of it, in one line."""
        most = "" if self._is_fresh_known() else "about " if self._spec.objective.several else "at most "
        counts = ", ".join(
            f"{most if state == 'waiting' else ''}{count} {state}" for state, count in self.counts().items() if count
        )
        asked = {"enqueued": self.enqueued(), "stopping": self.stopping()}
        counts += "".join(f", {count} {what}" for what, count in asked.items() if count)
        best, seconds = self.best(), self.remaining()
        known = [f"{self.phase()}: {counts}"]
        is_first = self._spec.final_seeds is None and not self._results().above
        head = "best so far" if is_first else "so far"
        known += [f"{head}: {best}"] if best else []
        known += [] if seconds is None else [f"about {clock(seconds)} to go"]
        return f"{clock(self.elapsed())}  {'; '.join(known)}"

    def elapsed(self) -> float:
        """Seconds since this session began."""
        return time.monotonic() - self._began

    def _planned(self) -> int:
        spec = self._spec
        if spec.final_seeds is not None:
            return len(spec.final_seeds)
        configurations = self._configurations()
        return configurations * len(spec.runs()) + self._confirming(configurations) + self._ablating()

    def _is_fresh_known(self) -> bool:
        """Return whether it is known how many trials run on fresh seeds: those of other rules' picks, and of a front,
        once the search is over."""
        searched = self._searched()
        is_over = len(searched) >= self._configurations() * len(self._spec.runs())
        are_ended = is_over and all(trial.state in ENDED for trial in searched)
        return are_ended or self._spec.final_seeds is not None or not self._is_fresh_open()

    def _is_fresh_open(self) -> bool:
        """Return whether the search decides how many these are."""
        plan = self._results().confirm
        is_open = self._spec.objective.several or self._spec.has_searched_incumbents
        return bool(plan.rules) or (is_open and plan.top > 0)

    def _searched(self) -> list[TrialRecord]:
        return list(self._record.by_stage("baseline", "search", "replicate"))

    def _confirming(self, configurations: int) -> int:
        """Trials on fresh seeds; those for the picks of other rules at most, until the search has tried everything.

        Args:
            configurations: that the search will have completed.
        """
        spec, results = self._spec, self._results()
        plan = results.confirm
        if self._is_fresh_open() and self._is_fresh_known():
            return self._fresh_trials()
        if spec.objective.several and plan.top:  # what is on the front so far; it may grow
            configurations = min(configurations, max(plan.top + 1, len(results.to_confirm())))
        reports = (trial.reports[0] for trial in self._searched() if trial.reports)
        reported = next(reports, [f"val/{name}" for name in searchable()])
        return confirm_trials(spec, plan, configurations) + rule_trials(spec, plan, configurations, reported)

    def _fresh_trials(self) -> int:
        """Trials on fresh seeds that there are, and those that are to come."""
        results = self._results()
        if self._to_repeat is None:
            self._to_repeat = {trial.number for trial in results.to_confirm() + results.picked}
        trials, seeds = list(self._record.by_stage("confirm", "rule")), results.confirm_seeds
        wanted = {(number, seed) for number in self._to_repeat for seed in seeds}
        return len(trials) + len(wanted - {(trial.repeats, trial.seed) for trial in trials})

    def _ablating(self) -> int:
        """Trials of ablations that there are, and those that are to come."""
        record = self._record
        to_come = ablation_steps.missing(self._results(), ablation_steps.asked(record))
        return len(list(record.by_stage("ablation"))) + sum(1 for _ in to_come)

    def _configurations(self) -> int:
        if self._record.ending:
            return self._record.tried
        return self._record.limit(self._spec.trials)

    def _done(self) -> int:
        return sum(trial.epochs for trial in list(self._record.trials.values()))

    def expected(self) -> float:
        """Epochs that the study will have run, if the trials to come take as many as those did that ended, and as large
        a share of them is complete."""
        spec = self._spec
        trials = [trial.searched for trial in self._searched()]
        ended = [trial for trial in trials if trial.ended is not None]
        mean = sum(trial.epochs for trial in ended) / len(ended) if ended else spec.epochs
        if spec.final_seeds is not None:
            return len(spec.final_seeds) * spec.epochs
        tries = self._configurations()
        share = sum(trial.state == "complete" for trial in ended) / len(ended) if ended else 1.0
        fresh = self._confirming(math.ceil(tries * share))
        return tries * len(spec.runs()) * mean + (fresh + self._ablating()) * spec.epochs + self._longer()

    def _longer(self) -> int:
        """Epochs that trials run beyond those of the study."""
        longer = [trial for trial in list(self._record.trials.values()) if trial.until]
        return sum(
            trial.total(0) - (trial.searched.epochs if trial.is_extended else self._spec.epochs) for trial in longer
        )


def to_try(record: StudyRecord) -> int:
    """Return how many configurations users asked for that were not tried yet; none once the search is over."""
    return 0 if record.ending else len(record.enqueued) - sum(trial.enqueued for trial in list(record.trials.values()))


def to_stop(record: StudyRecord) -> list[int]:
    """The trials that run, and end at their next report because a user asked for that."""
    trials = list(record.trials.values())
    return [trial.number for trial in trials if trial.state == "running" and trial.stops_at is not None]


def clock(seconds: float) -> str:
    """`0:40`, `12:05`, `3:30:00`."""
    whole = max(0, round(seconds))
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
