"""Several studies side by side: their results and what they cost."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from study.analysis.statistics import formatting
from study.errors import UserError
from study.home.events import ENDED
from study.ranking import Results, Spread, summary
from study.ranking.difference import (
    Difference,
    Side,
    difference,
    side_of,
)
from study.spec import StudySpec
from study.text import parameter

# The best configurations of two studies, or two final trainings, against each other, where they ran on the same seeds,
# data and splits.


def against(first: Results, other: Results) -> dict[str, Any]:
    """The other study's best minus the first one's, by metric of the study and split; of final trainings the same.

    Both bests were chosen by what they are compared by. The interval allows for each pair that could have been chosen.
    Final trainings chose nothing.

    Returns:
        Each as `Difference.to_document`, with `too_few_seeds` to tell; empty for the same study, or where data, splits
        or epochs differ, or the bests share fewer than two seeds.
    """
    one, two = _best(other), _best(first)
    is_same = first.spec.name == other.spec.name
    if one is None or two is None or is_same or _measured_by(first.spec) != _measured_by(other.spec):
        return {}
    gaps = {
        name: difference(one.values(name), two.values(name), one.among * two.among)
        for name in _compared_metrics([summary.summary(first)])
    }
    return {name: _document(gap) for name, gap in gaps.items() if gap and gap.paired}


def _document(gap: Difference) -> dict[str, Any]:
    return gap.to_document() | {"too_few_seeds": gap.is_vague}


def _best(results: Results) -> Side | None:
    """The best configuration; the baseline, if it leads, was chosen as one more. Of a final training all its trials."""
    if results.spec.final_seeds is not None:
        return results.final_side
    chosen = results.best
    return replace(side_of(results.spec, chosen), among=results.chosen_among(chosen) + 1) if chosen else None


def _measured_by(spec: StudySpec) -> list[Any]:
    """Return what must be the same: data and splits, and when a trial is taken."""
    return [*spec.data_sections, spec.objective.window]


def compare(studies: Sequence[Results]) -> list[dict[str, Any]]:
    """Each study's summary (see `study.ranking.summary`), in the given order, and the settings in which they differ.

    Returns:
        Plain values for JSON: those of `study.ranking.summary.summary`; `gain`: best minus baseline by metric, with its
        95% interval; `against`: best minus the first study's best, see `study.ranking.difference`;
        `settings`: the keys that differ between these studies, without the searched ones.

    Raises:
        UserError: fewer than two studies, the same one twice, some without a search beside some with one, one not begun
            yet, or studies of different data or metrics.
    """
    _check(studies)
    is_final = studies[0].spec.final_seeds is not None
    documents = [summary.summary(results) for results in studies]
    settings = [_settings(results.spec) for results in studies]
    keys = dict.fromkeys(key for values in settings for key in values)
    differing = [key for key in keys if any(values.get(key) != settings[0].get(key) for values in settings)]
    return [
        document
        | {
            "gain": {} if is_final else _gains(results, document),
            "against": against(studies[0], results),
            "settings": {key: values[key] for key in differing if key in values},
        }
        for results, document, values in zip(studies, documents, settings, strict=True)
    ]


def printed_comparison(documents: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The documents of `compare` as text, a column per study; no row in which none has a value."""
    metrics = _compared_metrics(documents)
    is_final = "final" in documents[0]
    whose = ("final",) if is_final else ("baseline", "best")
    keys = dict.fromkeys(key for document in documents for key in document["settings"])
    best_params = [document["best"]["params"] if document.get("best") else {} for document in documents]
    searched = dict.fromkeys(key for params in best_params for key in params)
    rows = {
        "state": [document["state"] for document in documents],
        "trials": [_trials(document["trials"]) for document in documents],
        "epochs run": [str(document["epochs"]) for document in documents],
        **({} if is_final else {"best trial": [_best_trial(document) for document in documents]}),
        "chosen as": [document.get("chosen_by") or formatting.MISSING for document in documents],
        **{
            f"{who} {name}": [_number(document[who], name) for document in documents]
            for name in metrics
            for who in whose
        },
        **{
            f"gain {name}": [_gain(document["gain"].get(name), name) for document in documents]
            for name in ([] if is_final else metrics)
        },
        **_against(documents, metrics),
        **{f"best {key}": [_setting(params, key) for params in best_params] for key in searched},
        **{key: [_setting(document["settings"], key) for document in documents] for key in keys},
    }
    rows = {name: row for name, row in rows.items() if set(row) != {formatting.MISSING}}
    columns = {"": list(rows)} | {
        document["name"]: [row[at] for row in rows.values()] for at, document in enumerate(documents)
    }
    return pd.DataFrame(columns, dtype=object)


def _against(documents: Sequence[dict[str, Any]], metrics: Sequence[str]) -> dict[str, list[str]]:
    """A line per metric in which two of the studies can be compared seed by seed."""
    first, whose = documents[0]["name"], "final" if "final" in documents[0] else "best"
    return {
        f"{whose} {name}, minus that of {first}": [_gain(document["against"].get(name), name) for document in documents]
        for name in metrics
        if any(name in document["against"] for document in documents)
    }


def _compared_metrics(documents: Sequence[dict[str, Any]]) -> list[str]:
    """Those of the study on both splits; of final trainings also what stands beside them."""
    if "final" in documents[0]:
        return [name for name in documents[0]["shown"] if all(name in each["final"]["metrics"] for each in documents)]
    return [f"{split}/{metric.split('/')[1]}" for metric in documents[0]["metrics"] for split in ("val", "test")]


def _check(studies: Sequence[Results]) -> None:
    specs = [results.spec for results in studies]
    names = [spec.name for spec in specs]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise UserError(f"{formatting.listed(names)} given: two or more different studies are needed")
    finals = [spec.name for spec in specs if spec.final_seeds is not None]
    if finals and len(finals) < len(studies):
        raise UserError(f"{finals[0]}: is a final training, and is compared with others of these alone")
    for results in studies:
        if not results.record.sessions:
            raise UserError(f"{results.spec.name}: has not begun yet, so its data are not known")
    for kind, by_study in (
        ("metric", {spec.name: formatting.listed(spec.objective.metrics) for spec in specs}),
        ("data", {results.spec.name: _data(results) for results in studies}),
    ):
        if len(set(by_study.values())) > 1:
            listing = "; ".join(f"{name}: {value}" for name, value in by_study.items())
            raise UserError(f"studies of different {kind} cannot be compared. {listing}")


def _data(results: Results) -> str:
    """The data's names and their fingerprint: the same data may be named differently."""
    names = ", ".join(dict.fromkeys(str(section["name"]) for section in results.spec.data_sections))
    return f"{names}, fingerprint {results.record.sessions[-1].get('data', 'unknown')}"


def _settings(spec: StudySpec) -> dict[str, Any]:
    flat = {f"{section}.{key}": value for section, values in spec.base.items() for key, value in values.items()}
    flat |= {f"search.{key}": value for key, value in spec.search.model_dump().items() if key in COMPARED}
    for key in ("search.early_stopping", "search.confirm"):
        flat |= {f"{key}.{name}": value for name, value in flat.pop(key).items()}
    if spec.final_seeds is not None:
        flat.pop("train.seed")  # each of its trials has its own
    return {key: value for key, value in flat.items() if key not in spec.search.space}


COMPARED = ("sampler", "trials", "seed", "replicates", "constraints", "early_stopping", "confirm")
"""Keys of `search` that are compared."""


def _gains(results: Results, document: dict[str, Any]) -> dict[str, Any]:
    """Best minus baseline, by metric; empty where the baseline is the best or one of the two is missing."""
    baseline, best = results.sides
    if not baseline or not best or best.number != document["best"]["trial"]:
        return {}
    gains = {}
    for name in document["best"]["metrics"]:
        gain = best.against(baseline, name)
        if gain:
            gains[name] = _document(gain)
    return gains


def _spread(side: dict[str, Any] | None, name: str) -> Spread | None:
    values = side["metrics"].get(name) if side else None
    return Spread(values["mean"], values["sd"], values["n"]) if values else None


def _trials(counts: dict[str, int]) -> str:
    return ", ".join(f"{counts[state]} {state}" for state in ENDED if counts[state]) or "none ended"


def _number(side: dict[str, Any] | None, name: str) -> str:
    """A side's mean ± sd (n), `-` without values."""
    spread = _spread(side, name)
    return f"{formatting.mean(name, spread)} ({spread.count})" if spread else formatting.MISSING


def _best_trial(document: dict[str, Any]) -> str:
    if not document["best"]:
        return formatting.MISSING
    number, reference = document["best"]["trial"], document["baseline"]
    return f"{number} (baseline)" if reference and reference["trial"] == number else str(number)


def _gain(gain: dict[str, Any] | None, name: str) -> str:
    if gain is None:
        return formatting.MISSING
    gained = Difference(gain["difference"], tuple(gain["interval"]) if gain["interval"] else None)
    if gain.get("too_few_seeds"):
        return f"{formatting.change(name, gained.value)} ({formatting.VAGUE})"
    return formatting.amount(name, gained, words="")


def _setting(values: dict[str, Any], key: str) -> str:
    return parameter(values[key]) if key in values else formatting.MISSING
