"""Numbers of a study while it runs, from its record, which is only read."""

import math
import time
from dataclasses import dataclass

from study import ranking
from study.commands.plan import count_confirm_trials, count_rule_trials
from study.home.events import ENDED_STATES, Stage
from study.home.record import StudyRecord, TrialRecord
from study.metrics import searchable_metrics
from study.metrics.metric_format import format_metric
from study.ranking import Candidate, Results, ablation_steps
from study.ranking.study_summary import first_failure_text
from study.spec import StudySpec, objective
from study.spec.objective import TrialScore
from study.sweep import DRIVER_STEPS, LOADING_DATA_STEP, STARTING_RAY_STEP, STOPPING_MESSAGE
from study.text import pluralise

SEARCH_PHASE = "searching"
PHASE_BY_STAGE: dict[Stage, str] = {
    "baseline": SEARCH_PHASE,
    "search": SEARCH_PHASE,
    "replicate": SEARCH_PHASE,
    "confirm": "confirming",
    "rule": "confirming",
    "ablation": "ablating",
    "final": "training",
}
"""Phase of a study, by the stage of the trials that run."""

TEST_PHASE = "testing"
"""Phase: all trials have ended, and models are evaluated on the test split."""

ENDING_SEARCH_PHASE, STOPPING_PHASE = "ending the search", "stopping"
"""Phases once a user has ended the search, and once a signal has come."""


@dataclass(frozen=True)
class StudyPace:
    """Epochs per minute, and seconds to go at that pace; None once the study is complete."""

    epochs_per_minute: float
    remaining: float | None


class StudyProgress:
    """Current numbers of a running study."""

    def __init__(self, spec: StudySpec, record: StudyRecord) -> None:
        self._spec, self._record = spec, record
        self._began = time.monotonic()
        self._phase = STARTING_RAY_STEP if record.id else LOADING_DATA_STEP
        self._begun = len(self._started_trials())
        self._to_repeat: set[int] | None = None
        self._warned_of: tuple[int, list[str]] = 0, []

    def _results(self) -> Results:
        return Results(self._spec, self._record)

    def enter_driver_step(self, text: str) -> bool:
        """Take a step of `study.sweep.DRIVER_STEPS` as the phase until a trial runs; return whether it is one."""
        if text == STOPPING_MESSAGE:
            self._phase = STOPPING_PHASE
        elif text in DRIVER_STEPS:
            self._phase, self._begun = text, len(self._started_trials())
        return text in DRIVER_STEPS

    def phase(self) -> str:
        """Return the phase of the study: a step of the driver, or what its trials are run for."""
        if self._phase == STOPPING_PHASE:
            return STOPPING_PHASE
        trials = list(self._record.trials.values())
        running = {trial.stage for trial in trials if trial.state == "running"}
        if not running and self._phase in DRIVER_STEPS:  # a trial that began and ended between two looks
            running = {trial.stage for trial in self._started_trials()[self._begun :][-1:]}
        if running:
            words = dict.fromkeys(word for stage, word in PHASE_BY_STAGE.items() if stage in running)
            is_ending = self._record.has_search_end_request
            told = (ENDING_SEARCH_PHASE if word == SEARCH_PHASE and is_ending else word for word in words)
            self._phase = " and ".join(told)
        elif self._phase not in DRIVER_STEPS and not self.trial_counts()["waiting"]:
            self._phase = TEST_PHASE
        return self._phase

    def _started_trials(self) -> list[TrialRecord]:
        return [trial for trial in self._record.trials.values() if trial.has_started]

    def trial_counts(self) -> dict[str, int]:
        """Count trials by state, planned ones as waiting; `interrupted` is left out if there is none."""
        counts = self._record.trials_by_state()
        counts["waiting"] += max(0, self._n_planned_trials() - sum(counts.values()))
        return {state: count for state, count in counts.items() if count or state != "interrupted"}

    def numbers_that_print_line(self) -> tuple[object, ...]:
        """Return the numbers that cause a further plain line when one of them changes."""
        has_pace = self._n_epochs_done() > 0  # from the first epoch on the time to go is shown
        return self.trial_counts(), self._request_counts(), self._record.has_search_end_request, has_pace

    def best_text(self) -> str:
        """Return the best complete trial so far with the baseline's value, in words; empty before there is one.

        Of a final training it is the mean of the complete trials.
        """
        spec, record = self._spec, self._record
        if spec.final_seeds is not None:
            finals = [trial for trial in record.trials_of_stages("final") if trial.state == "complete"]
            mean = ranking.statistics_by_metric(spec.objective, finals).get(spec.metric)
            return f"{spec.metric} {format_metric(spec.metric, mean.mean)} (mean of {mean.count})" if mean else ""
        results = self._results()
        best = next(iter(results.ranked_by_search_value), None)
        baseline = results.baseline
        if best is None:
            if baseline is None:
                return ""
            breaks = self._broken_constraints_text(baseline.score)
            told = f"baseline {spec.metric} {format_metric(spec.metric, baseline.search_value)}"
            return f"{told} ({breaks})" if breaks else told
        if spec.objective.has_several_metrics:
            return self._front_text(best)
        keeps = " that keeps the limits" if spec.objective.constraints else ""
        extreme = "lowest" if spec.mode == "min" else "highest"
        is_of_some_folds = spec.folds is not None and spec.search.folds != "each"
        way = self._broken_constraints_text(best.score) or f"{extreme} in the search{keeps}"
        is_on_one_fold = is_of_some_folds and len(spec.seeds) == 1
        way += ", on one fold" * is_on_one_fold
        value, before, place = best.search_value, baseline.search_value if baseline else None, ""
        if baseline and is_on_one_fold:
            place = f" on {'the same' if baseline.trial.fold == best.trial.fold else 'another'}"
        fresh = results.ranked_search[0]
        if fresh.confirm_statistics and results.is_confirmed:
            best, value, seeds = fresh, fresh.confirm_statistics.mean, fresh.confirm_statistics.count
            breaks = self._broken_constraints_text(fresh.confirmed_score or fresh.score)
            means = f"mean of {pluralise(seeds, 'fresh seed')}" if spec.folds is None else "on all folds"
            way = ", ".join(filter(None, (means, breaks)))
            before = baseline.confirm_statistics.mean if baseline and baseline.confirm_statistics else None
            place, is_of_some_folds = "", False
        against = f", baseline {format_metric(spec.metric, before)}{place}" if before is not None else ""
        if (without := results.best_reference) and not is_of_some_folds:  # references are judged on all folds alone
            against += f", without a search {format_metric(spec.metric, without.metrics[spec.metric] or 0.0)}"
        return f"{spec.metric} {format_metric(spec.metric, value)} ({way}, trial {best.trial.number}){against}"

    def _front_text(self, best: Candidate) -> str:
        """Return what is chosen of the search's front of several metrics, and how large the front is, in words."""
        goal = self._spec.objective
        scores = [candidate.score for candidate in self._results().ranked_by_search_value]
        pairs = zip(goal.metrics, best.score.values, strict=True)
        values = ", ".join(f"{name} {format_metric(name, value)}" for name, value in pairs)
        of_front = f"first of a front of {len(objective.front_positions(scores))}"
        return f"{values} (trial {best.trial.number}, {self._broken_constraints_text(best.score) or of_front})"

    def _broken_constraints_text(self, score: TrialScore) -> str:
        """Return which constraints a score breaks, as `breaks val/equalized_odds <= 0.1`; empty where it keeps all."""
        broken = self._spec.objective.broken_constraints(score)
        return f"breaks {' and '.join(map(str, broken))}" if broken else ""

    def _request_counts(self) -> dict[str, int]:
        """Count the configurations that users asked for and that were not tried yet, and the trials that end soon."""
        return {"enqueued": count_untried_enqueued(self._record), "stopping": len(trials_stopping_soon(self._record))}

    def metric_warnings(self) -> list[str]:
        """Return what is wrong with the metric, as far as it shows yet.

        It is looked for again each time that a tenth more trials are complete.
        """
        complete, (before, found) = self._record.trials_by_state()["complete"], self._warned_of
        if complete > 1.1 * before or self._record.state != "running":
            found = [str(tie) for tie in self._results().tied_metrics]
            self._warned_of = complete, found
        return found

    def first_failure_line(self) -> str | None:
        """Return why the first trial that failed did, as a line; None: none has."""
        return first_failure_text(self._record, self._spec.name)

    def remaining_seconds(self) -> float | None:
        """Return the seconds to go; None before the first epoch."""
        pace = self.pace()
        return (pace.remaining or 0.0) if pace else None

    def pace(self) -> StudyPace | None:
        """Return the epochs per minute while drivers worked and the seconds to go; None before the first epoch.

        The time before the first trial of a session does not count. Of the running trials, the one that reported
        last has just ended an epoch, and the others are taken to be in the middle of one.
        """
        record, trials, done = self._record, list(self._record.trials.values()), self._n_epochs_done()
        seconds = record.total_driver_seconds - record.total_start_seconds
        if not done or seconds <= 0:
            return None
        running = sum(trial.state == "running" for trial in trials)
        rate = (done + max(0, running - 1) / 2) / seconds
        if record.state == "complete":
            return StudyPace(60 * rate, None)
        since = max(0.0, time.time() - record.last_event_time) if record.state == "running" else 0.0
        return StudyPace(60 * rate, max(0.0, (self.expected_epochs() - done) / rate - since))

    def progress_line(self) -> str:
        """Return all that is known of the study, in one line."""
        there = {state: count for state, count in (self.trial_counts() | self._request_counts()).items() if count}
        texts = {state: f"{count} {state}" for state, count in there.items()}
        texts |= {"waiting": self._waiting_text(there["waiting"])} if "waiting" in there else {}
        counts = ", ".join(texts.values())
        best, seconds = self.best_text(), self.remaining_seconds()
        known = [f"{self.phase()}: {counts}"]
        is_first = self._spec.final_seeds is None and not self._results().references_above_best
        head = "best so far" if is_first else "so far"
        known += [f"{head}: {best}"] if best else []
        is_first_epoch = seconds is None and self.trial_counts()["running"]
        known += ["no epoch has ended yet"] if is_first_epoch else []
        to_go = "left to do" if self._phase == STOPPING_PHASE else "to go"
        known += [] if seconds is None else [f"about {clock_text(seconds)} {to_go}"]
        return f"{clock_text(self.elapsed_seconds())}  {'; '.join(known)}"

    def _waiting_text(self, count: int) -> str:
        """Return how many trials wait: those of the search, and what comes after it, which may not be known yet."""
        most = "about " if self._spec.objective.has_several_metrics else "at most "
        most = "" if self._is_fresh_seed_count_known() else most
        begun = sum(trial.has_started for trial in self._search_trials())
        searched = max(0, self._n_planned_search_trials() - begun) if self._spec.final_seeds is None else 0
        if not 0 < searched < count:
            return f"{most}{count} waiting"
        return f"{searched} waiting (then {most}{count - searched} more)"

    def elapsed_seconds(self) -> float:
        """Return the seconds since this session began."""
        return time.monotonic() - self._began

    def _n_planned_trials(self) -> int:
        spec = self._spec
        if spec.final_seeds is not None:
            return len(spec.final_seeds)
        further = self._n_confirm_and_rule_trials(self._n_planned_configurations()) + self._n_ablation_trials()
        return self._n_planned_search_trials() + further

    def _n_planned_search_trials(self) -> int:
        """Count the trials of the search, with the baseline."""
        return self._n_planned_configurations() * len(self._spec.runs_of_configuration())

    def _is_fresh_seed_count_known(self) -> bool:
        """Return whether it is known how many trials run on fresh seeds: at the latest, once the search is over."""
        is_final = self._spec.final_seeds is not None
        return is_final or not self._fresh_seeds_depend_on_results() or self._is_search_over()

    def _is_search_over(self) -> bool:
        searched = self._search_trials()
        are_all_there = len(searched) >= self._n_planned_search_trials()
        return are_all_there and all(trial.state in ENDED_STATES for trial in searched)

    def _fresh_seeds_depend_on_results(self) -> bool:
        """Return whether the result of the search decides how many trials run on fresh seeds."""
        plan = self._results().confirmation.settings
        is_open = self._spec.objective.has_several_metrics or self._spec.has_searched_incumbents
        return bool(plan.rules) or (is_open and plan.top > 0)

    def _search_trials(self) -> list[TrialRecord]:
        return list(self._record.trials_of_stages("baseline", "search", "replicate"))

    def _n_confirm_and_rule_trials(self, configurations: int) -> int:
        """Count the trials on fresh seeds; those for the picks of other rules at most, until the search is over.

        Args:
            configurations: that the search will have completed.
        """
        spec, results = self._spec, self._results()
        plan = results.confirmation.settings
        if self._is_search_over():  # what was pruned cannot run again
            return self._n_trials_on_fresh_seeds()
        if spec.objective.has_several_metrics and plan.top:  # what is on the front so far; it may grow
            configurations = min(configurations, max(plan.top + 1, len(results.confirmation.trials_to_confirm())))
        reports = (trial.reports[0] for trial in self._search_trials() if trial.reports)
        reported = next(reports, [f"val/{name}" for name in searchable_metrics()])
        n_rule_trials = count_rule_trials(spec, plan, configurations, reported)
        return count_confirm_trials(spec, plan, configurations) + n_rule_trials

    def _n_trials_on_fresh_seeds(self) -> int:
        """Count the trials on fresh seeds that there are, and those to come."""
        results = self._results()
        if self._to_repeat is None:
            again = results.confirmation.trials_to_confirm()
            again += results.rule_picked_trials if results.confirmation.settings.rules else []
            self._to_repeat = {trial.number for trial in again}
        trials, seeds = list(self._record.trials_of_stages("confirm", "rule")), results.confirmation.seeds
        wanted = {(number, seed) for number in self._to_repeat for seed in seeds}
        return len(trials) + len(wanted - {(trial.repeated_trial, trial.seed) for trial in trials})

    def _n_ablation_trials(self) -> int:
        """Count the trials of ablations that there are, and those to come."""
        record = self._record
        to_come = ablation_steps.missing_ablation_trials(self._results(), ablation_steps.requested_ablation(record))
        return len(list(record.trials_of_stages("ablation"))) + sum(1 for _ in to_come)

    def _n_planned_configurations(self) -> int:
        if self._record.has_search_end_request:
            return self._record.n_configurations_tried
        return self._record.max_configurations(self._spec.n_configurations)

    def _n_epochs_done(self) -> int:
        return sum(trial.n_epochs for trial in list(self._record.trials.values()))

    def expected_epochs(self) -> float:
        """Estimate how many epochs the study will have run at its end.

        The trials to come are taken to run as many epochs as those that ended, and to be complete as often.
        """
        spec = self._spec
        trials = list(self._search_trials())
        ended = [trial for trial in trials if trial.ended_at is not None]
        mean = sum(trial.n_epochs for trial in ended) / len(ended) if ended else spec.epochs
        if spec.final_seeds is not None:
            return len(spec.final_seeds) * spec.epochs
        tries = self._n_planned_configurations()
        share = sum(trial.state == "complete" for trial in ended) / len(ended) if ended else 1.0
        fresh = self._n_confirm_and_rule_trials(math.ceil(tries * share))
        return tries * len(spec.runs_of_configuration()) * mean + (fresh + self._n_ablation_trials()) * spec.epochs


def count_untried_enqueued(record: StudyRecord) -> int:
    """Count the configurations that users asked for and that were not tried yet; 0 once the search is over."""
    if record.has_search_end_request:
        return 0
    return len(record.enqueued_configurations) - sum(trial.is_enqueued for trial in list(record.trials.values()))


def trials_stopping_soon(record: StudyRecord) -> list[int]:
    """Return the running trials that end at their next report because a user asked for that."""
    trials = list(record.trials.values())
    return [trial.number for trial in trials if trial.state == "running" and trial.stop_epoch is not None]


def clock_text(seconds: float) -> str:
    """Format seconds as `0:40`, `12:05` or `3:30:00`."""
    whole = max(0, round(seconds))
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{whole % 3600 // 60:02d}:{whole % 60:02d}"
