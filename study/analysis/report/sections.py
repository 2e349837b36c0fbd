"""What the report says, section by section, as a `study.analysis.report.page.Page`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from study import ranking
from study.analysis.figures.figures import CURVES
from study.analysis.figures.parallel import LINES
from study.analysis.report.captions import CAPTIONS, MODEL_CAPTIONS, WHICH_MODELS
from study.analysis.report.conclusions import caveats, message
from study.analysis.report.page import Page, Picture, Points, Section, Table, Text
from study.analysis.statistics import formatting, search_efficiency
from study.analysis.statistics.difference import final_side, sides
from study.analysis.statistics.frame import trials_frame
from study.analysis.tables import report_tables
from study.home.record import StudyRecord
from study.spec import StudySpec, rungs

LISTED = 200
"""Trials in the page; the table of more is slow to show, and read by nobody."""


def report_page(spec: StudySpec, record: StudyRecord, pictures: Mapping[str, str]) -> Page:
    """The whole report; `pictures` are the titles of the figures that could be drawn."""
    drawn = [Picture(name, _caption(name, spec), _titled(pictures[name])) for name in CAPTIONS if name in pictures]
    looked = [
        Picture(name, MODEL_CAPTIONS[name], _titled(pictures[name])) for name in MODEL_CAPTIONS if name in pictures
    ]
    summary, configurations = (
        report_tables.printed_summary(spec, record),
        report_tables.printed_configurations(spec, record),
    )
    shown = list(caveats(spec, record))
    sections = [
        Section("Summary", [Table(summary[:2]), Text(_explained(spec, record))])
        if final_side(record) or any(sides(spec, record))
        else None,
        Section("Best configurations", [Table(configurations), Text(_ranked(spec, record))])
        if len(configurations)
        else None,
        Section("Figures", [*drawn, *_thinned(record)]) if drawn else None,
        Section("What the models learned", [Text(WHICH_MODELS), *looked]) if looked else None,
        Section("Trials", [Table(report_tables.printed_counts(record)), *_worth(spec, record)])
        if record.trials
        else None,
        Section("Settings", [Table(_pairs(_settings(spec, record)))]),
        Section("What is not known", [Points(shown)]) if shown else None,
        Section("Provenance", [Table(_pairs(_provenance(spec, record)))]),
        Section("Every metric", [Table(summary)], folded=True) if len(summary) > 2 else None,
        _trials(spec, record) if record.trials else None,
    ]
    return Page(f"Study {spec.name}", message(spec, record), [section for section in sections if section])


def _thinned(record: StudyRecord) -> list[Text]:
    if len(record.trials) <= min(CURVES, LINES):
        return []
    return [Text("Of many trials, figures of lines draw some, evenly chosen, and so do those that one can point at.")]


def _trials(spec: StudySpec, record: StudyRecord) -> Section:
    """Every trial, or of a large study the best."""
    if len(record.trials) <= LISTED:
        return Section(
            "All trials", [Table(report_tables.printed_trials(spec, trials_frame(spec, record)))], folded=True
        )
    first = [
        *record.by_stage("baseline"),
        *(one.trial for one in ranking.candidates(record, spec)),
        *record.trials.values(),
    ]
    chosen = dict(list({trial.number: trial for trial in first}.items())[:LISTED])
    table = report_tables.printed_trials(spec, trials_frame(spec, replace(record, trials=chosen)))
    said = f"The baseline and the best of {len(record.trials)} trials; all of them are in trials.csv."
    return Section(f"{LISTED} trials", [Text(said), Table(table)], folded=True)


def _titled(title: str) -> str:
    """A figure's title without line breaks and without what a formula would need."""
    return " ".join(title.replace(r"\$", "$").split())


def _caption(name: str, spec: StudySpec) -> str:
    rule = spec.search.early_stopping.name
    if name != "learning_curves" or spec.final_seeds is not None or rule == "none":
        return CAPTIONS[name]
    if rule == "median":
        return (
            f"{CAPTIONS[name]} From the dotted line on trials are compared after each epoch, and the worse half stops."
        )
    several = " of any bracket" if len(rungs.brackets(spec.search.early_stopping, spec.epochs)) > 1 else ""
    return (
        f"{CAPTIONS[name]} Dotted lines are the epochs{several} at which trials are compared and the worse ones stop."
    )


def _explained(spec: StudySpec, record: StudyRecord) -> str:
    said = "Mean ± sample standard deviation over the seeds in the last column, at the last epoch."
    if spec.final_seeds is not None:
        return said
    said += " The interval of the difference is Welch's, 95%."
    if any(side and len(side.trials) > 1 for side in sides(spec, record)):
        said += " The seeds are fresh: the trial by which a configuration was chosen is not among them."
    return said + " The data and their split are the same for every seed."


def _ranked(spec: StudySpec, record: StudyRecord) -> str:
    found = ranking.candidates(record, spec)
    said = "Ordered by the value in the search, and by the mean on fresh seeds once all of these have run."
    rest = len(found) - report_tables.TOP
    return said + (f" {formatting.count(rest, 'more trial')} at full budget below." if rest > 0 else "")


def _worth(spec: StudySpec, record: StudyRecord) -> list[Table]:
    found = search_efficiency.printed_worth(spec, record)
    return [Table(found)] if len(found) else []


BETTER = {"max": "higher", "min": "lower"}


def _settings(spec: StudySpec, record: StudyRecord) -> dict[str, str]:
    """Every key that a trial starts from, and how the search goes; first what the data that were used are called."""
    search = spec.search
    found = {"data": record.sessions[-1]["dataset"]} if record.sessions and "dataset" in record.sessions[-1] else {}
    for section, values in spec.base.items():
        for key, given in values.items():
            dotted = f"{section}.{key}"
            found[dotted] = formatting.setting(given)
    found |= {key: _searched(spec, key) for key in search.space}
    goal = spec.objective
    aims = (f"{name}, {BETTER[mode]} is better" for name, mode in zip(goal.metrics, goal.modes, strict=True))
    metric = f"at the last epoch: {'; '.join([*aims, *spec.search.constraints])}"
    if spec.final_seeds is not None:
        return found | {"metric": metric}
    confirm = ranking.confirm(record, spec)
    found["metric"] = metric
    found["search"] = f"{formatting.count(spec.trials, 'trial')}, sampler {search.sampler}, seed {search.seed}"
    if len(spec.seeds) > 1:
        found["replicates"] = f"a configuration's value is its mean over {formatting.seeds(spec.seeds)}"
    found["baseline"] = (
        ", ".join(f"{key} {formatting.setting(given)}" for key, given in (search.baseline or {}).items()) or "none"
    )
    found["early stopping"] = rungs.words(search.early_stopping, spec.epochs)
    found["confirm"] = (
        f"top {confirm.top} and the baseline on {formatting.count(confirm.seeds, 'fresh seed')}"
        if confirm.top
        else "none"
    )
    return found


def _searched(spec: StudySpec, key: str) -> str:
    domain, condition = spec.search.space[key], spec.space.condition(key)
    where = " and ".join(
        f"{one} is {' or '.join(map(formatting.setting, values))}" for one, values in condition.items()
    )
    more = f", where {where}" if where else ""
    if domain.choices is not None:
        few = len(domain.choices) == 1
        return f"{'always' if few else 'searched: one of'} {formatting.setting(domain.choices)}{more}"
    scale = (", log" if domain.log else "") + (f", step {formatting.setting(domain.step)}" if domain.step else "")
    return f"searched: {formatting.setting(domain.low)} to {formatting.setting(domain.high)}{scale}{more}"


def _provenance(spec: StudySpec, record: StudyRecord) -> dict[str, str]:
    """Where the numbers come from; of what several sessions say, every different value in order."""
    found: dict[str, list[str]] = {
        "study": [spec.name],
        "id": [record.id or formatting.MISSING],
        "settings' hash": [spec.hash],
        "state": [record.state],
        "readings of the test split": [str(record.test_readings)],
    }
    for key, given in _flat(spec.origin or {}, "origin"):
        found.setdefault(key, []).append(formatting.setting(given))
    for session in record.sessions:
        told = {"started": session.get("time"), **{k: v for k, v in session.items() if k not in ("event", "time")}}
        for key, given in _flat(told):
            found.setdefault(key, []).append(_moment(given) if key == "started" else formatting.setting(given))
    return {key: "; ".join(dict.fromkeys(values)) for key, values in found.items()}


def _flat(given: Mapping[str, Any], *path: str) -> Iterator[tuple[str, Any]]:
    for key, inner in given.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, *path, str(key))
        else:
            yield " ".join((*path, str(key))), inner


def _moment(seconds: Any) -> str:
    if not isinstance(seconds, int | float):
        return formatting.MISSING
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _pairs(values: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame({"key": list(values), "value": list(values.values())}, dtype=object)
