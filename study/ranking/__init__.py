"""The best configuration of a study: one rule, used by driver, export, summary and report alike.

A configuration's value is the study's metric at the last epoch, or at the best where `search.epoch` says so
(`study.ranking.epochs`), the mean over its replicates where it has some. Only complete trials count. Once the best
configurations are all confirmed on fresh seeds, the mean over these seeds decides, so that a lucky seed does not win;
before that, the value in the search. Several metrics and constraints are ordered as in
`study.spec.objective.Objective.order`: front by front, so that the best is on the front (`front`), and there by
`search.choose`. Ties go to the earlier trial. Only validation metrics are used.

With `search.margin` an incumbent (`StudySpec.incumbents`) leads until another configuration is better than the best of
them by more than so many standard errors of their difference (`standing`). The configurations were searched on the very
samples that judge them, and of many tried the luckiest leads: this is a rule of decision, and no test. What needs no
search (`study.ranking.references`) joins the incumbents under the same margin: where one of these stays, that is the
study's result (`unbeaten`), and the ranking here is that of configurations alone.

Trials of different numbers of epochs are not compared. Once all that were extended (`study extend`) have ended, those
of that many epochs come first and are ordered as above; the others follow, by what they were worth when they ended.
Until then all count as they had ended before.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial, wraps
from typing import Any, Generic, TypeVar, cast

from study.home.events import ENDED, Stage
from study.home.record import StudyRecord, TrialRecord
from study.metrics import is_standard_error
from study.metrics.rules import RULES
from study.metrics.worst_group import wilson
from study.ranking import epochs
from study.ranking.references import Reference, best_reference, references
from study.spec import StudySpec, objective
from study.spec.objective import Objective, Score
from study.spec.schema import Confirm, same

MANY = 1e6
"""Degrees of freedom from which on Student's t is the normal one."""


@dataclass(frozen=True)
class Spread:
    """Mean, sample standard deviation (None for fewer than two values) and count.

    Attributes:
        split_error: the standard error of the mean because its split is a sample, whatever the seeds do; None: not
            known.
    """

    mean: float
    deviation: float | None
    count: int
    split_error: float | None = None

    def to_document(self) -> dict[str, Any]:
        """As plain values: mean, sd, n."""
        return {"mean": self.mean, "sd": self.deviation, "n": self.count}

    def interval(self, confidence: float = 0.95) -> tuple[float, float] | None:
        """Return where an accuracy lies, by the spread over seeds and the split's error; of one seed by the latter
        alone.

        Seeds share their split, so that its error stays whatever their number. The two variances are added, with
        Satterthwaite's degrees of freedom. Wilson's interval, of as many samples as would give that variance, stays
        within 0 and 1 (as Korn and Graubard's for surveys). None where the split's error is not known.
        """
        if self.split_error is None or self.split_error <= 0:
            return None
        from scipy.special import stdtrit  # here: most of what asks for a spread needs no interval

        of_seeds = self.deviation**2 / self.count if self.deviation is not None else 0.0
        variance = of_seeds + self.split_error**2
        freedom = (self.count - 1) * (variance / of_seeds) ** 2 if of_seeds else math.inf
        reach = float(stdtrit(min(freedom, MANY), (1 + confidence) / 2))
        least = min(self.split_error / math.sqrt(2), 0.5)  # of none right: half a sample, as its error was taken
        share = min(max(self.mean, least), 1 - least)
        return wilson(self.mean, share * (1 - share) / variance, reach)


@dataclass(frozen=True)
class Candidate:
    """A configuration with complete trials.

    Attributes:
        trial: the baseline, search or final trial.
        value: its metric, the first of several; the mean over `replicates`.
        score: all its metrics, and by how much it misses the constraints.
        replicates: the trial itself and those on further seeds that the search saw.
        repeats: its complete confirm trials.
        confirmed: the metric over the repeats, None without any.
        confirmed_score: the score of the repeats' means.
        epochs: how many its trials ran.
    """

    trial: TrialRecord
    value: float
    score: Score
    replicates: list[TrialRecord] = field(default_factory=list)
    repeats: list[TrialRecord] = field(default_factory=list)
    confirmed: Spread | None = None
    confirmed_score: Score | None = None
    epochs: int = 0


@dataclass(frozen=True)
class Lead:
    """A configuration ahead of the best incumbent.

    Attributes:
        gain: by how much it is better in the study's metric, above 0.
        error: the standard error of that difference, see `standing`; None: not known.
        of_split: whether the error is also that of the split's samples, not of the seeds alone.
    """

    candidate: Candidate
    gain: float
    error: float | None
    of_split: bool

    def clears(self, margin: float) -> bool:
        """Return whether it is ahead by more than so many standard errors; where these are not known, it is."""
        return self.error is None or self.gain > margin * self.error


Incumbent = TypeVar("Incumbent", bound=Candidate | Reference)


@dataclass(frozen=True)
class Standing(Generic[Incumbent]):
    """The best incumbent, and those ahead of it, the best first: `chosen` is the first that clears the margin."""

    incumbent: Incumbent
    ahead: Sequence[Lead]
    margin: float

    @property
    def chosen(self) -> Candidate | Incumbent:
        """The best of the study."""
        return next((lead.candidate for lead in self.ahead if lead.clears(self.margin)), self.incumbent)

    @property
    def passed_over(self) -> Lead | None:
        """The first, where the margin keeps it from being chosen."""
        return self.ahead[0] if self.ahead and not self.ahead[0].clears(self.margin) else None


AnyStanding = Standing[Candidate | Reference]

T = TypeVar("T")


NOISE = 1e-6
"""Of a metric's size: numbers that differ by less are equal but for the rounding of 32-bit floats."""


def spread(values: Iterable[float | None]) -> Spread | None:
    """Mean, sample standard deviation and count of the values that are not None; None without any.

    The deviation is 0 where it is the noise of rounding (`NOISE`).
    """
    numbers = [value for value in values if value is not None]
    if not numbers:
        return None
    deviation = statistics.stdev(numbers) if len(numbers) > 1 else None
    is_noise = deviation is not None and deviation <= NOISE * max(map(abs, numbers))
    return Spread(statistics.fmean(numbers), 0.0 if is_noise else deviation, len(numbers))


def spreads(goal: Objective, trials: Sequence[TrialRecord]) -> dict[str, Spread]:
    """Every validation metric, each trial at its epoch by this objective, and every test metric that was read, over
    trials of several seeds.

    Standard errors stand in the spreads of what they are of, as the mean over the trials.
    """
    by_name = {}
    names = {name for trial in trials for name in trial.reports[-1] if name.startswith("val/")}
    for name in sorted(name for name in names if not is_standard_error(name)):
        by_name[name] = _with_error(trials, name, partial(epochs.value, goal))
    for name in sorted({name for trial in trials for name in trial.tested if not is_standard_error(name)}):
        by_name[name] = _with_error(trials, name, _tested)
    return {name: value for name, value in by_name.items() if value}


def _with_error(
    trials: Sequence[TrialRecord], name: str, value: Callable[[TrialRecord, str], float | None]
) -> Spread | None:
    found, error = (spread(value(trial, each) for trial in trials) for each in (name, f"{name}_standard_error"))
    return replace(found, split_error=error.mean) if found and error else found


def _tested(trial: TrialRecord, name: str) -> float | None:
    return trial.tested.get(name)


_ONCE: ContextVar[dict[object, tuple[object, Any]] | None] = ContextVar("ranked_once", default=None)
"""What was computed of each record, by its id, and with it, so that its id is not another's; None: nothing is kept."""


@contextmanager
def ranked_once(record: StudyRecord) -> Iterator[None]:
    """Within this block the record must not change and is ranked only once: a report asks for it dozens of times. The
    same holds for what `as_searched` makes of it."""
    token = _ONCE.set({})
    try:
        yield
    finally:
        _ONCE.reset(token)


def cached_in_record(compute: Callable[[StudyRecord, StudySpec], T]) -> Callable[[StudyRecord, StudySpec], T]:
    """Compute it once within `ranked_once`; the result is nobody's to change."""

    @wraps(compute)
    def cached(record: StudyRecord, spec: StudySpec) -> T:
        known = _ONCE.get()
        if known is None:
            return compute(record, spec)
        key = compute.__name__, id(record), id(spec)
        if key not in known:
            known[key] = (record, spec), compute(record, spec)
        found: T = known[key][1]
        return found

    return cached


@cached_in_record
def candidates(record: StudyRecord, spec: StudySpec) -> list[Candidate]:
    """The search's complete trials that are compared, the best first: the confirmed ones by their means, then the
    others."""
    return [candidate for candidate in comparable(record, spec) if candidate.trial.stage == "search"]


@cached_in_record
def searched(record: StudyRecord, spec: StudySpec) -> list[Candidate]:
    """The search's complete trials that are compared, by the value of the search alone, the best first."""
    found = _compared(_complete(record, spec, "search"), compared_at(record, spec))
    return _sorted(spec, found, [candidate.score for candidate in found])


@cached_in_record
def ranked(record: StudyRecord, spec: StudySpec) -> list[Candidate]:
    """Every complete configuration, the baseline too, the best first: it leads if the search gained nothing, an
    incumbent as long as the margin keeps it. Those that are not compared with the best come last."""
    in_order = _by_value(record, spec)
    held = _with_references(record, spec)
    chosen = held.chosen if held else None
    if not isinstance(chosen, Candidate):  # by configurations alone
        alone = standing(record, spec)
        if alone is None:
            return in_order
        chosen = alone.chosen
    number = chosen.trial.number
    return sorted(in_order, key=lambda candidate: candidate.trial.number != number)


@cached_in_record
def _by_value(record: StudyRecord, spec: StudySpec) -> list[Candidate]:
    confirmed, most = is_confirmed(record, spec), compared_at(record, spec)
    complete = _complete(record, spec, "baseline", "search")
    alike, apart = _compared(complete, most), _compared(complete, most, are=False)
    first = [candidate for candidate in alike if confirmed and candidate.confirmed_score]
    others = [candidate for candidate in alike if candidate not in first]
    means = [candidate.confirmed_score for candidate in first if candidate.confirmed_score]
    in_order = _sorted(spec, first, means) + _sorted(spec, others, [candidate.score for candidate in others])
    return in_order + _sorted(spec, apart, [candidate.score for candidate in apart])


@cached_in_record
def standing(record: StudyRecord, spec: StudySpec) -> Standing[Candidate] | None:
    """The incumbent that has to be beaten, and who is ahead of it: of those that are compared, by what they are judged
    by. None without a margin, or where no incumbent is complete and keeps the constraints as well as what leads.

    The standard error of a difference has two parts. That of the validation samples does not shrink with seeds: it is
    what each trial reported beside its metric (binomial in each cell, `study.training.standard_errors`), the mean over
    its seeds, of the two as if they were judged by different samples. As both are judged by the same, that is too large
    rather than too small. That of the seeds is of the paired differences where two seeds are shared, else of each mean;
    one seed has none.
    """
    return cast(Standing[Candidate] | None, _standing(record, spec, None))


@cached_in_record
def _with_references(record: StudyRecord, spec: StudySpec) -> AnyStanding | None:
    """The same with the best reference among the incumbents, also without any other; of several metrics one that is
    better than what `search.choose` chose in every one. None: no reference has the metrics."""
    reference = best_reference(record, spec)
    if reference is None or not spec.objective.several:
        return None if reference is None else _standing(record, spec, reference)
    confirmed = is_confirmed(record, spec)
    first = next(iter(_compared(_by_value(record, spec), compared_at(record, spec))), None)
    score = first and (first.confirmed_score if confirmed else first.score)
    is_better = bool(score and reference.score and reference.score.dominates(score))
    return AnyStanding(reference, (), spec.search.margin) if is_better else None


def unbeaten(record: StudyRecord, spec: StudySpec) -> Reference | None:
    """The reference that is the study's result, as no configuration is better by more than the margin."""
    held = _with_references(record, spec)
    return held.chosen if held and isinstance(held.chosen, Reference) else None


@cached_in_record
def above(record: StudyRecord, spec: StudySpec) -> list[Reference]:
    """The references above the configuration that leads, which is not the best then: the one that is the study's
    result, and those that are better than it."""
    won, stays = best(record, spec), unbeaten(record, spec)
    score = won and (won.confirmed_score if is_confirmed(record, spec) else won.score)
    found = [one for one in references(record, spec) if score and one.score and _is_above(one.score, score)]
    return [*([stays] if stays else []), *(one for one in found if one != stays)]


def _is_above(one: Score, other: Score) -> bool:
    if one.single:
        return (one.violation, -one.gains[0]) < (other.violation, -other.gains[0])
    return one.dominates(other)


def ahead_of(record: StudyRecord, spec: StudySpec) -> AnyStanding | None:
    """The best reference, and which configurations are ahead of it; None of several metrics, and where a configuration
    that is an incumbent itself leads."""
    held = _with_references(record, spec)
    return held if held and isinstance(held.incumbent, Reference) and not spec.objective.several else None


def _standing(record: StudyRecord, spec: StudySpec, reference: Reference | None) -> AnyStanding | None:
    confirmed, most = is_confirmed(record, spec), compared_at(record, spec)
    rivals: list[tuple[Candidate | Reference, Score]] = [
        (candidate, score)
        for candidate in _compared(_by_value(record, spec), most)
        if (score := candidate.confirmed_score if confirmed else candidate.score)
    ]
    if rivals and reference and (own := reference.score):
        behind = sum((score.violation, -score.gains[0]) < (own.violation, -own.gains[0]) for _, score in rivals)
        rivals.insert(behind, (reference, own))
    place = next((at for at, (one, _) in enumerate(rivals) if _is_one_of(one, spec.incumbents)), None)
    if place is None or rivals[place][1].violation > rivals[0][1].violation:
        return None
    incumbent, own = rivals[place]
    gains = [(one, score.gains[0] - own.gains[0]) for one, score in rivals[:place] if isinstance(one, Candidate)]
    ahead = [Lead(each, gain, *_error(spec, each, incumbent, confirmed)) for each, gain in gains if gain > 0]
    return AnyStanding(incumbent, ahead, spec.search.margin)


def _is_one_of(candidate: Candidate | Reference, configurations: Iterable[Mapping[str, Any]]) -> bool:
    return isinstance(candidate, Reference) or any(same(candidate.trial.params, params) for params in configurations)


def _error(spec: StudySpec, one: Candidate, other: Candidate | Reference, confirmed: bool) -> tuple[float | None, bool]:
    """The standard error of the difference of two in the study's metric, None where nothing is known of it, and whether
    that of the split's samples is in it. A reference has no seeds."""
    value = partial(epochs.value, spec.objective)
    sides = [side.repeats if confirmed else side.replicates for side in (one, other) if isinstance(side, Candidate)]
    means = [found for trials in sides if (found := _with_error(trials, spec.metric, value))]
    if isinstance(other, Reference):
        known = other.metrics.get(f"{spec.metric}_standard_error")
        means.append(Spread(other.metrics[spec.metric] or 0.0, None, 1, known))
    of_split = [mean.split_error for mean in means if mean.split_error is not None]
    by_trial = ({trial.seed: value(trial, spec.metric) or 0.0 for trial in trials} for trials in sides)
    first, second = [*by_trial, dict[int, float]()][:2]
    paired = spread(first[seed] - second[seed] for seed in first if seed in second)
    by_seed = [paired] if paired and paired.deviation is not None else means
    of_seeds = [each.deviation / math.sqrt(each.count) for each in by_seed if each.deviation is not None]
    return (math.hypot(*of_split, *of_seeds) if of_split or of_seeds else None), len(of_split) == len(means)


def comparable(record: StudyRecord, spec: StudySpec) -> list[Candidate]:
    """Those of `ranked` that are compared with one another."""
    return _compared(ranked(record, spec), compared_at(record, spec))


def compared_at(record: StudyRecord, spec: StudySpec) -> int:
    """Return how many epochs the trials ran that are compared: the study's, or those of the last extension that is over
    and left a complete trial of the search."""
    for extension in reversed(record.lengthened):
        last = extension.epochs
        ends = [end for number in extension.trials if (end := _version(record.trials[number], last, spec))]
        searched = [end for end in ends if end.stage == "search"] or ends
        if all(end.state in ENDED for end in ends) and any(end.state == "complete" for end in searched):
            return last
    return spec.epochs


def judged(record: StudyRecord, spec: StudySpec) -> list[tuple[Candidate, Score]]:
    """The configurations that the best is chosen from, with what each is judged by, the best first: once all that were
    to run on fresh seeds did so, those alone, by their means over these seeds; before, all, by the search's."""
    alike = comparable(record, spec)
    fresh = is_confirmed(record, spec)
    means = [(candidate, score) for candidate in alike if fresh and (score := candidate.confirmed_score)]
    return means or [(candidate, candidate.score) for candidate in alike]


def front(record: StudyRecord, spec: StudySpec) -> list[tuple[Candidate, Score]]:
    """Those of `judged`, with the baseline, that no other dominates in the study's metrics, the best in the first
    metric first; the best configuration is among them. Where none keeps the constraints, what misses them by least."""
    found = judged(record, spec)
    on_front = [found[place] for place in objective.front([score for _, score in found])]
    return sorted(on_front, key=lambda pair: -pair[1].gains[0])


def tested(record: StudyRecord, spec: StudySpec) -> list[Candidate]:
    """The configurations that the test split is read for, besides the baseline: the best; of several metrics the front,
    but in studies of before the front ran again."""
    if spec.objective.several and spec.search.confirm.front is not None:
        return [candidate for candidate, _ in front(record, spec)]
    return ranked(record, spec)[:1]


def mean_score(goal: Objective, trials: Sequence[TrialRecord]) -> Score | None:
    """The score of the means over trials of each metric, each at its epoch by this objective; None if one lacks it."""
    if not all(trial.reports for trial in trials) or not trials:
        return None
    if len(trials) == 1:
        return goal.score(epochs.values(goal, trials[0]))
    means: dict[str, float | None] = {}
    for name in goal.needed:
        values = [value for trial in trials if (value := epochs.value(goal, trial, name)) is not None]
        means[name] = statistics.fmean(values) if len(values) == len(trials) else None
    return goal.score(means)


def best(record: StudyRecord, spec: StudySpec) -> Candidate | None:
    """The best configuration, None if no trial is complete."""
    return next(iter(ranked(record, spec)), None)


def baseline(record: StudyRecord, spec: StudySpec) -> Candidate | None:
    """The baseline, if it completed."""
    return next(iter(_complete(record, spec, "baseline")), None)


def confirm(record: StudyRecord, spec: StudySpec) -> Confirm:
    """The study file's `search.confirm`, or what was asked for later: all rules then, or as many as before."""
    if record.confirming is None:
        return spec.search.confirm
    top, seeds, rules = record.confirming
    return spec.search.confirm.model_copy(
        update={"top": top, "seeds": seeds, "rules": rules or spec.search.confirm.rules}
    )


def confirm_seeds(record: StudyRecord, spec: StudySpec) -> range:
    """Training seeds of the confirm and rule trials, none of which the search saw."""
    plan, first = confirm(record, spec), max(spec.seeds) + 1
    return range(first, first + (plan.seeds if plan.top or plan.rules else 0))


def unused_seed(record: StudyRecord, spec: StudySpec) -> int:
    """The smallest seed above every seed of the study, planned fresh ones included."""
    return max([confirm_seeds(record, spec).stop, *(trial.seed + 1 for trial in list(record.trials.values()))])


def to_confirm(record: StudyRecord, spec: StudySpec, top: bool = True) -> list[TrialRecord]:
    """The trials whose configurations run again on fresh seeds: the baseline and, with `top`, the search's best and the
    best incumbent; with several metrics the search's front, as far as `search.confirm.front` has it."""
    plan = confirm(record, spec)
    if plan.top == 0:
        return []
    reference = baseline(record, spec)
    in_order = searched(record, spec) if top else []
    best = _best_of_search(in_order, spec, plan)
    incumbents = [candidate for candidate in in_order if _is_one_of(candidate, spec.incumbents)][:1]
    best += [candidate for candidate in incumbents if candidate not in best]
    return [candidate.trial for candidate in ([reference] if reference else []) + best]


def _best_of_search(searched: list[Candidate], spec: StudySpec, plan: Confirm) -> list[Candidate]:
    if not spec.objective.several or plan.front is None:
        return searched[: plan.top]
    scores = [candidate.score for candidate in searched]
    on_front = len(objective.front(scores))  # they come first
    count = max(plan.top, min(plan.front, on_front))
    if on_front <= count:
        return searched[:count]
    return [searched[place] for place in objective.spread_out(scores[:on_front], count)]


def is_confirmed(record: StudyRecord, spec: StudySpec) -> bool:
    """Return whether every configuration to confirm has run on all its seeds: before that, their means are not
    comparable."""
    trials, most = to_confirm(record, spec), compared_at(record, spec)
    repeats = (_version(trial, most, spec) for trial in record.by_stage("confirm"))
    ended = [trial.repeats for trial in repeats if trial and trial.state in ENDED]
    seeds = confirm(record, spec).seeds
    return bool(trials) and all(ended.count(trial.number) >= seeds for trial in trials)


def _complete(record: StudyRecord, spec: StudySpec, *stages: Stage) -> list[Candidate]:
    """The complete configurations of these stages, by number."""
    most = compared_at(record, spec)
    return [found for trial in record.by_stage(*stages) if (found := _candidate(trial, record, spec, most))]


def _candidate(trial: TrialRecord, record: StudyRecord, spec: StudySpec, most: int) -> Candidate | None:
    """A configuration by its trials of the most epochs, of at most `most`, that are all complete."""
    complete = (version for version in trial.versions if version.state == "complete")
    found = (_of_epochs(version, record, spec) for version in complete if version.total(spec.epochs) <= most)
    return next((candidate for candidate in found if candidate), None)


def _of_epochs(trial: TrialRecord, record: StudyRecord, spec: StudySpec) -> Candidate | None:
    """A configuration by those of its trials that ran as many epochs as this one, which is complete."""
    ran = trial.total(spec.epochs)
    versions = [_version(each, ran, spec) for each in record.repeats_of(trial.number, "replicate")]
    seeds = [trial, *(each for each in versions if each)]
    needed = 1 if trial.stage == "final" else len(spec.seeds)
    score = mean_score(spec.objective, seeds)
    if score is None or len(seeds) < needed or any(each.state != "complete" for each in seeds):
        return None
    fresh = (_version(each, ran, spec) for each in record.repeats_of(trial.number))
    repeats = [each for each in fresh if each and each.state == "complete"]
    confirmed = spread(epochs.value(spec.objective, each, spec.metric) for each in repeats)
    means = mean_score(spec.objective, repeats)
    return Candidate(trial, score.values[0], score, seeds, repeats, confirmed, means, ran)


def _version(trial: TrialRecord, ran: int, spec: StudySpec) -> TrialRecord | None:
    """A trial as it was, or is, with this last epoch; None: it never had it."""
    return next((version for version in trial.versions if version.total(spec.epochs) == ran), None)


def _compared(candidates: Iterable[Candidate], ran: int, are: bool = True) -> list[Candidate]:
    """The candidates whose trials ran so many epochs, or the others."""
    return [candidate for candidate in candidates if (candidate.epochs == ran) is are]


def _sorted(spec: StudySpec, candidates: list[Candidate], scores: Sequence[Score]) -> list[Candidate]:
    return [candidates[place] for place in spec.objective.order(scores)]


# Whether a study's metric tells its trials apart: on tiny groups most of them may share one value.


FEWEST = 4
"""Complete configurations before anything is said."""


@dataclass(frozen=True)
class Tie:
    """A metric that cannot choose between most of the complete configurations.

    Attributes:
        metric: as `val/NAME`.
        value: that they share.
        sharing, complete: how many share it, of how many.
        instead: the metrics of rules that are reported and do not tie.
    """

    metric: str
    value: float
    sharing: int
    complete: int
    instead: tuple[str, ...]

    def __str__(self) -> str:
        tied = f"{self.metric} is {self.value:.4g} in {self.sharing} of {self.complete} complete configurations"
        others = f" Metrics that tell more: {', '.join(self.instead)}." if self.instead else ""
        return f"{tied}: it does not tell these apart.{others}"


def ties(record: StudyRecord, spec: StudySpec) -> list[Tie]:
    """The study's metrics of which more than half of the complete configurations, baseline and search, share a value.

    None for a final training, or as long as fewer than `FEWEST` configurations are complete.
    """
    complete = sorted(comparable(record, spec), key=lambda one: one.trial.stage == "search")
    if spec.final_seeds is not None or len(complete) < FEWEST:
        return []
    by_metric = zip(spec.objective.metrics, zip(*(one.score.values for one in complete), strict=True), strict=True)
    most = [(metric, *Counter(values).most_common(1)[0]) for metric, values in by_metric]
    tied = [(metric, value, count) for metric, value, count in most if 2 * count > len(complete)]
    instead = _apart(complete) if tied else ()
    return [Tie(metric, value, count, len(complete), instead) for metric, value, count in tied]


def _apart(complete: Sequence[Candidate]) -> tuple[str, ...]:
    """The metrics of rules, as `val/NAME`, that all of them report and at most half of them share a value of.

    Those that know most of the samples come first: `accuracy` is the last resort on a biased split.
    """
    names = dict.fromkeys(f"val/{rule.metric}" for rule in reversed(RULES) if rule.limit is None)
    values = {name: [one.trial.last(name) for one in complete] for name in names}
    return tuple(
        name
        for name, own in values.items()
        if None not in own and 2 * Counter(own).most_common(1)[0][1] <= len(complete)
    )
