"""A study's results as one JSON document and in a few lines."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Any

from study import ranking
from study.home.events import ENDED, Joined
from study.home.record import TrialRecord
from study.metrics import printed, printed_range
from study.metrics.rules import leading
from study.ranking import Candidate, Results, Spread, epochs, spread
from study.ranking.epochs import LAST
from study.spec import StudySpec
from study.text import parameter

# What a configuration would show at another epoch, printed beside its result as papers do; nothing is chosen by it.

TEST_BEST = "at the epoch that is best on the test split, so too good on average"


def beside(spec: StudySpec, trials: Sequence[TrialRecord]) -> dict[str, dict[str, Spread]]:
    """The study's metrics over trials at other epochs than the chosen one: by which epoch, then by metric.

    `LAST` where `search.epoch` is best: also of the test split, where each epoch read it. `TEST_BEST` where each epoch
    read it (`train.report_test`): the metric on the test split, at each trial's best epoch by that. It looks, on
    average, too good.
    """
    metrics = [f"{split}/{name.split('/')[1]}" for name in spec.objective.needed for split in ("val", "test")]
    last = {name: spread(trial.last(name) for trial in trials) for name in metrics}
    test_best = {spec.test_metric: spread(_best(spec, trial) for trial in trials)}
    by_epoch = {LAST: last if spec.objective.window is not None else {}, TEST_BEST: test_best}
    spreads = {which: {name: value for name, value in of.items() if value} for which, of in by_epoch.items()}
    return {which: of for which, of in spreads.items() if of}


def _best(spec: StudySpec, trial: TrialRecord) -> float | None:
    values = [value for report in trial.reports if (value := report.get(spec.test_metric)) is not None]
    return (min if spec.mode == "min" else max)(values, default=None)


# Which configurations of a study were extended beyond its number of epochs, and what may be compared then.


def extended(results: Results) -> dict[str, Any] | None:
    """The last extension as plain values, with earlier ones to as many epochs; None where there was none.

    `epochs`: of its trials; `of`: the study's; `trials`: the numbers of its configurations; `left`: how many trials of
    it are still to end; `compared`: how many epochs the trials ran that the results compare.
    """
    if not results.record.lengthened:
        return None
    epochs = results.record.lengthened[-1].epochs
    alike = (each.trials for each in results.record.lengthened if each.epochs == epochs)
    trials = [results.record.trials[number] for number in dict.fromkeys(chain.from_iterable(alike))]
    return {
        "epochs": epochs,
        "of": results.spec.epochs,
        "trials": [trial.number for trial in trials if trial.stage in ("baseline", "search")],
        "left": sum(trial.state not in ENDED for trial in trials),
        "compared": results.compared_at,
    }


def sentence(found: dict[str, Any]) -> str:
    """The same for people."""
    numbers = found["trials"]
    which = f"trial{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}"
    if found["epochs"] == found["of"]:
        return f"{which} went on to epoch {found['epochs']} after early stopping had ended them"
    if found["compared"] == found["epochs"] and not found["left"]:
        return (
            f"{which} went on to epoch {found['epochs']} and are compared with one another alone; the other trials "
            "are as they ended"
        )
    why = "until all of them have ended" if found["left"] else "none of the search's is complete, so"
    return f"{which} go on to epoch {found['epochs']}; {why} results are those of {found['compared']} epochs"


def summary(results: Results) -> dict[str, Any]:
    """State, trials by state, baseline and best with their metrics, as plain values for JSON."""
    best, reference = results.best, results.baseline
    several = results.spec.objective.several
    document: dict[str, Any] = {
        "name": results.spec.name,
        "state": results.record.state,
        "owner": results.record.owner,
        "metric": results.spec.metric,
        "metrics": list(results.spec.objective.metrics),
        "epoch": epochs.words(results.spec.objective),
        "constraints": results.spec.search.constraints,
        "trials": results.record.counts(),
        "epochs": sum(trial.epochs for trial in results.record.trials.values()),
        "extended": extended(results),
        "lost": sum(trial.attempt for trial in results.record.trials.values()),
        "test_readings": results.record.test_readings,
        "failures": {trial.number: trial.why for trial in results.record.trials.values() if trial.state == "failed"},
        "untested": {trial.number: trial.untested for trial in results.record.trials.values() if trial.untested},
    }
    if results.spec.final_seeds is not None:
        final = _final(results)
        return document | {"final": final, "shown": _shown(results, {"final": final})}
    sides = {"baseline": _candidate(results.spec, reference) if reference else None}
    sides["best"] = _candidate(results.spec, best) if best else None
    return document | {
        "shown": _shown(results, sides),
        **sides,
        "searched": sum(candidate.trial.stage == "search" for candidate in results.candidates),
        "search_ended_by": results.record.enough,
        **_references(results),
        **({"front": _front(results), "chosen_by": results.spec.objective.rule} if several else {}),
    }


def _references(results: Results) -> dict[str, Any]:
    """What needs no search, the best first, `result`: the name of the one that is the study's, and whether one is above
    what the search found; nothing where nothing was fitted."""
    if not results.record.references:
        return {}
    stays = results.unbeaten
    found = [{"name": one.name, "words": one.label, "metrics": dict(one.metrics)} for one in results.references]
    return {
        "references": found,
        "references_failed": dict(results.failed_references),
        "result": stays.name if stays else None,
        "is_surpassed": bool(results.above),
    }


def _front(results: Results) -> list[dict[str, Any]]:
    return [
        {
            "trial": candidate.trial.number,
            "params": candidate.trial.params,
            "values": dict(zip(results.spec.objective.metrics, score.values, strict=True)),
            "violation": score.violation,
            "fresh": score is candidate.confirmed_score,
        }
        for candidate, score in results.front
    ]


def result_metrics(results: Results) -> dict[str, float]:
    """Mean and sample standard deviation over seeds, as WHO/SPLIT/NAME and the same with `_sd`.

    For a final training every metric; for a study its own on both splits, of the baseline and the best.
    """
    document = summary(results)
    by_side = {who: document[who]["metrics"] for who in ("baseline", "best", "final") if document.get(who)}
    of_side = {
        who: metrics if who == "final" else _only_study_metrics(results.spec, metrics)
        for who, metrics in by_side.items()
    }
    values = {f"{who}/{name}": value for who, metrics in of_side.items() for name, value in metrics.items()}
    numbers = {f"{name}{suffix}": value[key] for name, value in values.items() for key, suffix in PARTS.items()}
    return {name: float(number) for name, number in numbers.items() if number is not None}


PARTS = {"mean": "", "sd": "_sd"}


def result_seeds(results: Results) -> dict[str, str]:
    """The seeds that these results rest on, as `study.WHO_seeds`."""
    document = summary(results)
    sides = {who: document[who] for who in ("baseline", "best", "final") if document.get(who)}
    return {f"study.{who}_seeds": ", ".join(map(str, side["seeds"])) for who, side in sides.items()}


def _only_study_metrics(spec: StudySpec, metrics: dict[str, Any]) -> dict[str, Any]:
    return {name: metrics[name] for name in _study_metrics(spec) if name in metrics}


def _study_metrics(spec: StudySpec) -> list[str]:
    """The metrics that the study is about, on the test and the validation split."""
    return [f"{split}/{name.split('/')[1]}" for name in spec.objective.needed for split in ("test", "val")]


def _shown(results: Results, sides: Mapping[str, dict[str, Any] | None]) -> list[str]:
    """The metrics for people: the study's own, and of those that each side has what stands beside them."""
    of_each = [side["metrics"] for side in sides.values() if side]
    known = [name for name in of_each[0] if all(name in metrics for metrics in of_each)] if of_each else []
    return list(
        dict.fromkeys(
            [*_study_metrics(results.spec), *leading(results.spec.objective.needed, known, results.record.groups or {})]
        )
    )


def lines(document: dict[str, Any]) -> list[str]:
    """The same for people: the baseline against the best, validation and test, with spread and seeds."""
    counts = ", ".join(f"{count} {state}" for state, count in document["trials"].items() if count)
    whose = f", of {document['owner']}" if document["owner"] else ""
    texts = [f"study {document['name']}{whose}: {document['state']} ({counts or 'no trial yet'})"]
    if "final" in document:
        rows = [("final", document["final"])]
        return texts + _rows(rows, dict.fromkeys(document["shown"])) + _what_is_meant(rows) + _epochs(document)
    leading = "search" if document.get("is_surpassed") else "best"
    rows = [(who, document[of]) for who, of in (("baseline", "baseline"), (leading, "best")) if document[of]]
    rows = rows[:1] if len(rows) > 1 and rows[0][1]["trial"] == rows[1][1]["trial"] else rows
    if not rows:
        return texts
    texts += _rows(rows, dict.fromkeys(document["shown"])) + _what_is_meant(rows) + _epochs(document)
    if longer := document.get("extended"):
        texts.append(sentence(longer))
    best, limits = document["best"], document["constraints"]
    if missed := limits and best["violation"]:
        what = "first" if document.get("is_surpassed") else "best"
        texts.append(f"no configuration keeps {', '.join(limits)}; the {what} misses by {missed:.4g}")
    texts += _front_lines(document)
    params = ", ".join(f"{key} = {parameter(value)}" for key, value in best["params"].items())
    rule = f", {document['chosen_by']}" if len(document.get("front", ())) > 1 and "chosen_by" in document else ""
    texts.append(f"{leading}{rule}: trial {best['trial']}{f', {params}' if params else ''}")
    texts += _reference_lines(document)
    for why in dict.fromkeys(document["untested"].values()):
        numbers = [str(number) for number, other in document["untested"].items() if other == why]
        texts.append(f"test split not read for trial{'s' * (len(numbers) > 1)} {', '.join(numbers)}: {why}")
    searched = document.get("searched", True)  # what a cluster runs may lack it
    if searched and document["baseline"] and best["trial"] == document["baseline"]["trial"]:
        texts.append("The search gained nothing over the baseline.")
    return texts


def _reference_lines(document: dict[str, Any]) -> list[str]:
    """Return what needs no search, by the study's own metrics, and whether that is the result."""
    found, own = document.get("references", ()), document["metrics"]
    lines = ["without a search:"] if found else []
    on_test = [f"test/{name.split('/')[1]}" for name in own]
    shown = dict.fromkeys([*own, *on_test, *(name.replace("log_loss", "accuracy") for name in on_test)])
    for one in found:
        metrics = {name: one["metrics"].get(name) for name in shown}
        values = [f"{name} {printed(name, value)}" for name, value in metrics.items() if value is not None]
        lines.append(f"  {one['words']}: {', '.join(values) or 'not judged by ' + ', '.join(own)}")
    lines += [f"  {name} could not be fitted: {why}" for name, why in document.get("references_failed", {}).items()]
    words = next((one["words"] for one in found if one["name"] == document["result"]), None)
    return [*lines, f"best: {words}, which needs no search"] if words else lines


def _front_lines(document: dict[str, Any]) -> list[str]:
    """Return what is on the front, where that is more than one configuration that keeps the constraints."""
    front = document.get("front", ())
    if len(front) < 2 or front[0]["violation"]:
        return []
    where = "on fresh seeds" if front[0].get("fresh") else "in the search"
    lines = [f"no configuration is best in every metric; the front, {where}:"]
    for each in front:
        values = ", ".join(f"{name} {printed(name, value)}" for name, value in each["values"].items())
        is_baseline = document["baseline"] and each["trial"] == document["baseline"]["trial"]
        lines.append(f"  {'the baseline' if is_baseline else 'trial {}'.format(each['trial'])}: {values}")
    return lines


def _rows(rows: list[tuple[str, dict[str, Any]]], metrics: Collection[str]) -> list[str]:
    lines = []
    for who, side in rows:
        lines += _values(who, side["metrics"], metrics, len(side.get("folds", ())))
        for which, values in side["beside"].items():
            lines += [f"{line}, {which}" for line in _values(who, values, metrics)]
    return lines


def _values(who: str, values: dict[str, Any], metrics: Collection[str], folds: int = 0) -> list[str]:
    lines, wide = [], max([26, *map(len, metrics)])
    for metric in metrics:
        if value := values.get(metric):
            seeds = f"{value['n']} seeds" if value["n"] > 1 else "1 seed"
            seeds = f"{folds} folds, {seeds}" if folds > 1 else seeds
            low, high = value.get("interval") or (None, None)
            split = "" if low is None or high is None else f", 95%: {printed_range(metric, low, high)}"
            lines.append(f"{who:<9} {metric:<{wide}} {printed(metric, value['mean'], value['sd'])} ({seeds}){split}")
    return lines


def _what_is_meant(rows: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """Return what the intervals of such rows are of, where there are some."""
    if not any(value.get("interval") for _, side in rows for value in side["metrics"].values()):
        return []
    if any(side.get("folds") for _, side in rows):
        return ["±: over folds and seeds; 95%: of val over samples drawn anew, of test with its samples' own error"]
    return ["±: over seeds; 95%: with the error of the split's own samples, which seeds share"]


def _epochs(document: dict[str, Any]) -> list[str]:
    """Return which epochs were chosen, where they are not all the last."""
    sides = [(who, document[who]) for who in ("baseline", "best", "final") if document.get(who)]
    if document["epoch"] == epochs.LAST or not any(side["epochs"] for _, side in sides):
        return []
    chosen = "; ".join(f"{who} epoch {', '.join(map(str, side['epochs']))}" for who, side in sides)
    return [f"values are those {document['epoch']}: {chosen}"]


def _candidate(spec: StudySpec, candidate: Candidate) -> dict[str, Any]:
    trials = candidate.repeats or candidate.replicates
    return {
        "trial": candidate.trial.number,
        "params": candidate.trial.params,
        "search_value": candidate.value,
        "violation": (candidate.confirmed_score or candidate.score).violation,
        **_results(spec, trials, candidate.joined),
    }


def _final(results: Results) -> dict[str, Any]:
    trials = [trial for trial in results.record.by_stage("final") if trial.state == "complete"]
    return _results(results.spec, trials)


def _results(spec: StudySpec, trials: list[TrialRecord], joined: Joined | None = None) -> dict[str, Any]:
    """Seeds, the epoch that was chosen on each, metrics there, and the study's own at other epochs."""
    folds = sorted({trial.fold for trial in trials if trial.fold is not None})
    others = {which: _documents(spreads) for which, spreads in beside(spec, trials).items()}
    return {
        "seeds": [trial.seed for trial in trials],
        **({"folds": folds} if folds else {}),
        "epochs": [epochs.values(spec.objective, trial)["epoch"] for trial in trials],
        "metrics": _documents(ranking.spreads(spec.objective, trials, joined)),
        "beside": others,
    }


def _documents(spreads: Mapping[str, Spread]) -> dict[str, Any]:
    """As plain values, with `split_error` and `interval` where the split's error is known."""
    found = {name: value.to_document() for name, value in spreads.items()}
    for name, value in spreads.items():
        if ends := value.interval():
            found[name] |= {"split_error": value.split_error, "interval": list(ends)}
    return found
