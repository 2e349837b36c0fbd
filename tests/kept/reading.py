"""What today's program reads out of the kept ledgers: the only module of the suite that knows the program's names.

A reading is a table of tables: study, table, row, column, value. A refactoring that moves an entry point changes an
import here, a part that is removed takes its table with it.
"""

import gzip
import json
import math
import platform
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from counterparts import COUNTERPARTS, WITHOUT_COUNTERPART, Case
from ruamel.yaml import YAML
from small import digits, trained
from told_studies import all_told, by_hand
from typer.testing import CliRunner

from study.analysis import epochs_frame, picks_frame, trials_frame
from study.analysis.report import report_lead
from study.analysis.report.caveats import caveat_statements
from study.analysis.report.report_page import build_report_page
from study.analysis.statistics.trials_frame import param_key_columns, trial_param_value
from study.cli import app
from study.commands.export_configurations import export_best
from study.home.events import Event, event_to_entry
from study.home.folder import StudyFolder, write_home_format
from study.home.ledger import Ledger, read_entries
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Results, SeedStatistics
from study.ranking.arms import Arm, metrics_of_both_splits
from study.ranking.chosen_epoch import metric_at_chosen_epoch
from study.ranking.difference import mean_difference
from study.ranking.json_documents import to_plain_value
from study.spec import StudySpec
from study.sweep.agenda import Agenda
from study.sweep.early_stopping import EarlyStopping

Table = dict[str, dict[str, Any]]
"""Values by row and column."""

HERE = Path(__file__).parent
STUDIES = tuple(sorted(path.name.removesuffix(".jsonl.gz") for path in (HERE / "studies").glob("*.jsonl.gz")))
PREFIXES, EVENTS, ASKED = 80, 20_000, 3
"""At how many prefixes of a ledger the agenda is asked at most, how many events these have together at most, as each is
read again, and how often it is asked at each."""

LEFT_OUT = ("study_id", "study_hash", "code", "format")
"""Of best.yaml's origin: what changes with the version, whatever the study found."""


@cache
def _home() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="kept-")


@cache
def folder(name: str) -> StudyFolder:
    """A kept study as a folder of a home."""
    path = Path(_home().name) / name
    path.mkdir()
    (path / "ledger.jsonl").write_bytes(gzip.decompress((HERE / "studies" / f"{name}.jsonl.gz").read_bytes()))
    (path / "study.yaml").write_bytes((HERE / "studies" / f"{name}.yaml").read_bytes())
    return StudyFolder(path)


@cache
def loaded(name: str) -> Results:
    """What it found."""
    return Results.load(folder(name))


@cache
def lead(name: str) -> dict[str, Any]:
    """The lead of its report, as plain values."""
    found: dict[str, Any] = to_plain_value(report_lead.build_report_lead(loaded(name)))
    return found


def values(name: str) -> dict[str, Table]:
    """Every table of a study."""
    study, results = folder(name), loaded(name)
    tables = {"trials": _frame(trials_frame(results)), "picks": _frame(picks_frame(results))}
    if len(results.record.trials) < 100:
        tables["epochs"] = _frame(epochs_frame(results.record))
    tables["summary"] = _frame(_summary(results))
    if results.spec.final_seeds is None:
        tables["best configurations"] = _frame(_configurations(results))
        tables["best.yaml"] = _best(study, results)
    told = lead(name).items()
    tables["verdict"] = {part: _columns(_no_sentences(value)) for part, value in told if part != "parts"}
    tables["decisions"] = decisions(name)
    tables |= {f"page: {title}": table for title, table in _page_tables(results)}
    return {title: table for title, table in tables.items() if table}


def _configurations(results: Results) -> pd.DataFrame:
    """The complete configurations of the search, the best first, then the baseline."""
    baseline = results.baseline
    rows = [*results.ranked_search, *([baseline] if baseline else [])]
    keys = param_key_columns(results.spec, results.record.trials.values())
    index = pd.Index([one.trial.number for one in rows], name="trial")
    found = [
        {
            "stage": one.trial.stage,
            results.spec.metric: one.search_value,
            **_numbers(one.confirm_statistics),
            "seeds": tuple(each.seed for each in one.confirm_trials if _has(results.spec, each)),
            **{key: trial_param_value(results.spec, one.trial, key) for key in keys},
        }
        for one in rows
    ]
    return pd.DataFrame(found, index=index)


def _has(spec: StudySpec, trial: TrialRecord) -> bool:
    return metric_at_chosen_epoch(spec.objective, trial, spec.metric) is not None


def _numbers(spread: SeedStatistics | None) -> dict[str, Any]:
    mean, deviation, count = (spread.mean, spread.standard_deviation, spread.count) if spread else (None, None, 0)
    return {"mean": mean, "sd": deviation, "n": count}


def _summary(results: Results) -> pd.DataFrame:
    """The baseline against the best configuration, or the final training alone: every metric on both splits."""
    by_name: dict[str, Arm | None] = {"final": results.final_training_arm}
    if results.spec.final_seeds is None:
        by_name = dict(zip(("baseline", "best"), results.baseline_and_best_arms, strict=True))
    rows = {}
    for metric in metrics_of_both_splits(results.spec, list(by_name.values())):
        row = rows[metric] = dict[str, Any]()
        for name, side in by_name.items():
            row |= {
                f"{name} {key}": one for key, one in _numbers(side.metric_statistics(metric) if side else None).items()
            }
            row[f"{name} seeds"] = tuple(side.metric_seeds(metric)) if side else ()
        baseline, best = by_name.get("baseline"), by_name.get("best")
        if baseline and best:
            gain = mean_difference(best.metric_by_seed(metric), baseline.metric_by_seed(metric), best.n_candidates)
            low, high = (gain and gain.interval) or (None, None)
            row |= {"difference": gain and gain.value, "low": low, "high": high}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("metric")


COMMANDS = {
    "status": ("status", "{}"),
    "logs": ("logs", "{}", "--trial", "0"),
    "ablate": ("ablate", "{}", "--dry-run"),
    "compare": ("compare", "single", "{}"),
}
"""What is asked of each study with `--json`."""


def documents(name: str, asked: Iterable[str] = COMMANDS) -> dict[str, dict[str, Any]]:
    """What commands print of a study with `--json`, value by value in their order; nothing where they refuse it."""
    folder("single")
    home = folder(name).path.parent
    write_home_format(home)
    found = {}
    for command in asked:
        given = [word.format(name) for word in COMMANDS[command]]
        printed = CliRunner().invoke(app, [*given, "--json"], env={"STUDY_HOME": str(home)}).stdout
        found[command] = _leaves(json.loads(printed)) if printed else {}
    return found


FORMS = {
    "list": ("list",),
    "report": ("report", "single", "-o", "{out}/report"),
    "export": ("export", "single", "-o", "{out}/best.yaml"),
    "plan": ("plan", "fairkl_digits"),
    "trial": ("trial", "fairkl_digits", "--set", "train.epochs=1"),
    "suite --plan": ("suite", "quickstart_suite", "--plan"),
    "suite --report": ("suite", "quickstart_suite", "--report"),
    "reproduce --report": ("reproduce", "fairkl-table12", "--report"),
    "reproduce --readings": ("reproduce", "fairkl-table12", "--readings", "all", "--report"),
    "spaces": ("spaces",),
    "data list": ("data", "list"),
    "data prepare": ("data", "prepare", "biased_digits"),
    "models list": ("models", "list"),
    "cluster status": ("cluster", "status"),
}
"""Commands of whose `--json` the form is kept: their values depend on the machine, or on what is shipped."""


def forms() -> dict[str, dict[str, str]]:
    """Of each of these commands the keys of what it prints, in their order, each with the kinds of its values."""
    with tempfile.TemporaryDirectory() as out:
        shutil.copytree(folder("single").path, Path(out, "home", "single"))
        write_home_format(Path(out, "home"))
        env = {"STUDY_HOME": f"{out}/home", "STUDY_DATA": f"{out}/data"}
        asked = {name: [word.format(out=out) for word in words] for name, words in FORMS.items()}
        printed = {name: CliRunner().invoke(app, [*words, "--json"], env=env).stdout for name, words in asked.items()}
    return {name: _form(json.loads(text)) for name, text in printed.items()}


KINDS_OF_JSON = {dict: "mapping", list: "list", str: "text", bool: "truth", int: "number", float: "number"}


def _form(value: Any, place: str = "") -> dict[str, str]:
    """Of a document its places with the kinds of their values; all elements of a list have one place."""
    found: dict[str, set[str]] = {place: {KINDS_OF_JSON.get(type(value), "null")}}
    inner = (
        value.items() if isinstance(value, dict) else ((("*", one) for one in value) if isinstance(value, list) else ())
    )
    for key, one in inner:
        for at, kinds in _form(one, f"{place}.{key}" if place else str(key)).items():
            found.setdefault(at, set()).update(kinds.split(" or "))
    return {at: " or ".join(sorted(kinds)) for at, kinds in found.items()}


def _leaves(value: Any, place: str = "") -> dict[str, Any]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: dict[str, Any] = {}
    for key, one in inner:
        found |= _leaves(one, f"{place}.{key}" if place else str(key))
    return found or {place: str(value) if isinstance(value, dict | list) else value}


@cache
def told() -> dict[str, Results]:
    """The studies of which words are kept: these, and those that are told trial by trial."""
    return {name: loaded(name) for name in STUDIES} | all_told()


def words(results: Results) -> dict[str, list[str]]:
    """What a report says: its lead, part by part, and what is not known."""
    parts = {**report_lead.report_lead_statements(results), "What is not known": caveat_statements(results)}
    return {title: list(map(str, said)) for title, said in parts.items()}


def all_words() -> dict[str, dict[str, list[str]]]:
    """Of every study, and of the statements that no study makes."""
    hand = {"by hand": {type(one).__name__: [str(one)] for one in by_hand()}}
    return {name: words(results) for name, results in told().items()} | hand


def decisions(name: str) -> Table:
    """What the agenda does that goes on at prefixes of a ledger, each with all that it writes: one row for a prefix by
    its events, one column for each event that is written. The last prefix is the whole ledger."""
    events, spec = read_entries(folder(name).ledger_file), loaded(name).spec
    places = range(2, len(events))
    drawn = random.Random(name).sample(places, min(PREFIXES, EVENTS // len(events), len(places)))
    return {str(place): _decided(spec, events[:place]) for place in [*sorted(drawn), len(events)]}


class _Unwritten(Ledger):
    """A ledger on no disk, all of whose events come at one moment."""

    def __init__(self, now: float) -> None:
        self.now, self.events = now, list[dict[str, Any]]()

    def append(self, event: Event) -> Event:
        written = replace(event, time=round(self.now, 3))
        self.events.append(event_to_entry(written))
        return written

    def check(self) -> None:
        pass

    def hold(self) -> None:
        pass

    def sync(self) -> None:
        pass


def _decided(spec: StudySpec, events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    record, now = StudyRecord.from_entries(events), events[-1]["time"]
    ledger = _Unwritten(now)
    if record.state == "running":
        record.apply_entry({"event": "closed", "state": "interrupted", "time": now})
    agenda = Agenda(spec, ledger, record, EarlyStopping(spec))
    given = []
    for _ in range(ASKED):
        job = agenda.next_job()
        given.append(job if job is None or isinstance(job, str) else f"{job.kind} {job.trial.number}")
        if job is None or job == "done":
            break
    columns = {f"job {place}": job for place, job in enumerate(given)}
    for place, event in enumerate(ledger.events):
        columns |= _columns({key: value for key, value in event.items() if key != "time"}, f"event {place}")
    return columns | {"enough": agenda.reached_limit, "outcome": agenda.outcome}


def _no_sentences(part: Any) -> Any:
    """Of the steps to take their kinds alone: the lead says them."""
    steps = isinstance(part, list) and part and isinstance(part[0], dict) and "kind" in part[0]
    return [{"kind": step["kind"]} for step in part] if steps else part


def _best(study: StudyFolder, results: Results) -> Table:
    if not any(trial.state == "complete" for trial in results.record.trials.values()):
        return {}
    (file,) = export_best(study, results, study.best_file)
    best = YAML(typ="safe", pure=True).load(file.path.read_text(encoding="utf-8"))
    best["origin"] = {key: value for key, value in best["origin"].items() if key not in LEFT_OUT}
    parts = {section: value if isinstance(value, dict) else {"": value} for section, value in best.items()}
    return {section: _columns(value) for section, value in parts.items() if section not in ("resources", "search")}


def _page_tables(results: Results) -> Iterator[tuple[str, Table]]:
    """The tables that the report prints, but that of every trial, which `trials` has in full."""
    for section in build_report_page(results, {}).sections:
        if section.title in ("Provenance", "Every metric"):
            continue
        tables = [block.frame for block in section.blocks if hasattr(block, "frame")]
        for place, frame in enumerate(tables):
            labelled = frame.set_index(frame.columns[0]) if len(frame.columns) and frame.iloc[:, 0].is_unique else frame
            yield section.title + (f" {place + 1}" if len(tables) > 1 else ""), _frame(labelled)


def losses() -> Table:
    """Every loss of the golden cases that lie in the repository, in float64, and the size of its gradients."""
    golden = HERE.parent / "losses" / "golden"
    found: Table = {}
    for entry in json.loads((golden / "losses.index.json").read_text())["cases"]:
        for output in (entry, *entry.get("also", [])):
            if output["definition"] not in COUNTERPARTS or entry["case"] in WITHOUT_COUNTERPART:
                continue
            case = Case(output if output is entry else entry, golden)
            loss = COUNTERPARTS[output["definition"]](case)
            row = found.setdefault(f"{entry['case']} {output.get('output', 'loss')}", {})
            row["loss"] = _plain(loss.item())
            if output["expected_loss"] is not None and loss.requires_grad:
                loss.backward()
                for name, leaf in case.leaves.items():
                    row[f"gradient of {name}"] = None if leaf.grad is None else _plain(leaf.grad.norm().item())
    return found


METHODS: dict[str, dict[str, Any]] = {
    "eps_sup_info_nce": {"name": "eps_sup_info_nce", "temperature": 0.1, "regulariser": "fair_kl", "lambda": 1.0},
    "fair_sup_con": {"name": "fair_sup_con", "temperature": 0.1},
    "sup_con": {"name": "sup_con", "temperature": 0.1},
}
"""Of the three trials whose metrics are kept."""


def metrics() -> dict[str, Table]:
    """The metrics of three trials of two epochs on one thread, by trial, epoch and name."""
    torch.set_num_threads(1)
    return {
        name: {str(epoch): _columns(row) for epoch, row in enumerate(rows, 1)}
        for name, method in METHODS.items()
        for _, rows in [trained(method, digits(), epochs=2)]
    }


def machine() -> str:
    """What the last bits of a trial's metrics depend on: libraries choose their code by the processor's maker, too."""
    told = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else platform.processor()
    names = re.findall(r"^(?:vendor_id|cpu family|model)\s*: (.+)$", told, re.MULTILINE)[:3]
    return f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}, {' '.join(names) or told}"


def _frame(frame: pd.DataFrame) -> Table:
    """A frame by row and column; rows by their index, where that is unique and named, else by their place."""
    labels: Callable[[int], str] = str
    if frame.index.name is not None and frame.index.is_unique:
        labels = [str(label) for label in frame.index].__getitem__
    rows = frame.astype(object).to_dict("split")["data"]
    names = [str(name) for name in frame.columns]
    return {
        labels(place): {key: value for key, value in zip(names, map(_plain, row), strict=True) if value is not None}
        for place, row in enumerate(rows)
    }


def _columns(value: Any, name: str = "") -> dict[str, Any]:
    """Nested values as columns with dotted names; what is None is left out."""
    if isinstance(value, Mapping | list | tuple):
        inner = value.items() if isinstance(value, Mapping) else enumerate(value)
        found: dict[str, Any] = {}
        for key, one in inner:
            found |= _columns(one, f"{name}.{key}" if name else str(key))
        return found
    return {} if value is None else {name: _plain(value)}


def _plain(value: Any) -> Any:
    """A value as JSON has it; None for what is missing, and text for a float that is no number."""
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(value, sort_keys=True, default=str)
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str) else str(value)
