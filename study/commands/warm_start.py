"""What a search learns from another study before its own first trial (`search.from`).

Each complete configuration of the other study is taken over with its values of this study's searched keys, whether the
other study searched them or not. A configuration is left out and counted if it has another method, lacks a key, or has
a value that this search could not give. What was learned is written to the ledger, so that later changes of the
other study do not matter.
"""

from collections.abc import Mapping
from typing import Any

from study import ranking
from study.errors import UserError
from study.home.as_searched import as_searched
from study.home.folder import Home
from study.home.ledger import Ledger
from study.home.record import StudyRecord, TrialRecord
from study.spec import StudySpec


def lessons(home: Home, spec: StudySpec) -> dict[str, Any]:
    """What a study learns, as fields of the event `learned`: source, source_id, trials, left_out.

    Raises:
        UserError: there is no such study, it is this one, or none of its configurations fits.
    """
    source = str(spec.search.from_)
    if source == spec.name:
        raise UserError(f"search.from: {source}: a study cannot learn from itself. More trials: study resume {source}")
    folder = home.find(source)
    other, record = folder.spec(), StudyRecord.load(folder.ledger_file)
    if missing := set(spec.objective.needed) - set(_metrics(record)):
        raise UserError(f"search.from: {source} has no {', '.join(sorted(missing))}, this study searches by it")
    trials, left_out = [], 0
    for candidate in sorted(ranking.ranked(as_searched(record), other), key=lambda candidate: candidate.trial.number):
        params = _params(spec, other, candidate.trial)
        values = {name: spread.mean for name, spread in ranking.spreads(other.objective, candidate.replicates).items()}
        if params is None or spec.objective.score(values) is None:
            left_out += 1
        else:
            trials.append({"params": params, "values": {name: values[name] for name in spec.objective.needed}})
    if not trials:
        raise UserError(
            f"search.from: none of {left_out} complete configurations of {source} has values for "
            f"{', '.join(spec.search.space)} within this search's space"
        )
    return {"source": source, "source_id": record.id, "trials": trials, "left_out": left_out}


def learn(home: Home, spec: StudySpec, ledger: Ledger, record: StudyRecord) -> None:
    """Write what a study learns into its ledger before its first trial, if `search.from` is set and it is not there."""
    if spec.search.from_ is not None and record.lessons is None and not record.trials:
        record.apply(ledger.append("learned", **lessons(home, spec)))


def _metrics(record: StudyRecord) -> set[str]:
    return {name for trial in record.trials.values() if trial.state == "complete" for name in trial.reports[-1]}


def _params(spec: StudySpec, other: StudySpec, trial: TrialRecord) -> Mapping[str, Any] | None:
    """The values that a trial of another study has for this study's searched keys; None if it is not in its space."""
    document = other.trial_document(trial.params)
    values = {
        f"{section}.{key}": value for section, keys in document.items() for key, value in keys.items()
    } | trial.params
    params: dict[str, Any] = {}
    for key in spec.space.domains:
        if spec.space.applies(key, params):
            if key not in values:
                return None
            params[key] = values[key]
    own, theirs = spec.trial_document(params)["method"], document["method"]
    same = all(own.get(key) == theirs.get(key) for key in ("name", "function"))
    return params if same and spec.space.contains(params) else None
