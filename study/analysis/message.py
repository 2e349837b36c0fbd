"""The report in sentences: what came out, what to bear in mind, what was run and where."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pandas as pd

from study.analysis import words
from study.analysis.compare import Side, difference, final_side, sides
from study.record import StudyRecord
from study.spec import StudySpec
from study.training.config import SECTIONS


def headline(spec: StudySpec, record: StudyRecord) -> Iterator[str]:
    """The message, computed from the trials: what the search gained over the baseline, and whether that is clear."""
    final = final_side(record)
    if spec.final_seeds is not None:
        yield _reached("The final training", spec, final) if final else "No seed of the final training is complete yet."
        return
    reference, chosen = sides(spec, record)
    if chosen is None:
        yield "No trial of the search is complete yet, so there is no best configuration to speak of."
        return
    yield _reached(f"The best configuration (trial {chosen.number}), chosen by {spec.metric},", spec, chosen)
    if reference is None:
        return
    yield _reached("The undebiased baseline", spec, reference)
    for name in (spec.metric, spec.test_metric):
        gain = difference(chosen.spread(name), reference.spread(name))
        if gain is None:
            continue
        better = spec.better(gain.value, 0.0)
        verb = "gained" if better else "lost" if gain.value else "changed nothing,"
        sure = {
            True: f"the 95% interval ({words.interval(name, gain)}) leaves out zero",
            False: f"but the 95% interval ({words.interval(name, gain)}) holds zero: more seeds are needed to be sure",
            None: "one seed each: how sure that is cannot be said",
        }[gain.clear]
        yield f"On {name} the search {verb} {words.change(name, abs(gain.value), signed=False)}; {sure}."


def caveats(spec: StudySpec, record: StudyRecord) -> Iterator[str]:
    """What is missing or uncertain."""
    trials = list(record.trials.values())
    if record.state != "complete":
        yield f"The study is {record.state}: this is what there is so far."
    if failed := [trial for trial in trials if trial.state == "failed"]:
        reasons = words.listed(sorted({str(trial.reason) for trial in failed})[:3])
        yield f"{words.count(len(failed), 'trial')} failed ({reasons}) and count nowhere."
    if stopped := [trial for trial in trials if trial.state == "pruned"]:
        yield (
            f"Stopped early: {words.count(len(stopped), 'trial')} of the search. Values at fewer epochs never compete "
            "with full ones."
        )
    confirmed = any(trial.stage == "confirm" for trial in trials)
    if spec.final_seeds is None and not confirmed:
        yield "Nothing was confirmed on fresh seeds: the best of many trials is in part luck (search.confirm)."
    elif spec.final_seeds is None:
        yield (
            "The best configurations ran again on fresh seeds, and their mean chose among them; "
            "data split and colours are the same for every seed."
        )
    tested = sorted({trial.repeats if trial.repeats is not None else trial.number for trial in trials if trial.tested})
    yield (
        f"The test split was read for {words.listed(f'trial {number}' for number in tested)} only, and chose nothing."
        if tested
        else "The test split was not read."
    )
    for trial in trials:
        if trial.untested:
            yield f"The test split could not be read for trial {trial.number}: {trial.untested}"
    yield "A trial's value is that of its last epoch; ± is the sample standard deviation over seeds."


def settings(spec: StudySpec) -> pd.DataFrame:
    """What was run, key by key."""
    keys = {f"{section}.{key}": value for section in SECTIONS for key, value in spec.base[section].items()}
    rows = [
        (key, _domain(spec, key) if key in spec.search.space else words.setting(given)) for key, given in keys.items()
    ]
    if spec.final_seeds is None:
        stopping = spec.search.early_stopping
        rule = f"asha, grace {stopping.grace}, reduction {stopping.reduction}"
        rows += [
            ("sampler", f"{spec.search.sampler}, seed {spec.search.seed}"),
            ("early stopping", rule if stopping.name == "asha" else "none"),
        ]
    return pd.DataFrame(rows, columns=["key", "value"])


def sessions(record: StudyRecord) -> pd.DataFrame:
    """When, where and with what the study ran."""
    rows = []
    for session in record.sessions:
        libraries = ", ".join(f"{name} {version}" for name, version in session.get("libraries", {}).items())
        commit = str(session.get("commit", ""))[:12] + (" (changed since)" if session.get("dirty") else "")
        rows.append(
            {
                "began (UTC)": datetime.fromtimestamp(session["time"], UTC).strftime("%Y-%m-%d %H:%M"),
                "machine": session.get("node", words.MISSING),
                "code": " ".join(filter(None, [session.get("version", ""), commit])) or words.MISSING,
                "data": session.get("data", words.MISSING),
                "libraries": libraries or words.MISSING,
            }
        )
    return pd.DataFrame(rows)


def _reached(who: str, spec: StudySpec, side: Side) -> str:
    values = [
        f"{words.mean(name, found)} {name}" for name in (spec.metric, spec.test_metric) if (found := side.spread(name))
    ]
    return f"{who} reaches {words.listed(values)} ({words.seeds(side.seeds(spec.metric))})."


def _domain(spec: StudySpec, key: str) -> str:
    domain = spec.search.space[key]
    if domain.choices is not None:
        return f"searched among {words.setting(domain.choices)}"
    return f"searched from {domain.low:g} to {domain.high:g}" + (", log" if domain.log else "")
