"""What each event of a ledger changes in MLflow. An event that is read twice changes nothing."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from study import data, ranking
from study.catalogue import REFERENCE_METHOD
from study.data.dataset import DatasetSummary, fingerprint_of_fold
from study.errors import error_message
from study.home import events
from study.home.events import ENDED_STATES, Event, StudyOutcome, TrialOutcome
from study.home.ledger_line import Entry
from study.home.record import StudyRecord, TrialRecord
from study.knobs import Params, Section, Value, text_list
from study.metrics import group_names
from study.ranking import Candidate, Results, ablation_steps
from study.ranking.chosen_epoch import metrics_at_chosen_epoch
from study.ranking.study_summary import (
    ArmSummary,
    result_means_and_deviations,
    result_metric_names,
    result_row_values,
    result_seeds,
    summarise_candidate,
    summarise_study,
    summary_lines,
)
from study.ranking.trial_statistics import constraints_broken_by_trial
from study.spec import StudySpec
from study.spec.reference_models import REFERENCES
from study.spec.yaml_document import mapping_or_empty
from study.text import escape_control, escape_markdown
from study.tracking import mlflow_runs, runs_of_functions
from study.tracking.saved_views import ALL_FOLDS_PREFIX, BROKEN_CONSTRAINTS_TAG, RESULT_TAG, view_metrics
from study.tracking.tracking_state import STUDY_RUN_KEY, TrackingState

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput

MAX_NAME_CHARACTERS = 200
"""Most characters of a run's name before its seed; MLflow takes 250 in all."""


def study_params(spec: StudySpec) -> dict[str, str]:
    """Return the study's parameters by key: the fixed values of all trials, then the search and the resources.

    A domain reads as its `low`, `high` ... or its choices; what is not set is left out.
    """
    document = {section: mapping_or_empty(values) for section, values in spec.to_document().items()}
    flat = {f"search.{name}": value for name, value in _flatten_search(document["search"])}
    resources = {f"resources.{name}": value for name, value in document["resources"].items()}
    return fixed_params(spec) | _params_that_are_set({**flat, **resources})


def fixed_params(spec: StudySpec) -> dict[str, str]:
    """Return the values that all trials of a study have, by key; of a final training its configuration."""
    return _params_that_are_set(
        {key: value for key, value in spec.base_values_by_key.items() if key not in spec.search.space}
    )


def _params_that_are_set(values: Section) -> dict[str, str]:
    return {name: mlflow_runs.truncate_value(value) for name, value in values.items() if value not in (None, {}, [])}


NESTED_SEARCH_SECTIONS = ("early_stopping", "confirm", "baseline")
"""Sections of a search."""


def trial_params(spec: StudySpec, params: Params, document: Mapping[str, Section]) -> dict[str, str]:
    """Return a trial's parameters by key: what is searched, its seed, and where else it differs from the study's run.

    MLflow's pages show what differs; the rest is on the study's run alone. What is searched under a condition is there
    where that holds.

    Args:
        params: what the trial was given.
        document: its complete sections.
    """
    ruled_out = {key for key, domain in spec.search.space.items() if domain.is_ruled_out_by(params)}
    searched = {*spec.search.space, "train.seed"} - ruled_out
    return {
        f"{section}.{name}": mlflow_runs.truncate_value(value)
        for section, keys in document.items()
        for name, value in keys.items()
        if f"{section}.{name}" in searched or name not in spec.base[section] or value != spec.base[section][name]
    }


def _flatten_search(search: Section) -> list[tuple[str, Value]]:
    """Return the keys of a search, with those of its sections one by one, and domains in words."""
    flat: list[tuple[str, Value]] = []
    for name, value in search.items():
        if name == "space":
            domains = mapping_or_empty(value).items()
            flat += [(f"space.{key}", _domain_in_words(mapping_or_empty(domain))) for key, domain in domains]
        elif name in NESTED_SEARCH_SECTIONS and isinstance(value, Mapping):
            flat += [(f"{name}.{key}", part) for key, part in value.items()]
        else:
            flat.append((name, value))
    return flat


def _domain_in_words(domain: Section) -> str:
    if "choices" in domain and len(domain) == 1:
        return f"one of {', '.join(text_list(domain, 'choices'))}"
    return ", ".join(f"{key} {value}" for key, value in domain.items())


def study_run_note(
    results: Results, parts: Mapping[str, Sequence[str]] | None = None, links: Mapping[str, str] | None = None
) -> str:
    """Return what the study is, on which data, and what came of it.

    Args:
        parts: the sentences of the report's lead by title; without them the summary takes their place.
        links: addresses by their text.
    """
    spec, record = results.spec, results.record
    what = "Final training of one configuration" if spec.final_seeds is not None else "Search"
    titles = record.sessions[-1].dataset if record.sessions else None
    text: list[str] = [
        escape_markdown(f"{what} for {spec.objective.metrics_and_directions_text}."),
        escape_markdown(f"On {titles or spec.base['data']['name']}; {record.state}."),
    ]
    if parts:
        texts = ((title, " ".join(sentences)) for title, sentences in parts.items())
        text += [f"**{escape_markdown(title)}.** {escape_markdown(told)}" for title, told in texts]
    elif record.trials and record.state != "running":
        text += [f"- {escape_markdown(line)}" for line in summary_lines(summarise_study(results))]
    if links:
        text.append(" · ".join(f"[{escape_markdown(name)}]({address})" for name, address in links.items()))
    return mlflow_runs.truncate_value("\n\n".join(text))


STAGE_NOTES: Mapping[events.Stage, str] = {
    "baseline": "The baseline, which every other configuration of the study is compared with.",
    "search": "A configuration that the search tried.",
    "replicate": "Configuration {} again on another seed or fold: it is judged by the mean.",
    "confirm": "Configuration {} again on a fresh seed or another fold: such runs choose the best. The test split is "
    "read for the baseline and for what is chosen.",
    "rule": "Configuration {} again on a fresh seed or another fold: another selection rule would have picked it.",
    "ablation": "The baseline with some of the best configuration's values, or the best without them.",
    "final": "Final training on one seed: a model, whose test split is read.",
}
"""Description of a trial's run, by the trial's stage."""


ARMS_OF_SUMMARY = ("baseline", "search", "best", "final", "ensemble")
"""Arms of a study's summary, which names of metrics of its run begin with."""

RESULT_NOTES = {
    "best": "What the study chose by validation alone",
    "search": "What leads the search, though what needs no search is the study's result",
    "baseline": "What the study compares with",
    "front": "On the front of the study's metrics",
    "ensemble": "The networks of all seeds as one model, the mean of their probabilities",
}
"""Description of a result's run, by who it is; a final training's own run is `final`."""


def device_tags(device: Mapping[str, str]) -> dict[str, str]:
    """Return a trial's tags about its device: `study.device` is the name, `study.device.driver` and others the rest."""
    return {f"study.device.{key}".removesuffix(".name"): value for key, value in device.items()}


UNTAGGED_ENVIRONMENT_FIELDS = ("libraries", "commit", "node", "datasets", "weights", "function")


def inherited_tags(spec: StudySpec, record: StudyRecord, trial: TrialRecord | None = None) -> dict[str, str]:
    """Return the study's tags that each trial's run has too: which study, on which code, libraries and data.

    Args:
        trial: whose fold the data are; None: the run is not a trial's.
    """
    session = record.sessions[-1] if record.sessions else None
    tags = {"study.id": record.id, "study.name": spec.name}
    if session:
        for key, value in session.environment_fields.items():
            if key not in UNTAGGED_ENVIRONMENT_FIELDS:
                tags[f"study.{key}"] = str(value)
        if session.data:
            fold = trial.fold if trial else None
            tags["study.data"] = fingerprint_of_fold(session.data, fold, trains_on_all=spec.final_seeds is not None)
        for key, files in (("weights", session.weights), ("function", session.function)):
            if files:
                tags[f"study.{key}"] = "; ".join(map("{0[name]}: {0[file]}, sha256 {0[sha256]}".format, files))
        tags |= {f"version.{key}": value for key, value in (session.libraries or {}).items()}
        tags["mlflow.user"] = session.owner  # shown in the UI's column of users
    if groups := group_names.group_legend(record.group_sample_counts.classes, record.group_sample_counts.biases):
        tags["study.groups"] = mlflow_runs.truncate_value(
            "; ".join(f"{name}: {words}" for name, words in groups.items())
        )
    source = f"study {session.version}" if session and session.version else "study"
    tags |= {"mlflow.source.name": source, "mlflow.source.type": "LOCAL"}  # shown in the UI's column of sources
    return tags | ({"mlflow.source.git.commit": session.commit} if session and session.commit else {})


RUN_STATUS_BY_OUTCOME = {"complete": "FINISHED", "pruned": "KILLED", "failed": "FAILED", "interrupted": "KILLED"}

BEST_RUN_PREFIX = "★ "
"""Prefix of the names of the runs of what is best: its trials, its row of results, or a reference."""

TAGS_REMOVED_ON_RERUN = ("pruned_by", "interrupted", "failure", "failure_kind", "test_failure")
"""Tags that are removed when a trial runs again."""


class EventTranslator:
    """Translation of one study's events into changes of its runs.

    Args:
        progress: what MLflow has; updated with the events.
        record: what the ledger says up to there; updated likewise.
        own_runs: returns the folder of the runs that a trial's function logged itself.
        above: id of the run that the study's is nested under; empty: none.
    """

    def __init__(
        self,
        spec: StudySpec,
        progress: TrackingState,
        record: StudyRecord,
        own_runs: Callable[[int], Path] | None = None,
        above: str = "",
    ) -> None:
        self._above = {"mlflow.parentRunId": above} if above else {}
        self._spec, self._progress, self.record, self._own_runs = spec, progress, record, own_runs
        self._changes: dict[str, mlflow_runs.RunUpdate] = {}

    def translate(self, entries: Iterable[Entry]) -> list[mlflow_runs.RunUpdate]:
        """Return what these events change, one change per run."""
        self._changes = {}
        for entry in entries:
            self._translate_event(self.record.apply_entry(entry))
        return list(self._changes.values())

    def _translate_event(self, event: Event) -> None:
        """Add the changes of an event that the record has applied."""
        match event:
            case events.EpochReported():  # first, as nearly all are
                self._on_epoch_reported(event)
            case events.TrialStarted():
                self._on_trial_started(event)
            case events.TrialEnded():
                self._on_trial_ended(event)
            case events.RunLost():
                self._make_trial_run(event.trial, event.time)
                self._set_tags(str(event.trial), {f"study.lost.{event.attempt}": f"{event.kind}: {event.reason}"})
            case events.StudyCreated():
                self._on_study_created(event)
            case events.SessionOpened():
                self._on_session_opened(event)
            case events.SearchExtended():
                self._set_tags(STUDY_RUN_KEY, {"study.extended": event.trials})
            case events.ConfirmRequested():
                rules = ", and the picks of other rules" if event.rules else ""
                self._set_tags(STUDY_RUN_KEY, {"study.confirming": f"top {event.top} on {event.seeds} seeds{rules}"})
            case events.AblationRequested():
                steps = ", ".join(" and ".join(step) for step in event.steps)
                seeds = f"{event.seeds} seeds from {event.first} on"
                self._set_tags(STUDY_RUN_KEY, {"study.ablating": f"trial {event.trial} by {steps} on {seeds}"})
            case events.ModelEvaluated():
                self._set_tags(STUDY_RUN_KEY, {"study.test_readings": self.record.n_test_readings})
            case events.NodeExcluded():
                nodes = "; ".join(map(": ".join, self.record.unusable_nodes.items()))
                self._set_tags(STUDY_RUN_KEY, {EXCLUDED_NODES_TAG: nodes})
            case events.TrialTested():
                self._add_metrics(str(event.trial), event.metrics, event.time, self._spec.epochs)
                self._remove_tags(str(event.trial), ["test_failure"])
            case events.TrialUntested():
                self._set_tags(str(event.trial), {"test_failure": event.reason})
            case events.ReferenceFitted():
                self._on_reference_fitted(event)
            case events.ConfigurationEnqueued():
                self._set_tags(STUDY_RUN_KEY, {"study.enqueued": len(self.record.enqueued_configurations)})
            case events.SearchEndRequested():
                self._set_tags(STUDY_RUN_KEY, {"study.search_ended_by": "a user"})
            case events.SessionClosed():
                self._on_session_closed(event)
            case events.FoldsJoined():
                self._on_folds_joined(event)
            case (
                events.TrialDecided()
                | events.TrialsRetried()
                | events.TrialStopRequested()
                | events.RequestRefused()
                | events.FoldPredicted()
                | events.EnsembleMeasured()
            ):
                pass  # a trial's run is made or reopened when it starts; its end says that a user stopped it
            case _:
                assert_never(event)

    def _pending_update(self, key: str) -> mlflow_runs.RunUpdate:
        return self._changes.setdefault(key, mlflow_runs.RunUpdate(key))

    def _set_tags(self, key: str, tags: Mapping[str, object]) -> None:
        change = self._pending_update(key)
        change.tags |= {name: mlflow_runs.truncate_value(value) for name, value in tags.items()}
        change.removed_tags -= tags.keys()

    def _remove_tags(self, key: str, names: Iterable[str]) -> None:
        change = self._pending_update(key)
        change.removed_tags |= set(names)
        change.tags = {name: value for name, value in change.tags.items() if name not in change.removed_tags}

    def _mark_run(self, key: str, tag: str, is_marked: bool) -> None:
        """Tag a run with `true`, or take the tag from it."""
        if is_marked:
            self._set_tags(key, {tag: "true"})
        else:
            self._remove_tags(key, [tag])

    def _on_study_created(self, event: events.StudyCreated) -> None:
        change = self._pending_update(STUDY_RUN_KEY)
        change.name, change.start_ms = self._spec.name, mlflow_runs.to_milliseconds(event.time)
        change.params |= study_params(self._spec)
        tags = {"study.kind": "study", "study.hash": self._spec.hash}
        self._set_tags(STUDY_RUN_KEY, {**tags, **inherited_tags(self._spec, self.record)})

    def _on_session_opened(self, event: events.SessionOpened) -> None:
        tags = {**inherited_tags(self._spec, self.record), **self._above, "study.node": event.node or ""}
        self._set_tags(STUDY_RUN_KEY, {**tags, mlflow_runs.NOTE_TAG: study_run_note(Results(self._spec, self.record))})
        self._remove_tags(STUDY_RUN_KEY, [EXCLUDED_NODES_TAG])
        self._pending_update(STUDY_RUN_KEY).dataset_inputs = self._dataset_inputs()
        self._begin_run(STUDY_RUN_KEY)
        self._progress.attached = False  # this session will write new files

    def _on_reference_fitted(self, event: events.ReferenceFitted) -> None:
        """Give a reference a run of its own, which ends as it begins."""
        key = mlflow_runs.reference_run_key(event.name)
        change = self._pending_update(key)
        change.parent_key = STUDY_RUN_KEY
        change.name = _reference_run_name(event.name)
        change.start_ms = mlflow_runs.to_milliseconds(event.time - (event.seconds or 0.0))
        change.dataset_inputs = self._dataset_inputs()
        change.params |= {"method.name": REFERENCE_METHOD, "method.model": event.name}  # as an exported file has them
        tags = {"study.kind": "reference", "study.stage": "reference", mlflow_runs.REFERENCE_TAG: event.name}
        self._set_tags(key, {**inherited_tags(self._spec, self.record), **tags})
        there, gone = ({"failure": event.reason}, RESULT_TAG) if event.reason else ({RESULT_TAG: "true"}, "failure")
        self._set_tags(key, there)
        self._remove_tags(key, [gone])
        self._add_metrics(key, event.metrics or {}, event.time, 0)
        self._end_run(key, event.time, "failed" if event.reason else "complete")

    def _make_trial_run(self, number: int, time: float) -> None:
        """Make a trial's run, and before it that which it is nested in, if they are not there.

        Args:
            time: when the trial started, or was lost or ended before that.
        """
        key, trial = str(number), self.record.trials[number]
        if self._has_run(key):
            return
        stage, of = trial.stage, number if trial.repeated_trial is None else trial.repeated_trial
        if stage == "replicate":
            self._make_trial_run(of, time)
        change = self._pending_update(key)
        change.parent_key = str(of) if stage == "replicate" else STUDY_RUN_KEY
        change.name, change.start_ms = self._trial_run_name(number), mlflow_runs.to_milliseconds(time)
        tags: dict[str, object] = {"study.kind": "trial", "study.trial": key, "study.stage": stage}
        if trial.fold is not None:
            tags["study.fold"] = trial.fold
        if stage != "final":
            tags["study.configuration"] = of
        if trial.repeated_trial is not None:
            tags["study.repeats"] = trial.repeated_trial
        if stage == "rule":
            picks = Results(self._spec, self.record).rule_picks
            tags["study.picked_by"] = ", ".join(p.rule.name for p in picks if p.trial_number == of)
        if stage == "ablation":
            tags["study.moved"] = self._ablation_step_text(trial.params)
        tags[mlflow_runs.NOTE_TAG] = self._note_with_params(STAGE_NOTES[stage].format(of), trial.params)
        self._set_tags(key, {**inherited_tags(self._spec, self.record, trial), **tags})
        own = {"train.seed": trial.seed, "train.epochs": self._spec.epochs}
        document = self._spec.trial_document({**trial.params, **own})
        change.params |= trial_params(self._spec, trial.params, document)
        if told := self._dataset_summaries().get(data.section_key(document["data"])):
            change.dataset_inputs = [mlflow_runs.to_dataset_input(document["data"], told)]
        self._progress.open.append(key)

    def _note_with_params(self, note: str, params: Params) -> str:
        given = ", ".join(f"{key} = {self._spec.label_with_name(key, value)}" for key, value in params.items())
        return "\n\n".join(filter(None, (note, escape_markdown(given))))

    def _dataset_inputs(self) -> "list[DatasetInput]":
        return [mlflow_runs.to_dataset_input(json.loads(key), told) for key, told in self._dataset_summaries().items()]

    def _dataset_summaries(self) -> Mapping[str, DatasetSummary]:
        """Return the data sets that the last driver wrote, by `study.data.section_key`; empty if it is an old one."""
        return self.record.sessions[-1].datasets or {} if self.record.sessions else {}

    def _trial_run_name(self, number: int) -> str:
        """Return the name of a trial's run: its configuration, its seed, and its fold where there are folds."""
        trial = self.record.trials[number]
        of = number if trial.repeated_trial is None else trial.repeated_trial
        if trial.stage == "final":
            whose = self._spec.name
        elif trial.stage == "ablation" and trial.repeated_trial is None:
            whose = f"ablation of {self._ablation_step_text(trial.params)}"
        else:
            whose = "baseline" if self.record.trials[of].stage == "baseline" else f"trial {of}"
        on = "" if trial.fold is None else f", fold {trial.fold}"
        return f"{whose[:MAX_NAME_CHARACTERS]}, seed {trial.seed}{on}"

    def _ablation_step_text(self, params: Params) -> str:
        """Return the knobs in which a trial of an ablation differs from the baseline, as text."""
        asked = ablation_steps.requested_ablation(self.record)
        knobs = ablation_steps.differing_knobs(self._spec, asked.baseline_trial.params, params) if asked else []
        return ", ".join(knobs) or "none"

    def _on_trial_started(self, event: events.TrialStarted) -> None:
        """Make the trial's run, which so lasts as long as the trial, whatever it waited for a process; or reopen it."""
        key = str(event.trial)
        self._make_trial_run(event.trial, event.time)
        self._set_tags(key, {"study.node": event.node or "", **device_tags(event.device or {})})
        if key not in self._progress.open:  # cut off by a stop, running again
            self._begin_run(key)
            self._remove_tags(key, TAGS_REMOVED_ON_RERUN)
            self._set_tags(key, inherited_tags(self._spec, self.record, self.record.trials[event.trial]))
            self._progress.open.append(key)

    def _on_epoch_reported(self, event: events.EpochReported) -> None:
        """Add an epoch, unless the run has it from before the trial was cut off."""
        key = str(event.trial)
        if event.epoch > self._progress.epochs.get(key, 0):
            self._add_metrics(key, event.metrics, event.time, event.epoch)
            self._progress.epochs[key] = event.epoch

    def _on_trial_ended(self, event: events.TrialEnded) -> None:
        key, trial = str(event.trial), self.record.trials[event.trial]
        self._make_trial_run(event.trial, event.time)
        if event.state == "pruned":
            self._set_tags(key, {"pruned_by": event.reason or ""})
        elif event.state == "failed":
            self._set_tags(key, {"failure": event.reason or ""} | ({"failure_kind": event.kind} if event.kind else {}))
        self._end_run(key, event.time, event.state)
        self._add_chosen_epoch_metrics(trial, event.time)
        self._tag_broken_constraints(trial)
        if event.state == "complete" or (event.state == "pruned" and trial.stage != "replicate"):
            # what failed may run again, and with it the other seeds of its configuration
            self._progress.epochs.pop(key, None)
        self._add_seed_statistics(trial, event.time)
        if self._spec.training_function and self._own_runs:
            self._add_runs_logged_by_function(self._own_runs(event.trial), event)

    def _on_folds_joined(self, event: events.FoldsJoined) -> None:
        """Add what a configuration is worth on the samples of all folds together to its run on each of them."""
        runs = [self.record.trials[number] for number in event.runs]
        found = ranking.statistics_by_metric(self._spec.objective, runs, event)
        values = {f"{ALL_FOLDS_PREFIX}{name}": found[name].mean for name in view_metrics(self._spec) if name in found}
        for run in runs:
            self._add_metrics(str(run.number), values, event.time, self._spec.epochs)

    def _add_runs_logged_by_function(self, folder: Path, event: events.TrialEnded) -> None:
        """Add the runs that the trial's function logged; if they cannot be read, tag the trial's run with why."""
        try:
            status, end = RUN_STATUS_BY_OUTCOME[event.state], mlflow_runs.to_milliseconds(event.time)
            found = runs_of_functions.read_runs_logged_by_function(folder, event.trial, status, end)
        except Exception as error:  # whatever MLflow makes of files that were cut off
            self._set_tags(str(event.trial), {"study.own_runs_unread": escape_control(error_message(error))})
            return
        for run in found:
            run.tags |= {**inherited_tags(self._spec, self.record), "study.kind": "own"}
            self._changes[run.run_key] = run

    def _add_chosen_epoch_metrics(self, trial: TrialRecord, time: float) -> None:
        """Add the epoch that was chosen and its validation metrics, where it need not be the last."""
        goal = self._spec.objective
        if goal.epoch_window is None or trial.state == "failed" or not trial.reports:
            return
        values = metrics_at_chosen_epoch(goal, trial)
        chosen = {f"chosen/{name}": values[name] for name in values if name == "epoch" or name.startswith("val/")}
        self._add_metrics(str(trial.number), chosen, time, trial.n_epochs)

    def _tag_broken_constraints(self, trial: TrialRecord) -> None:
        """Tag a complete trial with the constraints that it breaks, as MLflow's order of runs knows none."""
        if broken := constraints_broken_by_trial(self._spec.objective, trial):
            self._set_tags(str(trial.number), {BROKEN_CONSTRAINTS_TAG: ", ".join(map(str, broken))})

    def _add_seed_statistics(self, trial: TrialRecord, time: float) -> None:
        """Add mean and sample standard deviation over a configuration's seeds, once all of them ended.

        How many are complete is a tag, since a metric would draw a chart.
        """
        if trial.stage == "replicate" and trial.repeated_trial is not None:
            trial = self.record.trials[trial.repeated_trial]
        seeds = [trial, *self.record.repeat_trials(trial.number, "replicate")]
        complete = [seed for seed in seeds if seed.state == "complete"]
        have_ended = all(seed.state in ENDED_STATES for seed in seeds)
        if not have_ended or len(seeds) < max(2, len(self._spec.runs_of_configuration())):
            return
        spreads = ranking.statistics_by_metric(self._spec.objective, complete).items() if complete else ()
        on_val = {name: spread.to_dict() for name, spread in spreads if name.startswith("val/")}
        values = {f"{name}_{part}": spread[part] for name, spread in on_val.items() for part in ("mean", "sd")}
        self._add_metrics(str(trial.number), values, time, self._spec.epochs)
        self._set_tags(str(trial.number), {"study.seeds_complete": len(complete)})

    def _on_session_closed(self, event: events.SessionClosed) -> None:
        for key in list(self._progress.open):
            self._set_tags(key, {"interrupted": "true"})
            self._end_run(key, event.time, "interrupted")
        results = Results(self._spec, self.record)
        self._add_result_metrics(results, event.time)
        reference = results.reference_as_result
        self._move_tag_to_runs("study.best", [] if reference else results.ranked_all[:1], BEST_RUN_PREFIX)
        self._mark_best_reference(reference.name if reference else None)
        self._move_tag_to_runs("study.baseline", filter(None, [results.baseline]))
        if self._spec.objective.has_several_metrics:
            self._move_tag_to_runs("study.front", [found for found, _ in results.front])
            self._set_tags(STUDY_RUN_KEY, {"study.chosen_by": self._spec.objective.front_choice_text})
        self._set_tags(STUDY_RUN_KEY, {mlflow_runs.NOTE_TAG: study_run_note(results)})
        self._end_run(STUDY_RUN_KEY, event.time, event.state)

    def _add_result_metrics(self, found: Results, time: float) -> None:
        """Add the study's results that differ from what its run has, at the number of trials that they rest on.

        Those of the best, or of a final training's networks, are there by their metrics' names as well, at step 0, as
        MLflow draws bars of that. What it has and is no result any more becomes NaN, as MLflow takes no metric away.
        """
        by_arm, told = result_means_and_deviations(found), self._progress.results
        results = by_arm | self._own_result_values(found, by_arm)
        news = {name: value for name, value in results.items() if told.get(name) != value}
        news |= dict.fromkeys(told.keys() - results.keys(), math.nan)
        ends = sum(kind == "ended" for kind, *_ in self.record.history)
        of_arms = tuple(f"{who}/" for who in ARMS_OF_SUMMARY)
        as_trial = {name: news.pop(name) for name in [*news] if not name.startswith(of_arms)}
        self._add_metrics(STUDY_RUN_KEY, as_trial, time, 0)
        self._add_metrics(STUDY_RUN_KEY, news, time, ends)
        self._add_result_runs(found, time)
        self._progress.results = results
        seeds = result_seeds(found)
        possible = {f"study.{who}_seeds" for who in ("baseline", "search", "best")}
        self._remove_tags(STUDY_RUN_KEY, possible - seeds.keys())
        self._set_tags(STUDY_RUN_KEY, seeds)

    def _add_result_runs(self, found: Results, time: float) -> None:
        """Give each result a run of its own, so that what is compared is a row each, in the same columns.

        References have theirs, the best among them too, and a final training is one itself. A run lasts as long as the
        trials of its configuration together.
        """
        arms = summarise_study(found).arms
        if "final" in arms:  # one that was stopped before any seed was complete has nothing to compare
            self._mark_run(STUDY_RUN_KEY, RESULT_TAG, bool(arms["final"].metrics))
        keys = []
        for who, arm in self._result_arms(found):
            key = mlflow_runs.result_run_key(who, arm.trial)
            keys.append(key)
            is_there, name = self._has_run(key), self._result_run_name(who, arm, arms.get("baseline"))
            change = self._pending_update(key)
            change.dataset_inputs = self._dataset_inputs()
            if is_there:
                change.new_name = name
            else:
                change.parent_key, change.name = STUDY_RUN_KEY, name
            ran = self._trials_of_result(arm)
            ended = max((trial.ended_at for trial in ran if trial.ended_at is not None), default=time)
            change.start_ms = mlflow_runs.to_milliseconds(ended - sum(one.total_run_seconds or 0.0 for one in ran))
            self._end_run(key, ended, "complete")
            if arm.params is not None:
                document = self._spec.trial_document({**arm.params, "train.epochs": self._spec.epochs})
                change.params |= trial_params(self._spec, arm.params, document)
            elif who == "ensemble":
                change.params |= fixed_params(self._spec)
            change.params.pop("train.seed", None)
            seeds = f"seed{'s' * (len(arm.seeds) > 1)} {', '.join(map(str, arm.seeds))}"
            tags = {"study.kind": "result", mlflow_runs.RESULT_ARM_TAG: who, RESULT_TAG: "true"}
            if arm.trial is not None:
                tags[mlflow_runs.RESULT_TRIAL_TAG] = str(arm.trial)
            tags[mlflow_runs.NOTE_TAG] = self._note_with_params(f"{RESULT_NOTES[who]}, on {seeds}.", arm.params or {})
            self._set_tags(key, {**inherited_tags(self._spec, self.record), **tags})
            self._add_metrics(key, result_row_values(self._spec, arm), time, 0)
        for key in {*self._progress.runs, *self._changes} - {*keys}:
            if key.startswith(mlflow_runs.RESULT_RUN_KEY_PREFIX):
                who, _, trial = key.removeprefix(mlflow_runs.RESULT_RUN_KEY_PREFIX).partition(" ")
                self._remove_tags(key, [RESULT_TAG])
                self._pending_update(key).new_name = f"former {who}" + (f": trial {trial}" if trial else "")

    def _own_result_values(self, found: Results, by_arm: Mapping[str, float]) -> dict[str, float]:
        """Return what the study's run has by the metrics' own names: a final training's is a row of results itself."""
        if final := summarise_study(found).final:
            return result_row_values(self._spec, final)
        return {name: by_arm[f"best/{name}"] for name in result_metric_names(self._spec) if f"best/{name}" in by_arm}

    def _has_run(self, key: str) -> bool:
        return key in self._progress.runs or key in self._changes

    def _result_arms(self, found: Results) -> Iterator[tuple[str, ArmSummary]]:
        """Yield what has a run as a result: a summary's arms, and of several metrics the rest of the front."""
        known = summarise_study(found).arms
        arms = {who: known[who] for who in RESULT_NOTES if who in known}
        if "best" in arms and arms["best"].reference:
            del arms["best"]
        yield from arms.items()
        if self._spec.objective.has_several_metrics and self._spec.final_seeds is None:
            there = {arm.trial for arm in arms.values()}
            for candidate, _ in found.front:
                if candidate.trial.number not in there:
                    yield "front", summarise_candidate(self._spec, candidate)

    def _trials_of_result(self, arm: ArmSummary) -> list[TrialRecord]:
        """Return every trial of a result's configuration; of an ensemble the final ones."""
        trials = self.record.trials.values()
        if arm.trial is None:
            return [trial for trial in trials if trial.stage == "final"]
        return [trial for trial in trials if arm.trial in (trial.number, trial.repeated_trial)]

    def _result_run_name(self, who: str, arm: ArmSummary, baseline: ArmSummary | None) -> str:
        if who == "ensemble":
            return f"{self._spec.name}, ensemble"
        if who == "baseline":
            return who
        star = BEST_RUN_PREFIX if who == "best" else ""
        return f"{star}{who}: {'the baseline' if baseline and arm.trial == baseline.trial else f'trial {arm.trial}'}"

    def _mark_best_reference(self, best: str | None) -> None:
        """Tag the run of the reference that is the study's result, and put the star before its name."""
        for name in self.record.reference_events:
            key, is_best = mlflow_runs.reference_run_key(name), name == best
            self._mark_run(key, "study.best", is_best)
            self._pending_update(key).new_name = (BEST_RUN_PREFIX if is_best else "") + _reference_run_name(name)

    def _move_tag_to_runs(self, tag: str, candidates: Iterable[Candidate], sign: str = "") -> None:
        """Tag the runs of configurations and put a sign before their names; take both from those of earlier ones."""
        numbers = {candidate.trial.number for candidate in candidates} if self._spec.final_seeds is None else set()
        trials = self.record.trials.values()
        keys = [str(trial.number) for trial in trials if numbers & {trial.number, trial.repeated_trial}]
        runs = [key for key in keys if self._has_run(key)]  # the others have not started
        for key in dict.fromkeys([*self._progress.marked.get(tag, ()), *runs]):
            self._mark_run(key, tag, key in runs)
            if sign:
                self._pending_update(key).new_name = (sign if key in runs else "") + self._trial_run_name(int(key))
        self._progress.marked[tag] = runs

    def _end_run(self, key: str, time: float, state: TrialOutcome | StudyOutcome) -> None:
        change = self._pending_update(key)
        change.status, change.end_ms = RUN_STATUS_BY_OUTCOME[state], mlflow_runs.to_milliseconds(time)
        if key in self._progress.open:
            self._progress.open.remove(key)

    def _begin_run(self, key: str) -> None:
        change = self._pending_update(key)
        change.status, change.end_ms = "RUNNING", None

    def _add_metrics(self, key: str, metrics: Mapping[str, float | None], time: float, step: int) -> None:
        """Add metrics, the study's own first, then those measured on data: the UI compares a run's first ones.

        Of a study's run the best or the final training is before the baseline.
        """
        at, own = mlflow_runs.to_milliseconds(time), self._spec.objective.needed_metrics
        measures = {name.rpartition("/")[2] for name in own}

        def place(name: str) -> tuple[bool, ...]:
            is_other = name.rpartition("/")[2] not in measures
            return name not in own, is_other, name.startswith("baseline/"), not name.startswith(("val/", "test/"))

        names = sorted(metrics, key=place)
        points = ((name, value) for name in names if (value := metrics[name]) is not None)
        self._pending_update(key).metric_values += (mlflow_runs.MetricValue(*point, at, step) for point in points)


def _reference_run_name(name: str) -> str:
    """Return the name of a reference's run: what tells it from others comes first, as MLflow cuts its end."""
    return REFERENCES[name].description if name in REFERENCES else name


EXCLUDED_NODES_TAG = "study.unusable_nodes"
