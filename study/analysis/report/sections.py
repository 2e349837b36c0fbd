"""The report's sections, as a `study.analysis.report.page.Page`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC
from typing import Any

import pandas as pd

from study import ranking
from study.analysis.figures.curves import CURVES
from study.analysis.figures.parallel import LINES
from study.analysis.report.ablation import ablation_section
from study.analysis.report.captions import CAPTIONS, MODEL_CAPTIONS, WHICH_MODELS, caption
from study.analysis.report.conclusions import caveats
from study.analysis.report.groups import groups
from study.analysis.report.lead import lead
from study.analysis.report.page import Page, Picture, Points, Section, Table, Text
from study.analysis.report.rules import rules_section
from study.analysis.report.summary_note import summary_note
from study.analysis.statistics import formatting
from study.analysis.statistics.difference import final_side, sides
from study.analysis.statistics.frame import varied
from study.analysis.statistics.importance import explained
from study.analysis.tables import report_tables
from study.analysis.tables.front_table import front_note, printed_front
from study.home.as_searched import as_searched
from study.home.devices import devices, in_words
from study.home.record import StudyRecord
from study.ranking import epochs
from study.spec import StudySpec, rungs
from study.text.moment import moment
from study.text.short import ends, parameter

EXTENDED = (
    "Learning curves and seeds show trials as far as they were extended, all other figures and the table of early "
    "stopping show each as the search ended it: trials of different numbers of epochs do not compare."
)

LISTED = 200
"""Trials in the page's table at most: a longer one is slow to show, and nobody reads it."""


def report_page(spec: StudySpec, record: StudyRecord, pictures: Mapping[str, str]) -> Page:
    """The whole report; `pictures` are the titles of the figures that could be drawn."""
    figures = [Picture(name, _caption(name, spec), _one_line(pictures[name])) for name in CAPTIONS if name in pictures]
    model_figures = [
        Picture(name, MODEL_CAPTIONS[name], _one_line(pictures[name])) for name in MODEL_CAPTIONS if name in pictures
    ]
    first, summary, configurations = (
        report_tables.printed_first(spec, record),
        report_tables.printed_summary(spec, record),
        report_tables.printed_configurations(spec, record),
    )
    open_points = list(caveats(spec, record))
    sections = [
        Section("Summary", [Table(first), *_beside(spec, record), *_summary_notes(spec, record)])
        if final_side(spec, record) or any(sides(spec, record))
        else None,
        Section("Best configurations", [Table(configurations), Text(_ranking_note(spec, record))])
        if len(configurations)
        else None,
        _front(spec, record),
        ablation_section(spec, record),
        rules_section(spec, record),
        Section("Figures", [*figures, *_thinned(record), *_without(spec, record, pictures)]) if figures else None,
        Section("What the models learned", [Text(WHICH_MODELS), *model_figures]) if model_figures else None,
        Section("Trials", [Table(report_tables.printed_counts(record))]) if record.trials else None,
        Section("Settings", [Table(_pairs(_settings(spec, record)))], folded=True),
        Section("What is not known", [Points(open_points)]) if open_points else None,
        Section("Provenance", [Table(_pairs(_provenance(spec, record)))]),
        Section("Every metric", [Table(summary)], folded=True) if len(summary) > len(first) else None,
        _trials(spec, record) if record.trials else None,
    ]
    parts = [(part.title, part.text) for part in lead(spec, record)]
    return Page(f"Study {spec.name}", parts, [section for section in sections if section])


def _thinned(record: StudyRecord) -> list[Text]:
    longer = [Text(EXTENDED)] if record.lengthened else []
    if len(record.trials) <= min(CURVES, LINES):
        return longer
    return [
        *longer,
        Text("With many trials, figures with a line per trial and interactive figures show an even selection."),
    ]


def _without(spec: StudySpec, record: StudyRecord, pictures: Mapping[str, str]) -> list[Text]:
    """Why there is no figure of importance."""
    if "importance" in pictures or not varied(spec):
        return []
    return [
        Text(f"Not shown: how important each parameter is. The reason: {explained(spec, as_searched(record)).missing}.")
    ]


def _trials(spec: StudySpec, record: StudyRecord) -> Section:
    """Every trial, or the best ones of a large study."""
    if len(record.trials) <= LISTED:
        return Section("All trials", [Table(report_tables.printed_trials(spec, record))], folded=True)
    by_rank = [
        *record.by_stage("baseline"),
        *(candidate.trial for candidate in ranking.candidates(record, spec)),
        *record.trials.values(),
    ]
    listed = dict(list({trial.number: trial for trial in by_rank}.items())[:LISTED])
    table = report_tables.printed_trials(spec, replace(record, trials=listed))
    note = f"The baseline and the best of {len(record.trials)} trials; all of them are in trials.csv."
    return Section(f"{LISTED} trials", [Text(note), Table(table)], folded=True)


def _one_line(title: str) -> str:
    """A figure's title on one line, its dollar signs not escaped."""
    return " ".join(title.replace(r"\$", "$").split())


def _caption(name: str, spec: StudySpec) -> str:
    rule, text = spec.search.early_stopping.name, caption(name, spec)
    if name != "learning_curves" or spec.final_seeds is not None or rule == "none":
        return text
    if rule == "median":
        return f"{text} From the dotted line on trials are compared after each epoch and the worse half pruned."
    several = " of any bracket" if len(rungs.brackets(spec.search.early_stopping, spec.epochs)) > 1 else ""
    return f"{text} Dotted lines are the epochs{several} at which trials are compared and the worse ones pruned."


def _summary_notes(spec: StudySpec, record: StudyRecord) -> list[Text]:
    notes = [summary_note(spec, record), *groups(spec, record)]
    return [Text(note) for note in notes]


def _beside(spec: StudySpec, record: StudyRecord) -> list[Table]:
    table = report_tables.printed_beside(spec, record)
    return [Table(table)] if len(table) else []


def _front(spec: StudySpec, record: StudyRecord) -> Section | None:
    table = printed_front(spec, record)
    return Section("Front", [Table(table), Text(front_note(spec, record))]) if len(table) else None


def _ranking_note(spec: StudySpec, record: StudyRecord) -> str:
    candidates = ranking.candidates(record, spec)
    means = "," if len(spec.seeds) == 1 else f", the mean over {formatting.seeds(spec.seeds)},"
    note = f"Ordered by the value in the search{means} and by the mean on fresh seeds once all of these have run."
    rest = len(candidates) - report_tables.TOP
    return note + (f" {formatting.count(rest, 'more trial')} not listed." if rest > 0 else "")


BETTER = {"max": "higher", "min": "lower"}


def _settings(spec: StudySpec, record: StudyRecord) -> dict[str, str]:
    """The data's title, every key that a trial starts from, and how the search works."""
    search = spec.search
    settings = {"data": record.sessions[-1]["dataset"]} if record.sessions and "dataset" in record.sessions[-1] else {}
    classes = (record.groups or {}).get("classes") or []
    settings |= {"positive class": classes[1]} if len(classes) == 2 else {}
    for section, values in spec.base.items():
        for key, value in values.items():
            dotted = f"{section}.{key}"
            settings[dotted] = formatting.setting(value)
    settings |= {key: _domain_text(spec, key) for key in search.space}
    goal = spec.objective
    aims = (f"{name}, {BETTER[mode]} is better" for name, mode in zip(goal.metrics, goal.modes, strict=True))
    metric = f"{epochs.words(goal)}: {'; '.join([*aims, *spec.search.constraints])}"
    if spec.final_seeds is not None:
        return settings | {"metric": metric}
    confirm = ranking.confirm(record, spec)
    settings["metric"] = metric
    settings["search"] = f"{formatting.count(spec.trials, 'trial')}, sampler {search.sampler}, seed {search.seed}"
    if len(spec.seeds) > 1:
        settings["replicates"] = f"a configuration's value is its mean over {formatting.seeds(spec.seeds)}"
    settings["baseline"] = (
        ", ".join(f"{key} {parameter(value)}" for key, value in (search.baseline or {}).items()) or "none"
    )
    settings["early stopping"] = rungs.words(search.early_stopping, spec.epochs)
    settings["confirm"] = (
        f"top {confirm.top} and the baseline on {formatting.count(confirm.seeds, 'fresh seed')}"
        if confirm.top
        else "none"
    ) + ("; the picks of other rules too" if confirm.rules else "")
    return settings


def _domain_text(spec: StudySpec, key: str) -> str:
    domain, condition = spec.search.space[key], spec.space.condition(key)
    where = " and ".join(f"{other} is {' or '.join(map(parameter, values))}" for other, values in condition.items())
    where_clause = f", where {where}" if where else ""
    if domain.choices is not None:
        is_constant = len(domain.choices) == 1
        return f"{'always' if is_constant else 'searched: other of'} {parameter(domain.choices)}{where_clause}"
    scale = (", log" if domain.log else "") + (f", step {formatting.setting(domain.step)}" if domain.step else "")
    return f"searched: {ends(domain.low, domain.high)}{scale}{where_clause}"


def _provenance(spec: StudySpec, record: StudyRecord) -> dict[str, str]:
    """Where the numbers come from; where sessions differ, every different value in order."""
    facts: dict[str, list[str]] = {
        "study": [spec.name],
        "id": [record.id or formatting.MISSING],
        "settings' hash": [spec.hash],
        "state": [record.state],
        "readings of the test split": [str(record.test_readings)],
    }
    if used := devices(record):
        facts["device"] = [f"{in_words(device.facts)}: {formatting.count(device.trials, 'trial')}" for device in used]
    for key, value in _flat(spec.origin or {}, "origin"):
        facts.setdefault(key, []).append(formatting.setting(value))
    for session in record.sessions:
        ordered = {"started": session.get("time"), **{k: v for k, v in session.items() if k not in LEFT_OUT}}
        for key, value in [*_flat(ordered), *data_sets(session)]:
            facts.setdefault(key, []).append(moment(value, UTC) if key == "started" else formatting.setting(value))
    return {key: "; ".join(dict.fromkeys(values)) for key, values in facts.items()}


LEFT_OUT = ("event", "time", "datasets", "groups")
"""Of a session: what other rows or sections tell."""


def data_sets(session: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """A row for each data set: its samples, the shape of one, its fingerprint and where its files are from."""
    for data in (session.get("datasets") or {}).values():
        rows = ", ".join(f"{count} {split}" for split, count in data["rows"].items() if count)
        shape = " x ".join(map(str, data.get("shape", ())))
        parts = [f"{rows}; each {shape}"] if rows else []
        parts += [f"fingerprint {data['digest']}", *([f"from {', '.join(data['sources'])}"] if data["sources"] else [])]
        yield f"data set {data['title']}", "; ".join(parts)


def _flat(values: Mapping[str, Any], *path: str) -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, *path, str(key))
        else:
            yield " ".join((*path, str(key))), value


def _pairs(values: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame({"key": list(values), "value": list(values.values())}, dtype=object)
