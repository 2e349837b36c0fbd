"""A study's results as one JSON document and in a few lines."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from study.home.events import ENDED, Joined, Params
from study.home.record import TrialRecord
from study.metrics import printed, printed_range
from study.metrics.selection_rules import leading
from study.ranking import Candidate, Reference, Results, SeedStatistics, epochs, once, spread, spreads
from study.ranking.difference import side_of
from study.ranking.documents import INNER, KNOWN
from study.ranking.epochs import LAST
from study.spec import StudySpec
from study.text import counted, parameter

TEST_BEST = "at the epoch that is best on the test split, so too good on average"


def beside(spec: StudySpec, trials: Sequence[TrialRecord]) -> dict[str, dict[str, SeedStatistics]]:
    """Return the study's metrics over trials at other epochs than the chosen one: by which epoch, then by metric.

    Papers print them beside a result; nothing is chosen by them. `LAST` where `search.epoch` is best: also of the test
    split, where each epoch read it. `TEST_BEST` where each epoch read it (`train.report_test`): the metric on the test
    split, at each trial's best epoch by that. It looks, on average, too good.
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


@dataclass(frozen=True)
class Extended:
    """The last extension, with earlier ones to as many epochs.

    Attributes:
        epochs: of its trials.
        of: the study's.
        trials: the numbers of its configurations.
        left: how many trials of it are still to end.
        compared: how many epochs the trials ran that the results compare.
    """

    epochs: int
    of: int
    trials: Sequence[int]
    left: int
    compared: int


def extended(results: Results) -> Extended | None:
    """Return the last extension, None where there was none."""
    record = results.record
    if not record.lengthened:
        return None
    epochs = record.lengthened[-1].epochs
    alike = (each.trials for each in record.lengthened if each.epochs == epochs)
    trials = [record.trials[number] for number in dict.fromkeys(chain.from_iterable(alike))]
    configurations = [trial.number for trial in trials if trial.stage in ("baseline", "search")]
    left = sum(trial.state not in ENDED for trial in trials)
    return Extended(epochs, results.spec.epochs, configurations, left, results.compared_at)


def sentence(found: Extended) -> str:
    """Return in words which trials were extended, and which epochs the results compare."""
    which = f"trial{'s' * (len(found.trials) > 1)} {', '.join(map(str, found.trials))}"
    if found.epochs == found.of:
        return f"{which} went on to epoch {found.epochs} after early stopping had ended them"
    if found.compared == found.epochs and not found.left:
        return (
            f"{which} went on to epoch {found.epochs} and are compared with one another alone; the other trials "
            "are as they ended"
        )
    why = "until all of them have ended" if found.left else "none of the search's is complete, so"
    return f"{which} go on to epoch {found.epochs}; {why} results are those of {found.compared} epochs"


@dataclass(frozen=True)
class Value:
    """A metric over trials of several seeds, as `SeedStatistics`; its interval where the split's error is known."""

    mean: float
    sd: float | None
    n: int
    split_error: float | None = field(default=None, metadata=KNOWN)
    interval: tuple[float, float] | None = field(default=None, metadata=KNOWN)

    @classmethod
    def of(cls, spread: SeedStatistics) -> "Value":
        ends = spread.interval()
        return cls(spread.mean, spread.deviation, spread.count, spread.split_error if ends else None, ends)


Values = Mapping[str, Value]
"""Values by metric."""


@dataclass(frozen=True, kw_only=True)
class SideSummary:
    """A configuration with the trials that its metrics are taken from, a reference, or a final training.

    Attributes:
        reference: its name.
        trial, params, search_value, violation: of a configuration; by how much it misses the constraints.
        seeds, folds: of its trials, as they stand; the folds that they ran on.
        epochs: the chosen one of each.
        beside: the study's metrics at other epochs, by which.
    """

    reference: str | None = field(default=None, metadata=KNOWN)
    trial: int | None = field(default=None, metadata=KNOWN)
    params: Params | None = field(default=None, metadata=KNOWN)
    search_value: float | None = field(default=None, metadata=KNOWN)
    violation: float | None = field(default=None, metadata=KNOWN)
    seeds: Sequence[int]
    folds: Sequence[int] | None = field(default=None, metadata=KNOWN)
    epochs: Sequence[float | None]
    metrics: Values
    beside: Mapping[str, Values]


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a search found, and which limit had ended it when its driver closed it.

    Attributes:
        best: the study's result.
        search: the configuration that leads, where the result is a reference.
    """

    baseline: SideSummary | None
    search: SideSummary | None = field(default=None, metadata=KNOWN)
    best: SideSummary | None
    searched: int
    search_ended_by: str | None


@dataclass(frozen=True)
class Unsearched:
    """A result that needs no search.

    Attributes:
        words: its name in a list.
    """

    name: str
    words: str
    metrics: Mapping[str, float | None]


@dataclass(frozen=True)
class References:
    """The references, the best first.

    Attributes:
        references_failed: why others could not be fitted, by name.
        result: the name of the one that is the study's result.
        is_surpassed: whether one is above what the search found.
    """

    references: Sequence[Unsearched]
    references_failed: Mapping[str, str]
    result: str | None
    is_surpassed: bool


@dataclass(frozen=True)
class OnFront:
    """A configuration of the front: its values, and whether these are of fresh seeds."""

    trial: int
    params: Params
    values: Mapping[str, float]
    violation: float
    fresh: bool


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A study's results.

    Those of a final training are in `final`, those of a search in `found`, with its references and, where there are
    several metrics, the front and the rule that chooses from it.
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
    extended: Extended | None
    lost: int
    test_readings: int
    failures: Mapping[int, str | None]
    untested: Mapping[int, str]
    final: SideSummary | None = field(default=None, metadata=KNOWN)
    shown: Sequence[str]
    found: Found | None = field(default=None, metadata=INNER)
    references: References | None = field(default=None, metadata=INNER)
    front: Sequence[OnFront] | None = field(default=None, metadata=KNOWN)
    chosen_by: str | None = field(default=None, metadata=KNOWN)

    @property
    def sides(self) -> dict[str, SideSummary]:
        """Baseline, what leads the search if that is neither, best and final training, as far as there are any."""
        found: dict[str, SideSummary | None] = {"final": self.final}
        if self.found:
            baseline, search = self.found.baseline, self.found.search
            is_baseline = search and baseline and search.trial == baseline.trial
            found = {"baseline": baseline, "search": None if is_baseline else search, "best": self.found.best}
        return {who: side for who, side in found.items() if side}


@once
def summary(results: Results) -> Summary:
    """Summarise a study's results: state, trials by state, baseline and best with their metrics."""
    spec, record, goal = results.spec, results.record, results.spec.objective
    trials = record.trials.values()
    baseline, leads = (_candidate(spec, one) if one else None for one in (results.baseline, results.best))
    best = _reference(results, results.unbeaten) if results.unbeaten else leads
    is_final, several = spec.final_seeds is not None, goal.several
    final = _told(spec, results.final_trials) if is_final else None
    searched = sum(candidate.trial.stage == "search" for candidate in results.candidates)
    return Summary(
        name=spec.name,
        state=record.state,
        owner=record.owner,
        metric=spec.metric,
        metrics=goal.metrics,
        epoch=epochs.words(goal),
        constraints=spec.search.constraints,
        trials=record.counts(),
        epochs=sum(trial.epochs for trial in trials),
        extended=extended(results),
        lost=sum(trial.attempt for trial in trials),
        test_readings=record.test_readings,
        failures={trial.number: trial.why for trial in trials if trial.state == "failed"},
        untested={trial.number: trial.untested for trial in trials if trial.untested},
        final=final,
        shown=_shown(results, [final] if is_final else [baseline, leads]),
        found=None
        if is_final
        else Found(
            baseline=baseline,
            search=leads if results.unbeaten else None,
            best=best,
            searched=searched,
            search_ended_by=record.enough,
        ),
        references=None if is_final else _references(results),
        front=_front(results) if several and not is_final else None,
        chosen_by=goal.rule if several and not is_final else None,
    )


def _references(results: Results) -> References | None:
    """Return what needs no search; None where nothing was fitted."""
    if not results.record.references:
        return None
    stays = results.unbeaten
    found = [Unsearched(one.name, one.label, one.metrics) for one in results.references]
    return References(found, results.failed_references, stays.name if stays else None, bool(results.above))


def _front(results: Results) -> list[OnFront]:
    names = results.spec.objective.metrics
    return [
        OnFront(
            candidate.trial.number,
            candidate.trial.params,
            dict(zip(names, score.values, strict=True)),
            score.violation,
            score is candidate.confirmed_score,
        )
        for candidate, score in results.front
    ]


def result_metrics(results: Results) -> dict[str, float]:
    """Return mean and sample standard deviation over seeds, as WHO/SPLIT/NAME and WHO/SPLIT/NAME_sd.

    For a final training every metric; for a study its own on both splits, of the baseline and the best. Where the best
    is a reference, what leads the search is `search`.
    """
    values = {
        f"{who}/{name}": value
        for who, side in summary(results).sides.items()
        for name, value in (side.metrics if who == "final" else _only_study_metrics(results.spec, side.metrics)).items()
    }
    numbers = {
        f"{name}{suffix}": one
        for name, value in values.items()
        for one, suffix in ((value.mean, ""), (value.sd, "_sd"))
    }
    return {name: float(number) for name, number in numbers.items() if number is not None}


def result_seeds(results: Results) -> dict[str, str]:
    """Return the seeds that these results rest on, as `study.WHO_seeds`; of a reference none."""
    sides = summary(results).sides.items()
    return {f"study.{who}_seeds": ", ".join(map(str, side.seeds)) for who, side in sides if not side.reference}


def _only_study_metrics(spec: StudySpec, metrics: Values) -> Values:
    return {name: metrics[name] for name in _study_metrics(spec) if name in metrics}


def _study_metrics(spec: StudySpec) -> list[str]:
    """Return the metrics that the study is about, on the test and the validation split."""
    return [f"{split}/{name.split('/')[1]}" for name in spec.objective.needed for split in ("test", "val")]


def _shown(results: Results, sides: Iterable[SideSummary | None]) -> list[str]:
    """Return the metrics for people: the study's own, and the leading ones that each side has."""
    of_each = [side.metrics for side in sides if side]
    known = [name for name in of_each[0] if all(name in metrics for metrics in of_each)] if of_each else []
    beside = leading(results.spec.objective.needed, known, results.record.groups.cells)
    return list(dict.fromkeys([*_study_metrics(results.spec), *beside]))


def lines(told: Summary) -> list[str]:
    """Return a summary for a terminal: baseline against best, validation and test, with spread and seeds."""
    counts = ", ".join(f"{count} {state}" for state, count in told.trials.items() if count)
    whose = f", of {told.owner}" if told.owner else ""
    texts = [f"study {told.name}{whose}: {told.state} ({counts or 'no trial yet'})"]
    leading = "search" if told.references and told.references.is_surpassed else "best"
    rows = [(leading if who == "best" and not side.reference else who, side) for who, side in told.sides.items()]
    rows = rows[:1] if len(rows) > 1 and rows[0][1].trial == rows[1][1].trial else rows
    if told.final or rows:
        texts += _rows(rows, dict.fromkeys(told.shown)) + _what_is_meant(rows) + _epochs(told)
    leads = (told.found.search or told.found.best) if told.found else None
    if leads is None or told.found is None:
        return texts
    if told.extended:
        texts.append(sentence(told.extended))
    if told.constraints and leads.violation:
        what = "first" if leading == "search" else "best"
        texts.append(
            f"no configuration keeps {', '.join(told.constraints)}; the {what} misses by {leads.violation:.4g}"
        )
    texts += _front_lines(told)
    params = ", ".join(f"{key} = {parameter(value)}" for key, value in (leads.params or {}).items())
    rule = f", {told.chosen_by}" if len(told.front or ()) > 1 else ""
    texts.append(f"{leading}{rule}: trial {leads.trial}{f', {params}' if params else ''}")
    texts += _reference_lines(told.references, told.metrics) if told.references else []
    for why in dict.fromkeys(told.untested.values()):
        numbers = [str(number) for number, other in told.untested.items() if other == why]
        texts.append(f"test split not read for trial{'s' * (len(numbers) > 1)} {', '.join(numbers)}: {why}")
    if told.found.searched and told.found.baseline and leads.trial == told.found.baseline.trial:
        texts.append("The search gained nothing over the baseline.")
    return texts


def _reference_lines(told: References, own: Sequence[str]) -> list[str]:
    """Return what needs no search, by the study's own metrics, and whether that is the result."""
    lines = ["without a search:"] if told.references else []
    on_test = [f"test/{name.split('/')[1]}" for name in own]
    shown = dict.fromkeys([*own, *on_test, *(name.replace("log_loss", "accuracy") for name in on_test)])
    for one in told.references:
        metrics = {name: one.metrics.get(name) for name in shown}
        values = [f"{name} {printed(name, value)}" for name, value in metrics.items() if value is not None]
        lines.append(f"  {one.words}: {', '.join(values) or 'not judged by ' + ', '.join(own)}")
    lines += [f"  {name} could not be fitted: {why}" for name, why in told.references_failed.items()]
    words = next((one.words for one in told.references if one.name == told.result), None)
    return [*lines, f"best: {words}, which needs no search"] if words else lines


def _front_lines(told: Summary) -> list[str]:
    """Return what is on the front, where that is more than one configuration that keeps the constraints."""
    front, baseline = told.front or (), told.sides.get("baseline")
    if len(front) < 2 or front[0].violation:
        return []
    where = "on fresh seeds" if front[0].fresh else "in the search"
    lines = [f"no configuration is best in every metric; the front, {where}:"]
    for each in front:
        values = ", ".join(f"{name} {printed(name, value)}" for name, value in each.values.items())
        is_baseline = baseline and each.trial == baseline.trial
        lines.append(f"  {'the baseline' if is_baseline else f'trial {each.trial}'}: {values}")
    return lines


def _rows(rows: Iterable[tuple[str, SideSummary]], metrics: Collection[str]) -> list[str]:
    lines = []
    for who, side in rows:
        lines += _values(who, side, side.metrics, metrics)
        for which, values in side.beside.items():
            lines += [f"{line}, {which}" for line in _values(who, side, values, metrics)]
    return lines


def _values(who: str, side: SideSummary, values: Values, metrics: Collection[str]) -> list[str]:
    lines, wide = [], max([26, *map(len, metrics)])
    folds = f"{len(side.folds)} folds, " if side.folds and len(side.folds) > 1 else ""
    for metric in metrics:
        if value := values.get(metric):
            seeds = "no seed" if side.reference else counted(value.n, "seed")
            split = f", 95%: {printed_range(metric, *value.interval)}" if value.interval else ""
            lines.append(f"{who:<9} {metric:<{wide}} {printed(metric, value.mean, value.sd)} ({folds}{seeds}){split}")
    return lines


def _what_is_meant(rows: Sequence[tuple[str, SideSummary]]) -> list[str]:
    """Return what the intervals of such rows are of, where there are some."""
    if not any(value.interval for _, side in rows for value in side.metrics.values()):
        return []
    if any(side.folds for _, side in rows):
        return ["±: over folds and seeds; 95%: of val over samples drawn anew, of test with its samples' own error"]
    return ["±: over seeds; 95%: with the error of the split's own samples, which seeds share"]


def _epochs(told: Summary) -> list[str]:
    """Return which epochs were chosen, where they are not all the last."""
    if told.epoch == epochs.LAST or not any(side.epochs for side in told.sides.values()):
        return []
    chosen = "; ".join(f"{who} epoch {', '.join(map(str, side.epochs))}" for who, side in told.sides.items())
    return [f"values are those {told.epoch}: {chosen}"]


def _candidate(spec: StudySpec, candidate: Candidate) -> SideSummary:
    violation = (candidate.confirmed_score or candidate.score).violation
    told = _told(spec, candidate.repeats or candidate.replicates, candidate.joined)
    of_trial = candidate.trial
    return replace(
        told, trial=of_trial.number, params=of_trial.params, search_value=candidate.value, violation=violation
    )


def _reference(results: Results, stays: Reference) -> SideSummary:
    side = side_of(results.spec, stays)
    violation = stays.score.violation if stays.score else None
    return replace(_told(results.spec, side.trials, side.joined), reference=stays.name, params={}, violation=violation)


def _told(spec: StudySpec, trials: Sequence[TrialRecord], joined: Joined | None = None) -> SideSummary:
    return SideSummary(
        seeds=[trial.seed for trial in trials],
        folds=sorted({trial.fold for trial in trials if trial.fold is not None}) or None,
        epochs=[epochs.values(spec.objective, trial)["epoch"] for trial in trials],
        metrics=_each(spreads(spec.objective, trials, joined)),
        beside={which: _each(of) for which, of in beside(spec, trials).items()},
    )


def _each(of: Mapping[str, SeedStatistics]) -> Values:
    return {name: Value.of(one) for name, one in of.items()}
