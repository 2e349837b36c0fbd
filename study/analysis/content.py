"""What the report says, section by section, as a `study.analysis.page.Page`."""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from study.analysis import tables, words
from study.analysis.compare import final_side, sides
from study.analysis.frame import trials_frame
from study.analysis.message import caveats, message
from study.analysis.page import Page, Picture, Points, Section, Table, Text
from study.ranking import candidates
from study.record import StudyRecord
from study.spec import StudySpec
from study.spec.schema import Domain

CAPTIONS = {
    "seeds": "Each ring is one seed; the tick is the mean, the line one sample standard deviation to each side.",
    "learning_curves": "Each line is one trial. Confirm trials are left out.",
    "parameters": "Each mark is one trial of the search, one seed. A trial that was stopped early stands at the value "
    "of its last epoch, which a full budget would have changed. The dashed line is the baseline.",
    "progress": "Each mark is one trial of the search, one seed. Only trials at full budget count for the best so far.",
}


def report_page(spec: StudySpec, record: StudyRecord, pictures: Collection[str]) -> Page:
    """The whole report; `pictures` are the figures that could be drawn."""
    drawn = [Picture(name, _caption(name, spec)) for name in CAPTIONS if name in pictures]
    summary, configurations = tables.printed_summary(spec, record), tables.printed_configurations(spec, record)
    shown = list(caveats(spec, record))
    sections = [
        Section("Summary", [Table(summary[:2]), Text(_explained(spec, record))])
        if final_side(record) or any(sides(spec, record))
        else None,
        Section("Best configurations", [Table(configurations), Text(_ranked(spec, record))])
        if len(configurations)
        else None,
        Section("Figures", drawn) if drawn else None,
        Section("Trials", [Table(tables.printed_counts(record)), *_budget(spec, record)]) if record.trials else None,
        Section("Settings", [Table(_pairs(_settings(spec, record)))]),
        Section("What is not known", [Points(shown)]) if shown else None,
        Section("Provenance", [Table(_pairs(_provenance(spec, record)))]),
        Section("Every metric", [Table(summary)], folded=True) if len(summary) > 2 else None,
        Section("All trials", [Table(tables.printed_trials(spec, trials_frame(spec, record)))], folded=True)
        if record.trials
        else None,
    ]
    return Page(f"Study {spec.name}", message(spec, record), [section for section in sections if section])


def _caption(name: str, spec: StudySpec) -> str:
    if name != "learning_curves" or spec.final_seeds is not None or spec.search.early_stopping.name == "none":
        return CAPTIONS[name]
    return f"{CAPTIONS[name]} Dotted lines are the epochs at which ASHA compares trials and stops the worse ones."


def _explained(spec: StudySpec, record: StudyRecord) -> str:
    said = "Mean ± sample standard deviation over the seeds in the last column, at the last epoch."
    if spec.final_seeds is not None:
        return said
    said += " The interval of the difference is Welch's, 95%."
    if any(side and len(side.trials) > 1 for side in sides(spec, record)):
        said += " The seeds are fresh: the trial by which a configuration was chosen is not among them."
    return said + " The data and their split are the same for every seed."


def _ranked(spec: StudySpec, record: StudyRecord) -> str:
    found = candidates(record, spec)
    said = "Ordered by the value in the search, and by the mean on fresh seeds once all of these have run."
    rest = len(found) - tables.TOP
    return said + (f" {words.count(rest, 'more trial')} at full budget below." if rest > 0 else "")


def _budget(spec: StudySpec, record: StudyRecord) -> list[Text]:
    ended = [
        trial for trial in record.by_stage("baseline", "search", "replicate") if trial.state in ("complete", "pruned")
    ]
    if not any(trial.state == "pruned" for trial in ended):
        return []
    run, full = sum(trial.epochs for trial in ended), spec.epochs * len(ended)
    return [Text(f"Early stopping ran {run} of the {full} epochs of these searched trials, {100 * run / full:.0f}%.")]


BETTER = {"max": "higher", "min": "lower"}


def _settings(spec: StudySpec, record: StudyRecord) -> dict[str, str]:
    """Every key that a trial starts from, and how the search goes; first what the data that were used are called."""
    search = spec.search
    found = {"data": record.sessions[-1]["dataset"]} if record.sessions and "dataset" in record.sessions[-1] else {}
    for section, values in spec.base.items():
        for key, given in values.items():
            dotted = f"{section}.{key}"
            found[dotted] = _domain(search.space[dotted]) if dotted in search.space else words.setting(given)
    goal = spec.objective
    aims = (f"{name}, {BETTER[mode]} is better" for name, mode in zip(goal.metrics, goal.modes, strict=True))
    metric = f"at the last epoch: {'; '.join([*aims, *spec.search.constraints])}"
    if spec.final_seeds is not None:
        return found | {"metric": metric}
    stopping, confirm = search.early_stopping, search.confirm
    found["metric"] = metric
    found["search"] = f"{words.count(spec.trials, 'trial')}, sampler {search.sampler}, seed {search.seed}"
    if search.replicates > 1:
        found["replicates"] = f"a configuration's value is its mean over {search.replicates} seeds"
    found["baseline"] = (
        ", ".join(f"{key} {words.setting(given)}" for key, given in (search.baseline or {}).items()) or "none"
    )
    found["early stopping"] = "none"
    if stopping.name != "none":
        found["early stopping"] = (
            f"{stopping.name}: grace {words.count(stopping.grace, 'epoch')}, reduction {stopping.reduction}"
        )
    found["confirm"] = (
        f"top {confirm.top} and the baseline on {words.count(confirm.seeds, 'fresh seed')}" if confirm.top else "none"
    )
    return found


def _domain(domain: Domain) -> str:
    if domain.choices is not None:
        return f"searched: one of {words.setting(domain.choices)}"
    more = (", log" if domain.log else "") + (f", step {words.setting(domain.step)}" if domain.step else "")
    return f"searched: {words.setting(domain.low)} to {words.setting(domain.high)}{more}"


def _provenance(spec: StudySpec, record: StudyRecord) -> dict[str, str]:
    """Where the numbers come from; of what several sessions say, every different value in order."""
    found: dict[str, list[str]] = {
        "study": [spec.name],
        "id": [record.id or words.MISSING],
        "settings' hash": [spec.hash],
        "state": [record.state],
    }
    for key, given in _flat(spec.origin or {}, "origin"):
        found.setdefault(key, []).append(words.setting(given))
    for session in record.sessions:
        told = {"started": session.get("time"), **{k: v for k, v in session.items() if k not in ("event", "time")}}
        for key, given in _flat(told):
            found.setdefault(key, []).append(_moment(given) if key == "started" else words.setting(given))
    return {key: "; ".join(dict.fromkeys(values)) for key, values in found.items()}


def _flat(given: Mapping[str, Any], *path: str) -> Iterator[tuple[str, Any]]:
    for key, inner in given.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, *path, str(key))
        else:
            yield " ".join((*path, str(key))), inner


def _moment(seconds: Any) -> str:
    if not isinstance(seconds, int | float):
        return words.MISSING
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _pairs(values: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame({"key": list(values), "value": list(values.values())}, dtype=object)
