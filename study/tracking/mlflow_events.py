"""What each event of a ledger changes in MLflow. An event that is read twice changes nothing."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import assert_never

from study import data, ranking
from study.data.dataset import DatasetSummary
from study.errors import said
from study.home import events
from study.home.events import ENDED, End, Event, Outcome
from study.home.line import Entry
from study.home.record import StudyRecord, TrialRecord
from study.knobs import Params, Section, Value, texts
from study.metrics import group_names
from study.ranking import Candidate, Results, ablation_steps, epochs
from study.ranking.summary import lines, result_metrics, result_seeds, summary
from study.spec import StudySpec
from study.spec.document import mapping
from study.text import escaped, printed
from study.tracking import own_runs
from study.tracking.store import REFERENCE, Point, RunUpdate, cut, data_set, milliseconds, reference_key
from study.tracking.tracking_state import STUDY, TrackingState

MAX_NAME_CHARACTERS = 200
"""Most characters of a run's name before its seed; MLflow takes 250 in all."""

NOTE = "mlflow.note.content"
"""Tag that MLflow's UI shows as a run's description, as Markdown."""


def params(spec: StudySpec) -> dict[str, str]:
    """Return the study's parameters by key: the fixed values of all trials, then the search and the resources.

    A domain reads as its `low`, `high` ... or its choices; what is not set is left out.
    """
    document = {section: mapping(values) for section, values in spec.to_document().items()}
    fixed = {
        f"{section}.{name}": value
        for section in ("data", "model", "method", "train")
        for name, value in document[section].items()
        if f"{section}.{name}" not in spec.search.space
    }
    flat = {f"search.{name}": value for name, value in _flat(document["search"]) if value not in (None, {}, [])}
    resources = {f"resources.{name}": value for name, value in document["resources"].items() if value is not None}
    return {name: cut(value) for name, value in {**fixed, **flat, **resources}.items()}


NESTED = ("early_stopping", "confirm", "choose", "plateau", "stop", "baseline")
"""Sections of a search."""


def own_params(spec: StudySpec, document: Mapping[str, Section]) -> dict[str, str]:
    """Return a trial's parameters by key: what is searched, its seed, and where else it differs from the study's run.

    MLflow's pages show what differs; the rest is on the study's run alone.

    Args:
        document: the trial's complete sections.
    """
    searched = {*spec.search.space, "train.seed"}
    return {
        f"{section}.{name}": cut(value)
        for section, keys in document.items()
        for name, value in keys.items()
        if f"{section}.{name}" in searched or name not in spec.base[section] or value != spec.base[section][name]
    }


def _flat(search: Section) -> list[tuple[str, Value]]:
    """Return the keys of a search, with those of its sections one by one, and domains in words."""
    flat: list[tuple[str, Value]] = []
    for name, value in search.items():
        if name == "space":
            flat += [(f"space.{key}", _domain(mapping(domain))) for key, domain in mapping(value).items()]
        elif name in NESTED and isinstance(value, Mapping):
            flat += [(f"{name}.{key}", part) for key, part in value.items()]
        else:
            flat.append((name, value))
    return flat


def _domain(domain: Section) -> str:
    if "choices" in domain and len(domain) == 1:
        return f"one of {', '.join(texts(domain, 'choices'))}"
    return ", ".join(f"{key} {value}" for key, value in domain.items())


def note(
    results: Results, parts: Mapping[str, Sequence[str]] | None = None, links: Mapping[str, str] | None = None
) -> str:
    """Return what the study is, on which data, and what came of it.

    Args:
        parts: the sentences of the report's lead by title; without them the summary takes their place.
        links: addresses by their text.
    """
    spec, record = results.spec, results.record
    words, goal = {"min": "lower", "max": "higher"}, spec.objective
    aims = [f"{name}, {words[mode]} is better" for name, mode in zip(goal.metrics, goal.modes, strict=True)]
    what = "Final training of one configuration" if spec.final_seeds is not None else "Search"
    titles = record.sessions[-1].dataset if record.sessions else None
    text: list[str] = [
        escaped(f"{what} for {'; '.join(aims)}."),
        escaped(f"On {titles or spec.base['data']['name']}; {record.state}."),
    ]
    if parts:
        text += [f"**{escaped(title)}.** {escaped(' '.join(sentences))}" for title, sentences in parts.items()]
    elif record.trials and record.state != "running":
        text += [f"- {escaped(line)}" for line in lines(summary(results))]
    if links:
        text.append(" · ".join(f"[{escaped(name)}]({address})" for name, address in links.items()))
    return cut("\n\n".join(text))


def device_tags(device: Mapping[str, str]) -> dict[str, str]:
    """Return a trial's tags about its device: `study.device` is the name, `study.device.driver` and others the rest."""
    return {f"study.device.{key}".removesuffix(".name"): value for key, value in device.items()}


NOT_TAGS = ("libraries", "commit", "node", "datasets", "weights", "function")


def inherited(spec: StudySpec, record: StudyRecord) -> dict[str, str]:
    """Return the study's tags that each trial's run has too: which study, on which code, libraries and data."""
    session = record.sessions[-1] if record.sessions else None
    plain = {key: value for key, value in (session.environment if session else {}).items() if key not in NOT_TAGS}
    tags = {"study.id": record.id, "study.name": spec.name}
    tags |= {f"study.{key}": str(value) for key, value in plain.items()}
    if session:
        for key, files in (("weights", session.weights), ("function", session.function)):
            if files:
                tags[f"study.{key}"] = "; ".join(map("{0[name]}: {0[file]}, sha256 {0[sha256]}".format, files))
        tags |= {f"version.{key}": value for key, value in (session.libraries or {}).items()}
        tags["mlflow.user"] = session.owner  # shown in the UI's column of users
    if groups := group_names.legend(record.groups.classes, record.groups.biases):
        tags["study.groups"] = cut("; ".join(f"{name}: {words}" for name, words in groups.items()))
    source = f"study {session.version}" if session and session.version else "study"
    tags |= {"mlflow.source.name": source, "mlflow.source.type": "LOCAL"}  # shown in the UI's column of sources
    return tags | ({"mlflow.source.git.commit": session.commit} if session and session.commit else {})


STATUS = {"complete": "FINISHED", "pruned": "KILLED", "failed": "FAILED", "interrupted": "KILLED"}

STAR = "★ "
"""Prefix of the names of the best configuration's runs."""

OF_AN_END = ("pruned_by", "interrupted", "failure", "failure_kind", "test_failure")
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
        self._changes: dict[str, RunUpdate] = {}

    def changes(self, entries: Iterable[Entry]) -> list[RunUpdate]:
        """Return what these events change, one change per run."""
        self._changes = {}
        for entry in entries:
            self._bring(self.record.take(entry))
        return list(self._changes.values())

    def _bring(self, event: Event) -> None:
        """Add the changes of an event that the record has applied."""
        match event:
            case events.Report():  # first, as nearly all are
                self._report(event)
            case events.Started():
                self._started(event)
            case events.Ended():
                self._ended(event)
            case events.Decided():
                self._decided(event)
            case events.Lost():
                self._tag(str(event.trial), {f"study.lost.{event.attempt}": f"{event.kind}: {event.reason}"})
            case events.Created():
                self._created(event)
            case events.Opened():
                self._opened(event)
            case events.SearchExtended():
                self._tag(STUDY, {"study.extended": event.trials})
            case events.TrialsLengthened():
                self._lengthened(event)
            case events.Confirming():
                rules = ", and the picks of other rules" if event.rules else ""
                self._tag(STUDY, {"study.confirming": f"top {event.top} on {event.seeds} seeds{rules}"})
            case events.Ablating():
                steps = ", ".join(" and ".join(step) for step in event.steps)
                seeds = f"{event.seeds} seeds from {event.first} on"
                self._tag(STUDY, {"study.ablating": f"trial {event.trial} by {steps} on {seeds}"})
            case events.Evaluated():
                self._tag(STUDY, {"study.test_readings": self.record.test_readings})
            case events.Unusable():
                self._tag(STUDY, {UNUSABLE: "; ".join(map(": ".join, self.record.unusable.items()))})
            case events.SplitTested():
                total = self.record.trials[event.trial].total(self._spec.epochs)
                self._point(str(event.trial), event.metrics, event.time, total)
                self._untag(str(event.trial), ["test_failure"])
            case events.Untested():
                self._tag(str(event.trial), {"test_failure": event.reason})
            case events.Referenced():
                self._referenced(event)
            case events.Enqueued():
                self._tag(STUDY, {"study.enqueued": len(self.record.enqueued)})
            case events.Ending():
                self._tag(STUDY, {"study.search_ended_by": "a user"})
            case events.Closed():
                self._closed(event)
            case events.Retried() | events.Stopping() | events.Refused() | events.Judged() | events.Joined():
                pass  # a run is reopened when its trial starts; a trial's end says that a user stopped it
            case _:
                assert_never(event)

    def _change(self, key: str) -> RunUpdate:
        return self._changes.setdefault(key, RunUpdate(key))

    def _tag(self, key: str, tags: Mapping[str, object]) -> None:
        change = self._change(key)
        change.tags |= {name: cut(value) for name, value in tags.items()}
        change.untag -= tags.keys()

    def _untag(self, key: str, names: Iterable[str]) -> None:
        change = self._change(key)
        change.untag |= set(names)
        change.tags = {name: value for name, value in change.tags.items() if name not in change.untag}

    def _created(self, event: events.Created) -> None:
        change = self._change(STUDY)
        change.name, change.start = self._spec.name, milliseconds(event.time)
        change.params |= params(self._spec)
        self._tag(STUDY, {"study.kind": "study", "study.hash": self._spec.hash, **inherited(self._spec, self.record)})

    def _opened(self, event: events.Opened) -> None:
        tags = {**inherited(self._spec, self.record), **self._above, "study.node": event.node or ""}
        self._tag(STUDY, tags)
        self._tag(STUDY, {NOTE: note(Results(self._spec, self.record))})
        self._untag(STUDY, [UNUSABLE])
        self._change(STUDY).inputs = [data_set(json.loads(key), told) for key, told in self._data_sets().items()]
        self._begin(STUDY)
        self._progress.attached = False  # this session will write new files

    def _referenced(self, event: events.Referenced) -> None:
        """Give a reference a run of its own, which ends as it begins."""
        key = reference_key(event.name)
        change = self._change(key)
        change.parent, change.name, change.start = STUDY, key, milliseconds(event.time - (event.seconds or 0.0))
        tags = {"study.kind": "reference", "study.stage": "reference", REFERENCE: event.name}
        self._tag(key, {**inherited(self._spec, self.record), **tags})
        self._tag(key, {"failure": event.reason}) if event.reason else self._untag(key, ["failure"])
        self._point(key, event.metrics or {}, event.time, 0)
        self._end(key, event.time, "failed" if event.reason else "complete")

    def _lengthened(self, event: events.TrialsLengthened) -> None:
        """Make the runs of lengthened trials go on after their epochs, with the new total in a tag.

        MLflow cannot change the parameter `train.epochs`.
        """
        self._tag(STUDY, {"study.lengthened": f"{len(event.trials)} trials to epoch {event.epochs}"})
        for number in event.trials:
            self._progress.epochs[str(number)] = self.record.trials[number].epochs
            self._tag(str(number), {"study.epochs": event.epochs})

    def _decided(self, event: events.Decided) -> None:
        key, stage = str(event.trial), event.stage
        change = self._change(key)
        change.parent = str(event.repeats) if stage == "replicate" else STUDY
        change.name, change.start = self._name(event.trial), milliseconds(event.time)
        tags: dict[str, object] = {"study.kind": "trial", "study.trial": key, "study.stage": stage}
        if event.fold is not None:
            tags["study.fold"] = event.fold
        if stage != "final":
            tags["study.configuration"] = event.trial if event.repeats is None else event.repeats
        if event.repeats is not None:
            tags["study.repeats"] = event.repeats
        if stage == "rule":
            picked_by = (
                pick.rule.name for pick in Results(self._spec, self.record).picks if pick.number == event.repeats
            )
            tags["study.picked_by"] = ", ".join(picked_by)
        if stage == "ablation":
            tags["study.moved"] = self._moved(event.params)
        self._tag(key, {**inherited(self._spec, self.record), **tags})
        own = {"train.seed": event.seed, "train.epochs": self.record.trials[event.trial].total(self._spec.epochs)}
        document = self._spec.trial_document({**event.params, **own})
        change.params |= own_params(self._spec, document)
        if told := self._data_sets().get(data.key(document["data"])):
            change.inputs = [data_set(document["data"], told)]
        if key not in self._progress.open:
            self._progress.open.append(key)

    def _data_sets(self) -> Mapping[str, DatasetSummary]:
        """Return the data sets that the last driver wrote, by `study.data.key`; empty if it is an old one."""
        return self.record.sessions[-1].datasets or {} if self.record.sessions else {}

    def _name(self, number: int) -> str:
        """Return the name of a trial's run: its configuration, its seed, and its fold where there are folds."""
        trial = self.record.trials[number]
        of = number if trial.repeats is None else trial.repeats
        if trial.stage == "final":
            whose = "final"
        elif trial.stage == "ablation" and trial.repeats is None:
            whose = f"ablation of {self._moved(trial.params)}"
        else:
            whose = "baseline" if self.record.trials[of].stage == "baseline" else f"trial {of}"
        on = "" if trial.fold is None else f", fold {trial.fold}"
        return f"{whose[:MAX_NAME_CHARACTERS]}, seed {trial.seed}{on}"

    def _moved(self, params: Params) -> str:
        """Return the knobs in which a trial of an ablation differs from the baseline, as text."""
        asked = ablation_steps.asked(self.record)
        knobs = ablation_steps.differing(self._spec, asked.reference.params, params) if asked else []
        return ", ".join(knobs) or "none"

    def _started(self, event: events.Started) -> None:
        key = str(event.trial)
        self._tag(key, {"study.node": event.node or "", **device_tags(event.device or {})})
        if key not in self._progress.open:  # cut off by a stop, running again
            self._begin(key)
            self._untag(key, OF_AN_END)
            self._tag(key, inherited(self._spec, self.record))
            self._progress.open.append(key)

    def _report(self, event: events.Report) -> None:
        """Add an epoch, unless the run has it from before the trial was cut off."""
        key = str(event.trial)
        if event.epoch > self._progress.epochs.get(key, 0):
            self._point(key, event.metrics, event.time, event.epoch)
            self._progress.epochs[key] = event.epoch

    def _ended(self, event: events.Ended) -> None:
        key, trial = str(event.trial), self.record.trials[event.trial]
        if event.state == "pruned":
            self._tag(key, {"pruned_by": event.reason or ""})
        elif event.state == "failed":
            self._tag(key, {"failure": event.reason or ""} | ({"failure_kind": event.kind} if event.kind else {}))
        self._end(key, event.time, event.state)
        self._tell_chosen_epoch(trial, event.time)
        if event.state == "complete" or (event.state == "pruned" and trial.stage != "replicate"):
            # what failed may run again, and with it the other seeds of its configuration
            self._progress.epochs.pop(key, None)
        self._sum_up(trial, event.time)
        if self._spec.function and self._own_runs:
            self._bring_own(self._own_runs(event.trial), event)

    def _bring_own(self, folder: Path, event: events.Ended) -> None:
        """Add the runs that the trial's function logged; if they cannot be read, tag the trial's run with why."""
        try:
            found = own_runs.read(folder, event.trial, STATUS[event.state], milliseconds(event.time))
        except Exception as error:  # whatever MLflow makes of files that were cut off
            self._tag(str(event.trial), {"study.own_runs_unread": printed(said(error))})
            return
        for run in found:
            run.tags |= {**inherited(self._spec, self.record), "study.kind": "own"}
            self._changes[run.key] = run

    def _tell_chosen_epoch(self, trial: TrialRecord, time: float) -> None:
        """Add the epoch that was chosen and its validation metrics, where it need not be the last."""
        goal = self._spec.objective
        if goal.window is None or trial.state == "failed" or not trial.reports:
            return
        values = epochs.values(goal, trial)
        chosen = {f"chosen/{name}": values[name] for name in values if name == "epoch" or name.startswith("val/")}
        self._point(str(trial.number), chosen, time, trial.epochs)

    def _sum_up(self, trial: TrialRecord, time: float) -> None:
        """Add mean and sample standard deviation over a configuration's seeds, once all of them ended.

        How many are complete is a tag, since a metric would draw a chart.
        """
        if trial.stage == "replicate" and trial.repeats is not None:
            trial = self.record.trials[trial.repeats]
        seeds = [trial, *self.record.repeats_of(trial.number, "replicate")]
        complete = [seed for seed in seeds if seed.state == "complete"]
        if len(seeds) < max(2, len(self._spec.runs())) or any(seed.state not in ENDED for seed in seeds):
            return
        spreads = ranking.spreads(self._spec.objective, complete).items() if complete else ()
        values = {
            f"{name}_{part}": spread.to_document()[part]
            for name, spread in spreads
            if name.startswith("val/")
            for part in ("mean", "sd")
        }
        self._point(str(trial.number), values, time, trial.total(self._spec.epochs))
        self._tag(str(trial.number), {"study.seeds_complete": len(complete)})

    def _closed(self, event: events.Closed) -> None:
        for key in list(self._progress.open):
            self._tag(key, {"interrupted": "true"})
            self._end(key, event.time, "interrupted")
        results = Results(self._spec, self.record)
        self._tell_results(results, event.time)
        stays = results.unbeaten
        self._mark("study.best", [] if stays else results.ranked[:1], STAR)
        self._mark_references(stays.name if stays else None)
        self._mark("study.baseline", filter(None, [results.baseline]))
        if self._spec.objective.several:
            self._mark("study.front", [found for found, _ in results.front])
            self._tag(STUDY, {"study.chosen_by": self._spec.objective.rule})
        self._tag(STUDY, {NOTE: note(results)})
        self._end(STUDY, event.time, event.state)

    def _tell_results(self, found: Results, time: float) -> None:
        """Add the study's results that differ from what its run has, at the number of trials that they rest on.

        What it has and is no result any more becomes NaN, as MLflow takes no metric away.
        """
        results, told = result_metrics(found), self._progress.results
        news = {name: value for name, value in results.items() if told.get(name) != value}
        gone = dict.fromkeys(told.keys() - results.keys(), math.nan)
        ends = sum(kind == "ended" for kind, *_ in self.record.story)
        self._point(STUDY, news | gone, time, ends)
        self._progress.results = results
        seeds = result_seeds(found)
        self._untag(STUDY, {f"study.{who}_seeds" for who in ("baseline", "search", "best")} - seeds.keys())
        self._tag(STUDY, seeds)

    def _mark_references(self, best: str | None) -> None:
        """Tag the run of the reference that is the study's result, and put the star before its name."""
        for name in self.record.references:
            key, is_best = reference_key(name), name == best
            self._tag(key, {"study.best": "true"}) if is_best else self._untag(key, ["study.best"])
            self._change(key).rename = (STAR if is_best else "") + key

    def _mark(self, tag: str, candidates: Iterable[Candidate], sign: str = "") -> None:
        """Tag the runs of configurations and put a sign before their names; take both from those of earlier ones."""
        numbers = {candidate.trial.number for candidate in candidates} if self._spec.final_seeds is None else set()
        trials = self.record.trials.values()
        runs = [str(trial.number) for trial in trials if numbers & {trial.number, trial.repeats}]
        for key in dict.fromkeys([*self._progress.marked.get(tag, ()), *runs]):
            self._tag(key, {tag: "true"}) if key in runs else self._untag(key, [tag])
            if sign:
                self._change(key).rename = (sign if key in runs else "") + self._name(int(key))
        self._progress.marked[tag] = runs

    def _end(self, key: str, time: float, state: End | Outcome) -> None:
        change = self._change(key)
        change.status, change.end = STATUS[state], milliseconds(time)
        if key in self._progress.open:
            self._progress.open.remove(key)

    def _begin(self, key: str) -> None:
        change = self._change(key)
        change.status, change.end = "RUNNING", None

    def _point(self, key: str, metrics: Mapping[str, float | None], time: float, step: int) -> None:
        """Add metrics, the study's own first, then those measured on data: the UI compares a run's first ones."""
        at, own = milliseconds(time), self._spec.objective.needed
        names = sorted(metrics, key=lambda name: (name not in own, not name.startswith(("val/", "test/"))))
        points = [Point(name, value, at, step) for name in names if (value := metrics[name]) is not None]
        self._change(key).points += points


UNUSABLE = "study.unusable_nodes"
