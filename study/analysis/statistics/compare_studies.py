"""Several studies side by side: their results and what they cost."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from study.analysis.statistics import formatting
from study.errors import UserError, suggest_or_list
from study.home.events import ENDED_STATES
from study.knobs import Section, Value
from study.ranking import Results, SeedStatistics
from study.ranking.arms import Arm, arm_of_candidate
from study.ranking.difference import Difference
from study.ranking.json_documents import FLATTEN_FIELDS
from study.ranking.study_summary import ArmSummary, StudySummary, constraints_broken_by_arm, summarise_study
from study.spec import StudySpec
from study.spec.key_errors import quote_value
from study.spec.reference_models import REFERENCES
from study.spec.section_models import default_as_in_file
from study.spec.trial_sections import section_knobs
from study.text import flatten_mapping, format_parameter


@dataclass(frozen=True)
class ComparedStudy:
    """A study among others.

    Attributes:
        gain: best minus baseline by metric, with its 95% interval.
        against: best minus the first study's best, see `differences_to_first`.
        settings: the keys that differ between these studies, without the searched ones; and without those that not all
            of them have, which the others have at their defaults: they come with a method's or a network's name.
    """

    summary: StudySummary = field(metadata=FLATTEN_FIELDS)
    gain: Mapping[str, Difference]
    against: Mapping[str, Difference]
    settings: Section


def differences_to_first(first: Results, other: Results, metric: str | None = None) -> dict[str, Difference]:
    """Return the other study's best minus the first one's, by metric; of final trainings their means.

    Both bests were chosen by what they are compared by. The interval allows for each pair that could have been chosen.
    Of two that ran on all folds it is by the samples of all folds, which are the same for both, not by their seeds.
    Final trainings chose nothing, so that they can be compared by any metric.

    Returns:
        Empty for the same study, or where data, splits or epochs differ, or the bests share fewer than two seeds.
    """
    one, two = _compared_arm(other), _compared_arm(first)
    is_same = first.spec.name == other.spec.name
    if one is None or two is None or is_same or _comparability_key(first.spec) != _comparability_key(other.spec):
        return {}
    one = replace(one, n_candidates=one.n_candidates * two.n_candidates)
    names = _compared_metrics([summarise_study(first)], metric if first.spec.final_seeds is not None else None)
    gaps = {name: one.difference_to(two, name) for name in names}
    return {name: gap for name, gap in gaps.items() if gap and gap.is_paired}


def missing_comparison_notes(studies: Sequence[Results], metric: str | None = None) -> Iterator[str]:
    """Yield what the comparison of these studies, by a metric or their own, does not have, and why."""
    first, is_search = studies[0], metric is not None and studies[0].spec.final_seeds is None
    for other in studies[1:]:
        if (gaps := differences_to_first(first, other, metric)) and (metric is None or metric in gaps):
            continue
        one, two = _compared_arm(first), _compared_arm(other)
        if one is None or two is None:
            reason = "one of them has no result yet"
        elif is_search and any(metric not in each.spec.objective.metrics for each in (first, other)):
            reason = f"not both were chosen by {metric}"
        elif _comparability_key(first.spec) != _comparability_key(other.spec):
            reason = "their splits differ, or the epochs that count, or the metrics that chose their bests"
        elif len(one.metric_by_seed(first.spec.metric).keys() & two.metric_by_seed(first.spec.metric).keys()) < 2:
            reason = "their results share fewer than two seeds"
        else:
            reason = "it is the same on every seed"
        yield f"Left out: the difference of {other.spec.name} to {first.spec.name}, as {reason}."
    if metric:
        return
    told = [summarise_study(results) for results in studies]
    kept = _compared_metrics(told)
    if lost := [name for name in dict.fromkeys(name for one in told for name in one.shown) if name not in kept]:
        yield f"Left out: {formatting.join_with_and(lost)}; see study status or study report of each."


def _compared_arm(results: Results) -> Arm | None:
    """Return the study's result, or all trials of a final training.

    The baseline, if it leads, was chosen as one more.
    """
    if results.spec.final_seeds is not None or results.reference_as_result:
        return results.final_training_arm or results.baseline_and_result_arms[1]
    chosen = results.best
    if chosen is None:
        return None
    return replace(arm_of_candidate(results.spec, chosen), n_candidates=results.n_candidates_for(chosen) + 1)


def _comparability_key(spec: StudySpec) -> list[object]:
    """Return what must be the same: data and splits, when a trial is taken, and the metrics that chose the best."""
    chosen_by = () if spec.final_seeds is not None else spec.objective.metrics
    return [*spec.trial_data_sections, spec.objective.epoch_window, chosen_by]


def compare_studies(studies: Sequence[Results], metric: str | None = None) -> list[ComparedStudy]:
    """Compare studies: each in the given order, with the settings in which they differ.

    Args:
        metric: one that all have; None: the studies' own, which must then be the same.

    Raises:
        UserError: fewer than two studies, one given twice, final trainings beside searches, one that has not begun, or
            studies of different data or metrics.
    """
    _check_comparable(studies, metric)
    is_final = studies[0].spec.final_seeds is not None
    settings = [_compared_settings(results.spec) for results in studies]
    keys = dict.fromkeys(key for values in settings for key in values)
    of_all = set.intersection(*({*values, *of.spec.search.space} for of, values in zip(studies, settings, strict=True)))
    given = of_all.union(
        *(values.keys() - _keys_at_default(of.spec) for of, values in zip(studies, settings, strict=True))
    )
    differing = [
        key for key in keys if key in given and any(values.get(key) != settings[0].get(key) for values in settings)
    ]
    return [
        ComparedStudy(
            summarise_study(results),
            {} if is_final else _gains_over_baseline(results),
            differences_to_first(studies[0], results, metric),
            {key: values[key] for key in differing if key in values},
        )
        for results, values in zip(studies, settings, strict=True)
    ]


def comparison_table(compared: Sequence[ComparedStudy], metric: str | None = None) -> pd.DataFrame:
    """Return the studies of `compare_studies` as text, a column per study; no row in which none has a value."""
    told = [one.summary for one in compared]
    metrics, is_final = _compared_metrics(told, metric), told[0].final is not None
    whose = ("final",) if is_final else ("baseline", "best")
    keys = dict.fromkeys(key for one in compared for key in one.settings)
    best_params = [best.params or {} if (best := one.arms.get("best")) else {} for one in told]
    searched = dict.fromkeys(key for params in best_params for key in params)
    rows = {
        "state": [one.state for one in told],
        "trials": [_trial_counts_in_words(one.trials) for one in told],
        "epochs run": [str(one.epochs) for one in told],
        **({} if is_final else {"best trial": [_best_trial_text(one) for one in told]}),
        **({} if is_final else _best_reference_rows(told, metrics)),
        "chosen as": [one.chosen_by or formatting.MISSING_TEXT for one in told],
        **{
            f"{who} {name}": [_arm_mean_text(one.arms.get(who), name) for one in told]
            for name in metrics
            for who in whose
        },
        **{
            f"best - baseline {name}": [difference_or_dash_text(one.gain.get(name), name) for one in compared]
            for name in ([] if is_final else metrics)
        },
        **_difference_rows(compared, metrics, whose[-1]),
        **{f"best {key}": [_setting_text(params, key) for params in best_params] for key in searched},
        **{key: [_setting_text(one.settings, key) for one in compared] for key in keys},
    }
    rows = {name: row for name, row in rows.items() if set(row) != {formatting.MISSING_TEXT}}
    columns = {"": list(rows)} | {one.name: [row[at] for row in rows.values()] for at, one in enumerate(told)}
    return pd.DataFrame(columns, dtype=object)


def _difference_rows(compared: Sequence[ComparedStudy], metrics: Sequence[str], whose: str) -> dict[str, list[str]]:
    """Return a line per metric in which two of the studies can be compared seed by seed."""
    return {
        f"{whose} {name}, minus that of {compared[0].summary.name}": [
            difference_or_dash_text(one.against.get(name), name) for one in compared
        ]
        for name in metrics
        if any(name in one.against for one in compared)
    }


def _compared_metrics(told: Sequence[StudySummary], metric: str | None = None) -> list[str]:
    """Return the metric or the study's own on both splits; of final trainings all that are shown and that each has."""
    finals = [one.final.metrics for one in told if one.final]
    if finals and not metric:
        return [name for name in told[0].shown if all(name in metrics for metrics in finals)]
    of_study = [metric] if metric else told[0].metrics
    return [f"{split}/{name.split('/')[1]}" for name in of_study for split in ("val", "test")]


def _shared_metrics(studies: Sequence[Results]) -> list[str]:
    """Return the validation metrics that the results of all studies have."""
    arms = [set().union(*(arm.metrics for arm in summarise_study(each).arms.values())) for each in studies]
    return sorted(name for name in set.intersection(*arms) if name.startswith("val/"))


def _check_comparable(studies: Sequence[Results], metric: str | None) -> None:
    specs = [results.spec for results in studies]
    names = [spec.name for spec in specs]
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise UserError(f"{formatting.join_with_and(names)} given: two or more different studies are needed")
    finals = [spec.name for spec in specs if spec.final_seeds is not None]
    if finals and len(finals) < len(studies):
        raise UserError(f"{finals[0]}: is a final training, and is compared with others of these alone")
    for results in studies:
        if not results.record.sessions:
            raise UserError(f"{results.spec.name}: has not begun yet, so its data are not known")
    # of different data a metric that all have is no help
    by_name = {results.spec.name: _data_and_fingerprint_text(results) for results in studies}
    _check_equal_across_studies("data", by_name, f". {_data_difference_text(studies)}")
    shared = _shared_metrics(studies)
    if metric and metric not in shared:
        raise UserError(f"--metric {metric}: not all have it. {suggest_or_list(metric, shared, 'There are')}")
    if metric is None:
        by_shared = [name for spec in specs for name in spec.objective.metrics if name in shared] or shared
        way = f". By one that all have: --metric {by_shared[0]}" if by_shared else ""
        by_study = {spec.name: formatting.join_with_and(spec.objective.metrics) for spec in specs}
        _check_equal_across_studies("metric", by_study, way)


def _check_equal_across_studies(kind: str, by_study: Mapping[str, str], way: str = "") -> None:
    if len(set(by_study.values())) > 1:
        listing = "; ".join(f"{name}: {value}" for name, value in by_study.items())
        raise UserError(f"studies of different {kind} cannot be compared. {listing}{way}")


def _data_and_fingerprint_text(results: Results) -> str:
    """Return the data's names, or files, and their fingerprint: the same data may be named differently."""
    named = dict.fromkeys(str(section.get("path") or section["name"]) for section in results.spec.trial_data_sections)
    return f"{', '.join(named)}, fingerprint {results.record.sessions[-1].data or 'unknown'}"


def _data_difference_text(studies: Sequence[Results]) -> str:
    """Return by which keys the data of studies differ, with each study's value, or that only what is in them does."""
    settings = {results.spec.name: _data_settings(results.spec) for results in studies}
    shared = [key for key in settings[studies[0].spec.name] if all(key in values for values in settings.values())]
    told = []
    for key in shared:
        by_value: dict[str, list[str]] = {}
        for name, values in settings.items():
            by_value.setdefault(quote_value(values[key]), []).append(name)
        if len(by_value) > 1:
            whose = (f"{value} in {formatting.join_with_and(names)}" for value, names in by_value.items())
            told.append(f"{key}: {', '.join(whose)}")
    if told:
        return f"They differ in {'; '.join(told)}"
    return "No key of their data differs, but what is read by it does: files have changed in between"


def _data_settings(spec: StudySpec) -> dict[str, Value]:
    """Return the keys of a study's data, with the searched ones as lists of what is searched."""
    domains = {key: domain for key, domain in spec.space.domains.items() if key.startswith("data.")}
    searched = {key: domain.choices or [domain.low, domain.high] for key, domain in domains.items()}
    return {**flatten_mapping({"data": spec.base["data"]}), **searched}


def _compared_settings(spec: StudySpec) -> dict[str, Value]:
    keys = COMPARED_SEARCH_KEYS if spec.final_seeds is None else ("constraints",)  # it searches nothing
    found = flatten_mapping({**spec.base, "search": spec.search.model_dump(include=set(keys))})
    if spec.final_seeds is not None:
        found.pop("train.seed")  # each of its trials has its own
    return {key: value for key, value in found.items() if key not in spec.search.space}


def _keys_at_default(spec: StudySpec) -> set[str]:
    """Return the keys of model and method that have their defaults: those of the two sections whose keys vary."""
    return {
        f"{section}.{key}"
        for section in ("model", "method")
        if "name" in (values := spec.base.get(section, {}))
        for key, knob in section_knobs(section, values).items()
        if key in values and values[key] == default_as_in_file(knob.default)
    }


COMPARED_SEARCH_KEYS = ("sampler", "trials", "seed", "replicates", "constraints", "early_stopping", "confirm")
"""Keys of `search` that are compared; those of sections in it are compared one by one."""


def _gains_over_baseline(results: Results) -> dict[str, Difference]:
    """Return best minus baseline, by metric; empty where the baseline is the best or one of the two is missing."""
    (baseline, best), chosen = results.baseline_and_result_arms, summarise_study(results).arms.get("best")
    if not baseline or not best or not chosen or chosen.trial == baseline.trial_number:
        return {}
    return {name: gain for name in chosen.metrics if (gain := best.difference_to(baseline, name))}


def _trial_counts_in_words(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[state]} {state}" for state in ENDED_STATES if counts[state]) or "none ended"


def _arm_mean_text(arm: ArmSummary | None, name: str) -> str:
    """Return an arm's mean ± sd (n), without n where no seed is known, `-` without values."""
    value = arm.metrics.get(name) if arm else None
    if value is None:
        return formatting.MISSING_TEXT
    text = formatting.format_mean_and_deviation(name, SeedStatistics(value.mean, value.sd, value.n))
    return text if arm and arm.reference else f"{text} ({value.n})"


def _best_trial_text(told: StudySummary) -> str:
    best, baseline = told.arms.get("best"), told.arms.get("baseline")
    if best is None:
        return formatting.MISSING_TEXT
    if best.reference:
        return f"none: {REFERENCES[best.reference].description}"
    broken = " and ".join(map(str, constraints_broken_by_arm(told, best)))
    breaks = f", breaks {broken}" if broken else ""
    return f"{best.trial}{' (baseline)' * bool(baseline and baseline.trial == best.trial)}{breaks}"


def _best_reference_rows(told: Sequence[StudySummary], metrics: Sequence[str]) -> dict[str, list[str]]:
    """Return the best reference of each study that can be chosen, and its metrics; `-` without references."""
    fitted = [study.references.references if study.references else () for study in told]
    best = [next((one for one in of if not REFERENCES[one.name].predicts_by_group), None) for of in fitted]
    return {
        "without a search": [one.words if one else formatting.MISSING_TEXT for one in best],
        **{
            f"without a search {name}": [
                formatting.format_metric_value(name, one.metrics.get(name) if one else None) for one in best
            ]
            for name in metrics
        },
    }


def difference_or_dash_text(gap: Difference | None, name: str, words: str = "") -> str:
    """Return a difference of a metric with its interval, `words` before that; a dash where there is none."""
    return formatting.difference_with_interval(name, gap, words) if gap else formatting.MISSING_TEXT


def _setting_text(values: Section, key: str) -> str:
    return format_parameter(values[key]) if key in values else formatting.MISSING_TEXT
