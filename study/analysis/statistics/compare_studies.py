"""Several studies side by side: what each found and what it cost."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from study.analysis.statistics import formatting
from study.analysis.statistics.difference import Difference, difference
from study.errors import UserError
from study.home.record import StudyRecord
from study.ranking import Spread, summary
from study.spec import StudySpec

Study = tuple[StudySpec, StudyRecord]


def compare(studies: Sequence[Study]) -> list[dict[str, Any]]:
    """Each study's summary (see `study.ranking.summary`), in the given order, and what sets it apart.

    Returns:
        Plain values for JSON: those of `study.ranking.summary.summary`, where `epochs` counts every epoch that was run,
        and `gain`: best minus baseline by metric, with its 95% interval; `settings`: the keys whose values are not
        the same in all these studies, the searched ones left out.

    Raises:
        UserError: fewer than two studies, the same one twice, one without a search or not begun yet, or the data or
            the metric are not the same in all of them.
    """
    _check(studies)
    documents = [summary.summary(spec, record) for spec, record in studies]
    settings = [_settings(spec) for spec, _ in studies]
    keys = dict.fromkeys(key for one in settings for key in one)
    differing = [key for key in keys if any(one.get(key) != settings[0].get(key) for one in settings)]
    return [
        document | {"gain": _gains(document), "settings": {key: one[key] for key in differing if key in one}}
        for document, one in zip(documents, settings, strict=True)
    ]


def printed(documents: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """What `compare` gives as text: a column per study."""
    metrics = [f"{split}/{one.split('/')[1]}" for one in documents[0]["metrics"] for split in ("val", "test")]
    keys = dict.fromkeys(key for one in documents for key in one["settings"])
    params = dict.fromkeys(key for one in documents if one["best"] for key in one["best"]["params"])
    rows = {
        "state": [one["state"] for one in documents],
        "trials": [_trials(one["trials"]) for one in documents],
        "epochs run": [str(one["epochs"]) for one in documents],
        "best trial": [_chosen(one) for one in documents],
        **{
            f"{who} {name}": [_number(one[who], name) for one in documents]
            for name in metrics
            for who in ("baseline", "best")
        },
        **{f"gain {name}": [_gain(one["gain"].get(name), name) for one in documents] for name in metrics},
        **{
            f"best {key}": [_setting((one["best"] or {}).get("params", {}), key) for one in documents] for key in params
        },
        **{key: [_setting(one["settings"], key) for one in documents] for key in keys},
    }
    columns = {"": list(rows)} | {one["name"]: [row[at] for row in rows.values()] for at, one in enumerate(documents)}
    return pd.DataFrame(columns, dtype=object)


def _check(studies: Sequence[Study]) -> None:
    names = [spec.name for spec, _ in studies]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise UserError(f"{formatting.listed(names)} given: two or more different studies are needed")
    for spec, record in studies:
        if spec.final_seeds is not None:
            raise UserError(f"{spec.name}: a final training without a search, studies are compared")
        if not record.sessions:
            raise UserError(f"{spec.name}: has not begun yet, so that its data are not known")
    for what, found in (
        ("metric", {spec.name: formatting.listed(spec.objective.metrics) for spec, _ in studies}),
        ("data", {spec.name: _data(spec, record) for spec, record in studies}),
    ):
        if len(set(found.values())) > 1:
            said = "; ".join(f"{name}: {value}" for name, value in found.items())
            raise UserError(f"studies of different {what} do not compare. {said}")


def _data(spec: StudySpec, record: StudyRecord) -> str:
    """The data and their fingerprint, which says what was trained on whatever the settings are called."""
    names = ", ".join(dict.fromkeys(str(one["name"]) for one in spec.data_sections))
    return f"{names}, fingerprint {record.sessions[-1].get('data', 'unknown')}"


def _settings(spec: StudySpec) -> dict[str, Any]:
    flat = {f"{section}.{key}": value for section, values in spec.base.items() for key, value in values.items()}
    flat |= {f"search.{key}": value for key, value in spec.search.model_dump().items() if key in COMPARED}
    for key in ("search.early_stopping", "search.confirm"):
        flat |= {f"{key}.{name}": value for name, value in flat.pop(key).items()}
    return {key: value for key, value in flat.items() if key not in spec.search.space}


COMPARED = ("sampler", "trials", "seed", "replicates", "constraints", "early_stopping", "confirm")
"""Keys of `search` that are told where they differ."""


def _gains(document: dict[str, Any]) -> dict[str, Any]:
    """Best minus baseline, by metric; nothing where the baseline is the best or one of the two is not known."""
    reference, chosen = document["baseline"], document["best"]
    if not reference or not chosen or reference["trial"] == chosen["trial"]:
        return {}
    found = {}
    for name in chosen["metrics"]:
        gain = difference(_spread(chosen, name), _spread(reference, name))
        if gain:
            found[name] = {"difference": gain.value, "interval": list(gain.interval) if gain.interval else None}
    return found


def _spread(side: dict[str, Any] | None, name: str) -> Spread | None:
    found = side["metrics"].get(name) if side else None
    return Spread(found["mean"], found["sd"], found["n"]) if found else None


def _trials(counts: dict[str, int]) -> str:
    kinds = {"complete": "complete", "pruned": "stopped early", "failed": "failed"}
    return ", ".join(f"{counts[state]} {said}" for state, said in kinds.items() if counts[state]) or "none ended"


def _number(side: dict[str, Any] | None, name: str) -> str:
    """A side's mean ± sd (n), `-` where there is none."""
    found = _spread(side, name)
    return f"{formatting.mean(name, found)} ({found.count})" if found else formatting.MISSING


def _chosen(document: dict[str, Any]) -> str:
    if not document["best"]:
        return formatting.MISSING
    number, reference = document["best"]["trial"], document["baseline"]
    return f"{number} (baseline)" if reference and reference["trial"] == number else str(number)


def _gain(gain: dict[str, Any] | None, name: str) -> str:
    if gain is None:
        return formatting.MISSING
    known = Difference(gain["difference"], tuple(gain["interval"]) if gain["interval"] else None)
    between = f" ({formatting.interval(name, known)})" if known.interval else ""
    return formatting.change(name, known.value) + between


def _setting(values: dict[str, Any], key: str) -> str:
    return formatting.setting(values[key]) if key in values else formatting.MISSING
