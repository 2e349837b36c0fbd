"""The search stage of a study: which configuration is tried next, which trials go on, and when it is enough.

A configuration is one trial, or with `search.replicates` several on further seeds: the first leads, the others are
its replicates. They run side by side; early stopping hears the leader alone, and what ends it early ends them all.
A configuration's value is the mean over its seeds; Optuna hears it once, when the last of them has ended.
"""

import random
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import optuna

from study.home.driver_requests import DriverRequest
from study.home.events import ENDED_STATES, Stage, TrialState
from study.home.record import SPACE_EXHAUSTED_REASON, EpochMetrics, StudyRecord, TrialRecord
from study.knobs import Params, Scalar
from study.ranking import mean_score
from study.ranking.chosen_epoch import BestEpochTracker, iter_scores_if_ended
from study.spec import StudySpec
from study.spec.configuration import are_same_configuration, invalid_value_messages
from study.spec.objective import TrialScore
from study.spec.space import iterate_grid_cells
from study.sweep.early_stopping import EarlyStopping
from study.sweep.optuna_history import ConfigurationOutcome, OptunaHistory
from study.sweep.samplers import STRATEGIES


def reached_search_limit(spec: StudySpec, record: StudyRecord) -> str | None:
    """Return which limit of a search besides its number of trials is reached: time or GPU hours; None: none is.

    They are read from the record, so that a resumed study counts on. A study that was extended by a number of trials
    runs these, whatever its other limits say.
    """
    search, gpu = spec.search, (spec.spec_of_file or spec).resources.gpu
    if record.extended_n_configurations is not None:
        return None
    if search.time is not None and record.total_driver_seconds >= search.time:
        return "time"
    if search.gpu_hours is not None and record.device_seconds("gpu", gpu) >= search.gpu_hours * 3600:
        return "gpu_hours"
    return None


MAX_UNTRIED_DRAWS = 100
"""Draws in search of a configuration that was not tried, before all that are left are listed."""


class UntriedSuggestions:
    """The source of a search's parameters, which hears how they did.

    Each suggestion depends only on the seed, the trial's number and the history: on the parameters and outcomes before
    it, in their order, whether they were suggested here or added by `add_decided_params`. So a resumed study goes on as
    an uninterrupted one would. A pruned trial is told as pruned with its intermediate values, a failed one as failed:
    neither is ever a complete trial with a low-budget value.

    Attributes:
        history: what the suggestions are based on: is told how an ended configuration did, and has the trials as Optuna
            sees them, with the ledger's numbers.
    """

    def __init__(self, spec: StudySpec) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)  # the user can do nothing about its warnings
        self._space, self._seed = spec.space, spec.search.seed
        self.history = OptunaHistory(spec)
        self._strategy = STRATEGIES[spec.search.sampler](spec, self.history)

    def suggest_untried_params(self, number: int) -> dict[str, Scalar] | None:
        """Return parameters that no trial has, for the trial of this number; None where every configuration has one."""
        params = self._strategy.suggest_params(number)
        if params is not None and self.history.has_params(params):
            params = self._draw_untried(number)
        if params is not None:
            self.add_decided_params(number, params)
        return params

    def _draw_untried(self, number: int) -> dict[str, Scalar] | None:
        """Draw from the configurations that no trial has, where the strategy has nothing new; None: there is none."""
        draw = random.Random(f"{self._seed} {number}")
        for _ in range(MAX_UNTRIED_DRAWS):
            params = self._space.suggest_params(
                lambda key, domain: self.history.value_at_coordinate(key, draw.random())
            )
            if not self.history.has_params(params):
                return params
        with suppress(ValueError):  # a range without steps: its configurations have no end
            left = [cell for cell in iterate_grid_cells(self._space, every=True) if not self.history.has_params(cell)]
            return draw.choice(left) if left else None
        return None

    def add_decided_params(self, number: int, params: Params) -> None:
        """Add a trial whose parameters were decided elsewhere; one outside the space is left out."""
        if self._space.contains(params):
            self.history.add_trial(number, params)


@dataclass(frozen=True)
class NextTrial:
    """A trial that is to be added, with the fields of its `TrialDecided` event."""

    stage: Stage
    params: Params
    seed: int
    repeated_trial: int | None = None
    is_enqueued: bool = False
    fold: int | None = None


class SearchStage:
    """The search: it suggests, prunes and scores, and changes neither ledger nor record.

    Everything that it knows follows from the record: a search made anew from a ledger decides as the one before.

    Args:
        record: what happened so far; its owner keeps it up to date.
        rule: early stopping of searched trials.
    """

    def __init__(self, spec: StudySpec, record: StudyRecord, rule: EarlyStopping) -> None:
        self.spec, self.record, self.rule = spec, record, rule
        search = spec.search
        self._given = ([search.baseline] if search.baseline is not None else []) + search.enqueue
        self.suggestions = UntriedSuggestions(spec)
        self._decided = 0
        self._ended: set[int] = set()
        self._choices: dict[int, BestEpochTracker] = {}  # of running trials
        self._wanted: list[NextTrial] = []
        self._enqueued: deque[Params] = deque()
        self._exhausted = False
        self.to_prune: dict[int, bool] = {}
        """Decision on each trial at its last epoch that was heard."""
        self._replay_record()

    def next_trial(self) -> NextTrial | None:
        """Return the next trial to decide on, to be followed by `note_decided_trial`; None: the search adds no more."""
        for decision in list(self._wanted):
            self._wanted.remove(decision)
            if self.record.trials[decision.repeated_trial or 0].state not in ("pruned", "failed"):
                return decision
        spec, number = self.spec, len(self.record.trials)
        if spec.final_seeds is not None or self.end_reason is not None:
            return None
        if self._decided < len(self._given):
            has_baseline = spec.search.baseline is not None and self._decided == 0
            stage: Stage = "baseline" if has_baseline else "search"
            return NextTrial(stage, self._given[self._decided], spec.seed, fold=self._next_fold)
        if self._enqueued:
            return NextTrial("search", self._enqueued[0], spec.seed, is_enqueued=True, fold=self._next_fold)
        params = self.suggestions.suggest_untried_params(number)
        if params is None:
            self._exhausted = True
            return None
        return NextTrial("search", params, spec.seed, fold=self._next_fold)

    @property
    def _next_fold(self) -> int | None:
        """Fold of the next configuration."""
        return self.spec.runs_of_configuration(self._decided)[0][1]

    @property
    def end_reason(self) -> str | None:
        """Why no further configuration is tried, None if one is."""
        if self._decided >= self.record.max_configurations(self.spec.n_configurations):
            return "trials"
        if self.record.has_search_end_request:
            return "a user"
        return SPACE_EXHAUSTED_REASON if self._exhausted else reached_search_limit(self.spec, self.record)

    def note_decided_trial(self, trial: TrialRecord, asked: bool = True) -> None:
        """Note that a trial of `next_trial` is in the record.

        Args:
            asked: whether its parameters are from `next` of this object, not from the ledger.
        """
        if trial.stage not in ("baseline", "search"):
            return
        given = trial.is_enqueued or self._decided < len(self._given)
        if not asked or given:
            self.suggestions.add_decided_params(trial.number, trial.params)
        if trial.is_enqueued:
            self._enqueued.popleft()
        for seed, fold in self.spec.runs_of_configuration(self._decided)[1:]:
            self._wanted.append(NextTrial("replicate", trial.params, seed, repeated_trial=trial.number, fold=fold))
        self._decided += 1

    def queue_configuration(self, params: Params) -> None:
        """Queue a configuration that a user asked for, and that the record has: it is tried next."""
        self._enqueued.append(params)

    def request_refusal_reason(self, request: DriverRequest) -> str | None:
        """Return why a request cannot be met, None if it can."""
        if request.kind == "stop":
            return self._why_not_stoppable(request.trial)
        if self.spec.final_seeds is not None:
            return "a final training has no search"
        if self.end_reason is not None:
            return "the search is over"
        if request.kind == "end":
            return None
        if not self.spec.space.contains(request.params) or invalid_value_messages(self.spec.space, request.params):
            return "the search could not give this configuration"
        tried = self.record.trials_of_stages("baseline", "search")
        if known := [trial for trial in tried if are_same_configuration(trial.params, request.params)]:
            return f"trial {known[0].number} has this configuration"
        is_enqueued = any(are_same_configuration(one, request.params) for one in self._enqueued)
        return "it is enqueued already" if is_enqueued else None

    def _why_not_stoppable(self, number: int) -> str | None:
        trial = self.record.trials.get(number)
        if trial is None:
            return f"there is no trial {number}"
        if trial.state in ENDED_STATES:
            return f"trial {number} has ended: {trial.state}"
        if trial.stage not in ("search", "replicate"):
            return f"trial {number} is one of stage {trial.stage}; only trials of the search can be stopped"
        return f"trial {number} ends at its next report already" if trial.stop_epoch is not None else None

    def should_prune(self, trial: TrialRecord, epoch: int, reports: Sequence[EpochMetrics] | None = None) -> bool:
        """Return whether early stopping ends a trial after one of its epochs but the last.

        Args:
            reports: those up to this epoch, as they were when it was reported; None: those in the record.
        """
        prune = False
        if trial.stage == "search":
            score = self._score_of_reports(trial.number, trial.reports if reports is None else reports)
            prune = score is not None and self.rule.should_prune(trial.number, epoch, score)
        if any(are_same_configuration(trial.params, params) for params in self.spec.incumbents):
            prune = False  # others are compared with incumbents, which run whole as the baseline does
        self.to_prune[trial.number] = prune
        return prune

    def _score_of_reports(self, number: int, reports: Sequence[EpochMetrics]) -> TrialScore | None:
        """Return the score that a trial would have had it ended after its last report.

        Epochs come one by one, or again after a loss.
        """
        choice = self._choices.get(number)
        if choice is None or choice.n_reports != len(reports) - 1:
            choice = self._choices[number] = BestEpochTracker(self.spec.objective)
            for report in reports[:-1]:
                choice.update(report)
        choice.update(reports[-1])
        return choice.chosen_score

    def note_ended_trial(self, trial: TrialRecord) -> None:
        """Note that a trial has ended, and score its configuration once all its trials have."""
        self._ended.add(trial.number)
        self._choices.pop(trial.number, None)
        leader = trial
        if trial.stage == "replicate" and trial.repeated_trial is not None:
            leader = self.record.trials[trial.repeated_trial]
        if leader.stage not in ("baseline", "search") or leader.number not in self._ended:
            return
        seeds = [leader, *self.record.repeat_trials(leader.number, "replicate")]
        short = leader.state == "complete" and len(seeds) < len(self.spec.runs_of_configuration())
        if short or not all(seed.number in self._ended for seed in seeds):
            return
        state: TrialState = next((seed.state for seed in seeds if seed.state != "complete"), "complete")
        score = mean_score(self.spec.objective, seeds) if state == "complete" else None
        course = list(iter_scores_if_ended(self.spec.objective, leader.reports))
        self.suggestions.history.add_outcome(ConfigurationOutcome(leader.number, state, course, score))

    def _replay_record(self) -> None:
        """Bring sampler, early stopping and budget to where the record is, in the order in which it happened."""
        trials, full = self.record.trials, self.spec.epochs
        past: dict[int, list[EpochMetrics]] = {}
        for event, number, epoch, report in self.record.history:
            if event == "enqueued":
                self.queue_configuration(self.record.enqueued_configurations[number])
                continue
            trial = trials[number]
            if event == "trial":
                self.note_decided_trial(trial, asked=False)
            elif event == "ended" and trial.state in ENDED_STATES:
                self.note_ended_trial(trial)
            elif report is not None and epoch < full:
                reports = past.setdefault(number, [])
                reports[epoch - 1 :] = [report]
                self.should_prune(trial, epoch, reports)
        have = {(trial.repeated_trial, trial.seed, trial.fold) for trial in self.record.trials_of_stages("replicate")}
        self._wanted = [one for one in self._wanted if (one.repeated_trial, one.seed, one.fold) not in have]
