"""A study's results as one JSON document and in a few lines."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from study.home.events import FoldsJoined, ParamValues
from study.home.record import StudyRecord, TrialRecord
from study.metrics.metric_format import format_metric, format_metric_range
from study.metrics.summary_metrics import list_summary_metrics
from study.ranking import (
    Candidate,
    FittedReference,
    Results,
    SeedStatistics,
    cached_per_results,
    seed_statistics,
    statistics_by_metric,
)
from study.ranking.arms import arm_of_candidate, is_fitted_once
from study.ranking.chosen_epoch import LAST_EPOCH_TEXT, chosen_epoch_text, metrics_at_chosen_epoch
from study.ranking.final_model import ensemble_statistics
from study.ranking.json_documents import FLATTEN_FIELDS, OMIT_IF_NONE
from study.spec import StudySpec
from study.spec.constraints import MetricConstraint
from study.text import format_parameter, list_few_names, pluralise, study_command

BEST_ON_TEST_TEXT = "at the epoch that is best on the test split, so too good on average"


def metrics_at_other_epochs(spec: StudySpec, trials: Sequence[TrialRecord]) -> dict[str, dict[str, SeedStatistics]]:
    """Return the study's metrics over trials at other epochs than the chosen one: by which epoch, then by metric.

    Papers print them beside a result; nothing is chosen by them. `LAST_EPOCH_TEXT` where `search.epoch` is best: also
    of the test split, where each epoch read it. `BEST_ON_TEST_TEXT` where each epoch read it (`train.report_test`): the
    metric on the test split, at each trial's best epoch by that. It looks, on average, too good.
    """
    metrics = [f"{split}/{name.split('/')[1]}" for name in spec.objective.needed_metrics for split in ("val", "test")]
    last = {name: seed_statistics(trial.last_metric(name) for trial in trials) for name in metrics}
    test_best = {spec.test_metric: seed_statistics(_best_test_value(spec, trial) for trial in trials)}
    by_epoch = {LAST_EPOCH_TEXT: last if spec.objective.epoch_window is not None else {}, BEST_ON_TEST_TEXT: test_best}
    spreads = {which: {name: value for name, value in of.items() if value} for which, of in by_epoch.items()}
    return {which: of for which, of in spreads.items() if of}


def _best_test_value(spec: StudySpec, trial: TrialRecord) -> float | None:
    values = [value for report in trial.reports if (value := report.get(spec.test_metric)) is not None]
    return (min if spec.mode == "min" else max)(values, default=None)


@dataclass(frozen=True)
class MetricSummary:
    """A metric over trials of several seeds, as `SeedStatistics`; its interval where the split's error is known."""

    mean: float
    sd: float | None
    n: int
    split_error: float | None = field(default=None, metadata=OMIT_IF_NONE)
    interval: tuple[float, float] | None = field(default=None, metadata=OMIT_IF_NONE)

    @classmethod
    def from_statistics(cls, spread: SeedStatistics) -> "MetricSummary":
        ends = spread.confidence_interval()
        return cls(spread.mean, spread.standard_deviation, spread.count, spread.split_error if ends else None, ends)


MetricSummaryByName = Mapping[str, MetricSummary]
"""Values by metric."""


@dataclass(frozen=True, kw_only=True)
class ArmSummary:
    """A configuration with the trials that its metrics are taken from, a reference, or a final training.

    Attributes:
        reference: its name.
        trial, params, search_value, violation: of a configuration; by how much it misses the constraints.
        seeds, folds: of its trials, as they stand; the folds that they ran on.
        epochs: the chosen one of each.
        beside: the study's metrics at other epochs, by which.
    """

    reference: str | None = field(default=None, metadata=OMIT_IF_NONE)
    trial: int | None = field(default=None, metadata=OMIT_IF_NONE)
    params: ParamValues | None = field(default=None, metadata=OMIT_IF_NONE)
    search_value: float | None = field(default=None, metadata=OMIT_IF_NONE)
    violation: float | None = field(default=None, metadata=OMIT_IF_NONE)
    seeds: Sequence[int]
    folds: Sequence[int] | None = field(default=None, metadata=OMIT_IF_NONE)
    epochs: Sequence[float | None]
    metrics: MetricSummaryByName
    beside: Mapping[str, MetricSummaryByName]

    def restrict_to_metrics(self, names: Collection[str]) -> "ArmSummary":
        """Return it with these metrics alone, on both splits; each is named without its split."""
        kept = {name: value for name, value in self.metrics.items() if name.split("/")[1] in names}
        return replace(self, metrics=kept)


@dataclass(frozen=True, kw_only=True)
class SearchSummary:
    """What a search found, and which limit had ended it when its driver closed it.

    Attributes:
        best: the study's result.
        search: the configuration that leads, where the result is a reference.
    """

    baseline: ArmSummary | None
    search: ArmSummary | None = field(default=None, metadata=OMIT_IF_NONE)
    best: ArmSummary | None
    searched: int
    search_ended_by: str | None


@dataclass(frozen=True)
class ReferenceSummary:
    """A result that needs no search.

    Attributes:
        words: its name in a list.
    """

    name: str
    words: str
    metrics: Mapping[str, float | None]


@dataclass(frozen=True)
class ReferencesSummary:
    """The references, the best first.

    Attributes:
        references_failed: why others could not be fitted, by name.
        result: the name of the one that is the study's result.
        is_surpassed: whether one is above what the search found.
    """

    references: Sequence[ReferenceSummary]
    references_failed: Mapping[str, str]
    result: str | None
    is_surpassed: bool


@dataclass(frozen=True)
class FrontMember:
    """A configuration of the front: its values, and whether these are of fresh seeds."""

    trial: int
    params: ParamValues
    values: Mapping[str, float]
    violation: float
    fresh: bool


@dataclass(frozen=True, kw_only=True)
class StudySummary:
    """A study's results.

    Those of a final training are in `final`, and in `ensemble` what its networks are worth as one model; those of a
    search in `found`, with its references and, where there are several metrics, the front and the rule that chooses
    from it.
    """

    name: str
    state: str
    owner: str | None
    metric: str
    metrics: Sequence[str]
    epoch: str
    constraints: Sequence[str]
    trials: Mapping[str, int]
    epochs: int
    lost: int
    test_readings: int
    failures: Mapping[int, str | None]
    untested: Mapping[int, str]
    final: ArmSummary | None = field(default=None, metadata=OMIT_IF_NONE)
    ensemble: ArmSummary | None = field(default=None, metadata=OMIT_IF_NONE)
    shown: Sequence[str]
    found: SearchSummary | None = field(default=None, metadata=FLATTEN_FIELDS)
    references: ReferencesSummary | None = field(default=None, metadata=FLATTEN_FIELDS)
    front: Sequence[FrontMember] | None = field(default=None, metadata=OMIT_IF_NONE)
    chosen_by: str | None = field(default=None, metadata=OMIT_IF_NONE)

    @property
    def arms(self) -> dict[str, ArmSummary]:
        """Baseline, what leads the search if that is neither, best; or final training and ensemble; what there is."""
        found: dict[str, ArmSummary | None] = {"final": self.final, "ensemble": self.ensemble}
        if self.found:
            baseline, search = self.found.baseline, self.found.search
            is_baseline = search and baseline and search.trial == baseline.trial
            found = {"baseline": baseline, "search": None if is_baseline else search, "best": self.found.best}
        return {who: arm for who, arm in found.items() if arm}


@cached_per_results
def summarise_study(results: Results) -> StudySummary:
    """Summarise a study's results: state, trials by state, baseline and best with their metrics."""
    spec, record, goal = results.spec, results.record, results.spec.objective
    trials = record.trials.values()
    baseline, leads = (summarise_candidate(spec, one) if one else None for one in (results.baseline, results.best))
    best = _summarise_reference(results, results.reference_as_result) if results.reference_as_result else leads
    is_final, several = spec.final_seeds is not None, goal.has_several_metrics
    final = _summarise_trials(spec, results.final_training_trials) if is_final else None
    if final and is_fitted_once(spec, results.final_training_trials):
        final = replace(final, reference=str(spec.base["method"]["model"]))
    searched = sum(candidate.trial.stage == "search" for candidate in results.ranked_search)
    return StudySummary(
        name=spec.name,
        state=record.state,
        owner=record.owner,
        metric=spec.metric,
        metrics=goal.metrics,
        epoch=chosen_epoch_text(goal),
        constraints=spec.search.constraints,
        trials=record.trials_by_state(),
        epochs=sum(trial.n_epochs for trial in trials),
        lost=sum(trial.attempt for trial in trials),
        test_readings=record.n_test_readings,
        failures={trial.number: trial.end_reason for trial in trials if trial.state == "failed"},
        untested={trial.number: trial.test_failure for trial in trials if trial.test_failure},
        final=final,
        ensemble=_summarise_ensemble(results),
        shown=_printed_metric_names(results, [final] if is_final else [baseline, leads]),
        found=None
        if is_final
        else SearchSummary(
            baseline=baseline,
            search=leads if results.reference_as_result else None,
            best=best,
            searched=searched,
            search_ended_by=record.search_ended_by,
        ),
        references=None if is_final else _summarise_references(results),
        front=_front_members(results) if several and not is_final else None,
        chosen_by=goal.front_choice_text if several and not is_final else None,
    )


def _summarise_references(results: Results) -> ReferencesSummary | None:
    """Return what needs no search; None where nothing was fitted."""
    if not results.record.reference_events:
        return None
    reference = results.reference_as_result
    found = [ReferenceSummary(one.name, one.name_with_needs, one.metrics) for one in results.references]
    return ReferencesSummary(
        found, results.why_references_failed, reference.name if reference else None, bool(results.references_above_best)
    )


def _front_members(results: Results) -> list[FrontMember]:
    names = results.spec.objective.metrics
    return [
        FrontMember(
            candidate.trial.number,
            candidate.trial.params,
            dict(zip(names, score.values, strict=True)),
            score.total_violation,
            score is candidate.confirmed_score,
        )
        for candidate, score in results.front
    ]


def result_means_and_deviations(results: Results) -> dict[str, float]:
    """Return mean and sample standard deviation over seeds, as WHO/SPLIT/NAME and WHO/SPLIT/NAME_sd.

    For a final training and its ensemble every metric; for a study those of `result_metric_names`, of the baseline and
    the best. Where the best is a reference, what leads the search is `search`.
    """
    arms = summarise_study(results).arms.items()
    return {f"{who}/{name}": value for who, arm in arms for name, value in _arm_result_values(results, arm).items()}


def _arm_result_values(results: Results, arm: ArmSummary) -> dict[str, float]:
    """Return mean and sample standard deviation over seeds of one arm, as SPLIT/NAME and SPLIT/NAME_sd."""
    names = result_metric_names(results.spec) if results.spec.final_seeds is None else arm.metrics
    known = {name: value for name in names if (value := arm.metrics.get(name))}
    numbers = {
        f"{name}{end}": one for name, value in known.items() for end, one in (("", value.mean), ("_sd", value.sd))
    }
    return {name: float(number) for name, number in numbers.items() if number is not None}


def result_row_values(spec: StudySpec, arm: ArmSummary) -> dict[str, float]:
    """Return every metric of an arm under the names that a reference's have, so that rows of results are comparable.

    Means, with the standard error of the split's samples as `_standard_error`; deviations over seeds, which a reference
    has none of, for the metrics of `result_metric_names` alone.
    """
    values = {name: value.mean for name, value in arm.metrics.items()}
    values |= {f"{name}_standard_error": of.split_error for name, of in arm.metrics.items() if of.split_error}
    spreads = {f"{name}_sd": arm.metrics[name].sd for name in result_metric_names(spec) if name in arm.metrics}
    return values | {name: sd for name, sd in spreads.items() if sd is not None}


def result_seeds(results: Results) -> dict[str, str]:
    """Return the seeds that these results rest on, as `study.WHO_seeds`; of a reference none but that of its fit."""
    arms = summarise_study(results).arms.items()
    known = ((who, arm) for who, arm in arms if who == "final" or not arm.reference)
    return {f"study.{who}_seeds": ", ".join(map(str, arm.seeds)) for who, arm in known}


def result_metric_names(spec: StudySpec) -> list[str]:
    """Return the metrics of a result on both splits: the study's, the accuracy that goes with a log loss, accuracy."""
    own = [name.split("/")[1] for name in spec.objective.needed_metrics]
    beside = [] if spec.training_function else [*(name.replace("log_loss", "accuracy") for name in own), "accuracy"]
    return [f"{split}/{name}" for name in dict.fromkeys([*own, *beside]) for split in ("val", "test")]


def _printed_metric_names(results: Results, arms: Iterable[ArmSummary | None]) -> list[str]:
    """Return the metrics for people: the study's own, and the leading ones that each arm has."""
    of_each = [arm.metrics for arm in arms if arm]
    known = [name for name in of_each[0] if all(name in metrics for metrics in of_each)] if of_each else []
    names = results.spec.objective.needed_metrics
    own = [f"{split}/{name.split('/')[1]}" for name in names for split in ("test", "val")]
    return list(dict.fromkeys([*own, *list_summary_metrics(names, known, results.record.group_sample_counts.cells)]))


def first_failure_text(record: StudyRecord, name: str) -> str | None:
    """Return why the first failed trial of a study failed, and the command that shows its traceback; None: none did.

    Args:
        name: of the study.
    """
    if (failed := record.first_failed_trial) is None:
        return None
    return f"trial {failed.number} failed: {failed.end_reason}. {study_command('logs', name, '--trial', failed.number)}"


def summary_lines(summary: StudySummary) -> list[str]:
    """Return a summary for a terminal: baseline against best, validation and test, with spread and seeds."""
    counts = ", ".join(f"{count} {state}" for state, count in summary.trials.items() if count)
    whose = f", of {summary.owner}" if summary.owner else ""
    texts = [f"study {summary.name}{whose}: {summary.state} ({counts or 'no trial yet'})"]
    leading = "search" if summary.references and summary.references.is_surpassed else "best"
    rows = [(leading if who == "best" and not arm.reference else who, arm) for who, arm in summary.arms.items()]
    rows = rows[:1] if summary.found and len(rows) > 1 and rows[0][1].trial == rows[1][1].trial else rows
    if any(arm.reference for _, arm in rows):  # of what leads the search the study's metric is enough then
        own = {name.split("/")[1] for name in summary.metrics}
        rows = [(who, arm.restrict_to_metrics(own) if who == "search" else arm) for who, arm in rows]
    if summary.final or rows:
        texts += _all_metric_lines(rows, dict.fromkeys(summary.shown))
        texts += _interval_note(rows) + _chosen_epoch_lines(summary)
    leads = (summary.found.search or summary.found.best) if summary.found else None
    if leads is None or summary.found is None:
        return texts
    if summary.constraints and leads.violation:
        baseline = summary.found.baseline
        name = "the baseline" if baseline and leads.trial == baseline.trial else f"trial {leads.trial}"
        what = f"{name}, which leads the search," if leading == "search" else "the best"
        broken = constraints_broken_by_arm(summary, leads).items()
        missed = " and ".join(constraint.violation_text(by) for constraint, by in broken)
        kept = "it" if len(summary.constraints) == 1 else "all limits"
        texts.append(f"{what} misses {missed}; none of those that it was chosen from keeps {kept}")
    texts += _front_lines(summary)
    params = ", ".join(f"{key} = {format_parameter(value)}" for key, value in (leads.params or {}).items())
    rule = f", {summary.chosen_by}" if len(summary.front or ()) > 1 else ""
    texts.append(f"{leading}{rule}: trial {leads.trial}{f', {params}' if params else ''}")
    texts += _reference_lines(summary.references, summary.metrics, summary.arms.values()) if summary.references else []
    for why in dict.fromkeys(summary.untested.values()):
        numbers = [str(number) for number, other in summary.untested.items() if other == why]
        texts.append(f"test split not read for trial{'s' * (len(numbers) > 1)} {list_few_names(numbers, 4)}: {why}")
    is_baseline = summary.found.baseline and leads.trial == summary.found.baseline.trial
    if summary.state == "complete" and summary.found.searched and is_baseline:
        where = f"In {summary.metrics[0]} the" if len(summary.front or ()) > 1 else "The"
        texts.append(f"{where} search gained nothing over the baseline.")
    return texts


def constraints_broken_by_arm(summary: StudySummary, arm: ArmSummary) -> dict[MetricConstraint, float]:
    """Return the constraints that an arm breaks by its means, and by how much."""
    constraints = map(MetricConstraint.from_text, summary.constraints)
    known = {each: each.violation_of(of.mean) for each in constraints if (of := arm.metrics.get(each.metric))}
    return {each: by for each, by in known.items() if by > 0}


def _reference_lines(references: ReferencesSummary, own: Sequence[str], arms: Iterable[ArmSummary]) -> list[str]:
    """Return what needs no search, by the study's own metrics, and whether that is the result."""
    where = ", judged on all folds" if any(len(arm.folds or ()) == 1 for arm in arms) else ""
    lines = [f"without a search{where}:"] if references.references else []
    on_test = [f"test/{name.split('/')[1]}" for name in own]
    shown = dict.fromkeys([*own, *on_test, *(name.replace("log_loss", "accuracy") for name in on_test)])
    for one in references.references:
        metrics = {name: one.metrics.get(name) for name in shown}
        values = [f"{name} {format_metric(name, value)}" for name, value in metrics.items() if value is not None]
        lines.append(f"  {one.words}: {', '.join(values) or 'not judged by ' + ', '.join(own)}")
    lines += [f"  {name} could not be fitted: {why}" for name, why in references.references_failed.items()]
    words = next((one.words for one in references.references if one.name == references.result), None)
    return [*lines, f"best: {words}, which needs no search"] if words else lines


def _front_lines(summary: StudySummary) -> list[str]:
    """Return what is on the front, where that is more than one configuration that keeps the constraints."""
    front, baseline = summary.front or (), summary.arms.get("baseline")
    if len(front) < 2 or front[0].violation:
        return []
    again = "on all folds" if any(arm.folds for arm in summary.arms.values()) else "on fresh seeds"
    where = again if front[0].fresh else "in the search"
    are_level = len({tuple(each.values.values()) for each in front}) == 1
    said = "these are level in every metric" if are_level else "no configuration is best in every metric"
    lines = [f"{said}; the front, {where}:"]
    for each in front:
        values = ", ".join(f"{name} {format_metric(name, value)}" for name, value in each.values.items())
        is_baseline = baseline and each.trial == baseline.trial
        lines.append(f"  {'the baseline' if is_baseline else f'trial {each.trial}'}: {values}")
    return lines


def _all_metric_lines(rows: Iterable[tuple[str, ArmSummary]], metrics: Collection[str]) -> list[str]:
    lines = []
    for who, arm in rows:
        lines += _metric_value_lines(who, arm, arm.metrics, metrics)
        for which, values in arm.beside.items():
            lines += [f"{line}, {which}" for line in _metric_value_lines(who, arm, values, metrics)]
    return lines


def _metric_value_lines(who: str, arm: ArmSummary, values: MetricSummaryByName, metrics: Collection[str]) -> list[str]:
    lines, wide = [], max([26, *map(len, metrics)])
    for metric in metrics:
        if value := values.get(metric):
            runs = fold_and_seed_counts_text(arm.folds or (), 0 if arm.reference else value.n)
            split = f", 95%: {format_metric_range(metric, *value.interval)}" if value.interval else ""
            lines.append(f"{who:<9} {metric:<{wide}} {format_metric(metric, value.mean, value.sd)} ({runs}){split}")
    return lines


def fold_and_seed_counts_text(folds: Sequence[int], seeds: int) -> str:
    """Return what a value is of, `5 folds, 5 seeds`.

    Args:
        folds: that the trials ran on.
        seeds: number of seeds; 0: it knows none.
    """
    counted = pluralise(seeds, "seed") if seeds else "no seed"
    return f"{pluralise(len(folds), 'fold')}, {counted}" if folds else counted


def _interval_note(rows: Sequence[tuple[str, ArmSummary]]) -> list[str]:
    """Return what the intervals of such rows are of, where there are some."""
    if not any(value.interval for _, arm in rows for value in arm.metrics.values()):
        return []
    if any(arm.folds for _, arm in rows):
        return ["±: over folds and seeds; 95%: of val over samples drawn anew, of test with its samples' own error"]
    if all(arm.reference for _, arm in rows):
        return ["95%: by the error of the split's own samples"]
    return ["±: over seeds; 95%: with the error of the split's own samples, which seeds share"]


def _chosen_epoch_lines(summary: StudySummary) -> list[str]:
    """Return which epochs were chosen, where they are not all the last."""
    known = {who: arm for who, arm in summary.arms.items() if arm.epochs and who != "ensemble" and not arm.reference}
    if summary.epoch == LAST_EPOCH_TEXT or not known:
        return []
    chosen = "; ".join(f"{who} epoch {', '.join(map(str, arm.epochs))}" for who, arm in known.items())
    of_ensemble = "; those of the ensemble are of the weights at the end of these" * bool(summary.ensemble)
    return [f"values are those {summary.epoch}: {chosen}{of_ensemble}"]


def summarise_candidate(spec: StudySpec, candidate: Candidate) -> ArmSummary:
    """Summarise a configuration, over the trials that ran again on fresh seeds if there are any."""
    violation = (candidate.confirmed_score or candidate.score).total_violation
    told = _summarise_trials(spec, candidate.confirm_trials or candidate.replicates, candidate.joined_folds)
    of_trial = candidate.trial
    return replace(
        told, trial=of_trial.number, params=of_trial.params, search_value=candidate.search_value, violation=violation
    )


def _summarise_reference(results: Results, reference: FittedReference) -> ArmSummary:
    arm = arm_of_candidate(results.spec, reference)
    violation = reference.score.total_violation if reference.score else None
    told = _summarise_trials(results.spec, arm.trials, arm.joined_folds)
    return replace(told, reference=reference.name, params={}, violation=violation)


def _summarise_trials(spec: StudySpec, trials: Sequence[TrialRecord], joined: FoldsJoined | None = None) -> ArmSummary:
    return ArmSummary(
        seeds=[trial.seed for trial in trials],
        folds=sorted({trial.fold for trial in trials if trial.fold is not None}) or None,
        epochs=[metrics_at_chosen_epoch(spec.objective, trial)["epoch"] for trial in trials],
        metrics=_metric_summaries(statistics_by_metric(spec.objective, trials, joined)),
        beside={which: _metric_summaries(of) for which, of in metrics_at_other_epochs(spec, trials).items()},
    )


def _summarise_ensemble(results: Results) -> ArmSummary | None:
    """Return what the networks of a final training are worth as one model; None: it is none, or is not measured."""
    if (measured := results.record.ensemble) is None:
        return None
    members = [results.record.trials[number] for number in measured.trials]
    metrics = _metric_summaries(ensemble_statistics(results.record))
    return replace(_summarise_trials(results.spec, members), metrics=metrics, beside={})


def _metric_summaries(of: Mapping[str, SeedStatistics]) -> MetricSummaryByName:
    return {name: MetricSummary.from_statistics(one) for name, one in of.items()}
