"""Several studies side by side: their results and what they cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from study.analysis.statistics import formatting
from study.errors import UserError
from study.home.events import ENDED
from study.knobs import Section, Value
from study.ranking import Results, SeedStatistics
from study.ranking.difference import (
    Difference,
    Side,
    difference,
    side_of,
)
from study.ranking.documents import INNER
from study.ranking.summary import SideSummary, Summary, summary
from study.spec import StudySpec
from study.spec.reference_models import REFERENCES
from study.text import flat, parameter


@dataclass(frozen=True)
class Gap:
    """A `Difference`, and whether it rests on too few seeds to tell."""

    difference: float
    interval: tuple[float, float] | None
    paired: bool
    among: int
    too_few_seeds: bool

    @classmethod
    def of(cls, gap: Difference) -> "Gap":
        return cls(gap.value, gap.interval, gap.paired, gap.n_candidates, gap.is_vague)


@dataclass(frozen=True)
class Compared:
    """A study among others.

    Attributes:
        gain: best minus baseline by metric, with its 95% interval.
        against: best minus the first study's best, see `against`.
        settings: the keys that differ between these studies, without the searched ones.
    """

    summary: Summary = field(metadata=INNER)
    gain: Mapping[str, Gap]
    against: Mapping[str, Gap]
    settings: Section


def against(first: Results, other: Results) -> dict[str, Gap]:
    """Return the other study's best minus the first one's, by metric; of final trainings their means.

    Both bests were chosen by what they are compared by. The interval allows for each pair that could have been chosen.
    Final trainings chose nothing.

    Returns:
        Empty for the same study, or where data, splits or epochs differ, or the bests share fewer than two seeds.
    """
    one, two = _best(other), _best(first)
    is_same = first.spec.name == other.spec.name
    if one is None or two is None or is_same or _measured_by(first.spec) != _measured_by(other.spec):
        return {}
    gaps = {
        name: difference(one.values(name), two.values(name), one.n_candidates * two.n_candidates)
        for name in _compared_metrics([summary(first)])
    }
    return {name: Gap.of(gap) for name, gap in gaps.items() if gap and gap.paired}


def left_out(studies: Sequence[Results]) -> Iterator[str]:
    """Yield what the comparison of these studies does not have, and why."""
    first = studies[0]
    for other in studies[1:]:
        if against(first, other):
            continue
        one, two = _best(first), _best(other)
        if one is None or two is None:
            reason = "one of them has no result yet"
        elif _measured_by(first.spec) != _measured_by(other.spec):
            reason = "their splits differ, or the epochs that count"
        elif len(one.values(first.spec.metric).keys() & two.values(first.spec.metric).keys()) < 2:
            reason = "their results share fewer than two seeds"
        else:
            reason = "it is the same on every seed"
        yield f"Left out: the difference of {other.spec.name} to {first.spec.name}, as {reason}."
    told = [summary(results) for results in studies]
    kept = _compared_metrics(told)
    if lost := [name for name in dict.fromkeys(name for one in told for name in one.shown) if name not in kept]:
        yield f"Left out: {formatting.listed(lost)}; see study status or study report of each."


def _best(results: Results) -> Side | None:
    """Return the study's result, or all trials of a final training.

    The baseline, if it leads, was chosen as one more.
    """
    if results.spec.final_seeds is not None or results.unbeaten:
        return results.final_side or results.result_sides[1]
    chosen = results.best
    return replace(side_of(results.spec, chosen), n_candidates=results.chosen_among(chosen) + 1) if chosen else None


def _measured_by(spec: StudySpec) -> list[object]:
    """Return what must be the same: data and splits, and when a trial is taken."""
    return [*spec.data_sections, spec.objective.window]


def compare(studies: Sequence[Results]) -> list[Compared]:
    """Compare studies: each in the given order, with the settings in which they differ.

    Raises:
        UserError: fewer than two studies, one given twice, final trainings beside searches, one that has not begun, or
            studies of different data or metrics.
    """
    _check(studies)
    is_final = studies[0].spec.final_seeds is not None
    settings = [_settings(results.spec) for results in studies]
    keys = dict.fromkeys(key for values in settings for key in values)
    differing = [key for key in keys if any(values.get(key) != settings[0].get(key) for values in settings)]
    return [
        Compared(
            summary(results),
            {} if is_final else _gains(results),
            against(studies[0], results),
            {key: values[key] for key in differing if key in values},
        )
        for results, values in zip(studies, settings, strict=True)
    ]


def printed_comparison(compared: Sequence[Compared]) -> pd.DataFrame:
    """Return the studies of `compare` as text, a column per study; no row in which none has a value."""
    told = [one.summary for one in compared]
    metrics, is_final = _compared_metrics(told), told[0].final is not None
    whose = ("final",) if is_final else ("baseline", "best")
    keys = dict.fromkeys(key for one in compared for key in one.settings)
    best_params = [best.params or {} if (best := one.sides.get("best")) else {} for one in told]
    searched = dict.fromkeys(key for params in best_params for key in params)
    rows = {
        "state": [one.state for one in told],
        "trials": [_trials(one.trials) for one in told],
        "epochs run": [str(one.epochs) for one in told],
        **({} if is_final else {"best trial": [_best_trial(one) for one in told]}),
        **({} if is_final else _without_search(told, metrics)),
        "chosen as": [one.chosen_by or formatting.MISSING for one in told],
        **{f"{who} {name}": [_number(one.sides.get(who), name) for one in told] for name in metrics for who in whose},
        **{
            f"gain {name}": [_gain(one.gain.get(name), name) for one in compared]
            for name in ([] if is_final else metrics)
        },
        **_against(compared, metrics, whose[-1]),
        **{f"best {key}": [_setting(params, key) for params in best_params] for key in searched},
        **{key: [_setting(one.settings, key) for one in compared] for key in keys},
    }
    rows = {name: row for name, row in rows.items() if set(row) != {formatting.MISSING}}
    columns = {"": list(rows)} | {one.name: [row[at] for row in rows.values()] for at, one in enumerate(told)}
    return pd.DataFrame(columns, dtype=object)


def _against(compared: Sequence[Compared], metrics: Sequence[str], whose: str) -> dict[str, list[str]]:
    """Return a line per metric in which two of the studies can be compared seed by seed."""
    return {
        f"{whose} {name}, minus that of {compared[0].summary.name}": [
            _gain(one.against.get(name), name) for one in compared
        ]
        for name in metrics
        if any(name in one.against for one in compared)
    }


def _compared_metrics(told: Sequence[Summary]) -> list[str]:
    """Return the study's metrics on both splits; of final trainings all that are shown and that each has."""
    finals = [one.final.metrics for one in told if one.final]
    if finals:
        return [name for name in told[0].shown if all(name in metrics for metrics in finals)]
    return [f"{split}/{metric.split('/')[1]}" for metric in told[0].metrics for split in ("val", "test")]


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
    """Return the data's names and their fingerprint: the same data may be named differently."""
    names = ", ".join(dict.fromkeys(str(section["name"]) for section in results.spec.data_sections))
    return f"{names}, fingerprint {results.record.sessions[-1].data or 'unknown'}"


def _settings(spec: StudySpec) -> dict[str, Value]:
    found = flat({**spec.base, "search": spec.search.model_dump(include=set(COMPARED))})
    if spec.final_seeds is not None:
        found.pop("train.seed")  # each of its trials has its own
    return {key: value for key, value in found.items() if key not in spec.search.space}


COMPARED = ("sampler", "trials", "seed", "replicates", "constraints", "early_stopping", "confirm")
"""Keys of `search` that are compared; those of sections in it are compared one by one."""


def _gains(results: Results) -> dict[str, Gap]:
    """Return best minus baseline, by metric; empty where the baseline is the best or one of the two is missing."""
    (baseline, best), chosen = results.result_sides, summary(results).sides.get("best")
    if not baseline or not best or not chosen or chosen.trial == baseline.number:
        return {}
    return {name: Gap.of(gain) for name in chosen.metrics if (gain := best.against(baseline, name))}


def _trials(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[state]} {state}" for state in ENDED if counts[state]) or "none ended"


def _number(side: SideSummary | None, name: str) -> str:
    """Return a side's mean ± sd (n), `-` without values."""
    value = side.metrics.get(name) if side else None
    return (
        f"{formatting.mean(name, SeedStatistics(value.mean, value.sd, value.n))} ({value.n})"
        if value
        else formatting.MISSING
    )


def _best_trial(told: Summary) -> str:
    best, baseline = told.sides.get("best"), told.sides.get("baseline")
    if best is None:
        return formatting.MISSING
    if best.reference:
        return f"none: {REFERENCES[best.reference].words}"
    return f"{best.trial} (baseline)" if baseline and baseline.trial == best.trial else str(best.trial)


def _without_search(told: Sequence[Summary], metrics: Sequence[str]) -> dict[str, list[str]]:
    """Return the best reference of each study that can be chosen, and its metrics; `-` without references."""
    usable = [
        [one for one in study.references.references if not REFERENCES[one.name].needs_group] if study.references else []
        for study in told
    ]
    best = [next(iter(found), None) for found in usable]
    return {
        "without a search": [one.words if one else formatting.MISSING for one in best],
        **{
            f"without a search {name}": [formatting.value(name, one.metrics.get(name) if one else None) for one in best]
            for name in metrics
        },
    }


def _gain(gap: Gap | None, name: str) -> str:
    if gap is None:
        return formatting.MISSING
    if gap.too_few_seeds:
        return f"{formatting.change(name, gap.difference)} ({formatting.VAGUE})"
    return formatting.amount(name, Difference(gap.difference, gap.interval), words="")


def _setting(values: Section, key: str) -> str:
    return parameter(values[key]) if key in values else formatting.MISSING
