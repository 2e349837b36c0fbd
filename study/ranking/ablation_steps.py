"""The way from the baseline to the best configuration, one knob at a time: its configurations and their trials.

A step is a knob, or several that can only move together, which gets the best's value instead of the baseline's. The
configurations are the baseline and the best; the baseline with each step alone (adding); the best without each step
(removing); and those on the path that takes the steps in order. All run on the same seeds, which had no part in the
choice of the best. Their trials are a stage of their own, `ablation`, which no ranking looks at; confirm and rule
trials of the same configuration and seed count and do not run again.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from study.errors import UserError, nearest
from study.home.events import ENDED, Ablating
from study.home.record import StudyRecord, TrialRecord
from study.knobs import Params, Scalar
from study.ranking import Candidate, Results
from study.spec import StudySpec
from study.spec.schema import among, same
from study.spec.search_checks import trial_faults
from study.spec.section_checks import fault

Step = tuple[str, ...]
Steps = Sequence[Step]
Moved = frozenset[int]
"""A configuration of an ablation: the places of the steps that have the best's values, the others the baseline's."""


@dataclass(frozen=True)
class Merge:
    """Knobs that move in one step, and why."""

    keys: Step
    reason: str


def value(spec: StudySpec, params: Params, key: str) -> Scalar:
    """Return what a configuration has for a key, its own or the study file's; None for a key that it has not."""
    if key in params:
        return params[key]
    section, _, name = key.partition(".")
    if name != "name":
        found = spec.sections.form(section, params).get(name)
        return found if isinstance(found, Scalar) else None
    own = str(spec.base[section].get("name"))  # that of an alternative too, perhaps of other values
    return own if spec.sections.form(section, {key: own}) == spec.sections.form(section, {}) else None


def differing(spec: StudySpec, start: Params, end: Params) -> list[str]:
    """Return the knobs in which two configurations differ, in the order of the study file."""
    keys = dict.fromkeys([*spec.search.space, *start, *end])
    ends = {key: (value(spec, start, key), value(spec, end, key)) for key in keys if key in start or key in end}
    return [key for key, (one, other) in ends.items() if not among(one, [other])]


def mixed(spec: StudySpec, start: Params, end: Params, steps: Steps) -> dict[str, Scalar]:
    """Return the start's parameters with the end's values for the keys of these steps.

    A key is left out where the side that it is taken from does not have it.
    """
    moved = {key for step in steps for key in step}
    keys = dict.fromkeys([*spec.search.space, *start, *end])
    values = {key: value(spec, end if key in moved else start, key) for key in keys if key in start or key in end}
    return {key: each for key, each in values.items() if each is not None}


def refusal(spec: StudySpec, params: Params) -> str | None:
    """Return why the study could not train this configuration; None: it can."""
    for key, given in params.items():
        section, _, name = key.partition(".")
        knob = spec.sections.knobs(section, params).get(name)
        if name != "name" and (knob is None or not spec.sections.has(key, params)):
            return f"there is no {key}"
        if knob is not None and name != "name" and (why := fault(knob, given)):
            return f"{key}: {why}"
    document = spec.trial_document(params)
    if document["data"] not in spec.data_sections:
        return "the study has not loaded its data"
    for (section, name), why in trial_faults(document, spec.describe(document["data"])):
        return f"{section}.{name}: {why}"
    return None


def plan(
    spec: StudySpec, start: Params, end: Params, order: Sequence[str], alone: Sequence[str] = ()
) -> tuple[list[Step], list[Merge]]:
    """Plan the steps between two configurations, so that every configuration that an ablation needs can be trained.

    A knob that one of the two does not have, or has only where another knob has a certain value, moves together with
    the knob that decides on it. Where the study refuses a configuration all the same, those two steps are joined that
    leave the fewest refused.

    Args:
        order: knobs, in the order in which their steps are taken; those that are not in it come last.
        alone: the knobs that are measured; all others move together, in the last step. Without any, all are.

    Returns:
        The steps, and those that have several knobs although nobody asked for it.

    Raises:
        UserError: one of the two is refused itself, as the study was made with another version of a method.
    """
    knobs = differing(spec, start, end)
    steps: list[Step] = [(knob,) for knob in knobs]
    reasons: dict[str, str] = {}
    for knob in knobs:
        for decider in _deciders(spec, start, end, knob, knobs):
            steps = _joined(steps, knob, decider)
            reasons[knob] = f"{knob} depends on {decider}"
    steps = _ordered(steps, order)
    rest = tuple(key for step in steps if alone and not set(step) & set(alone) for key in step)
    if rest:
        steps = [*(step for step in steps if set(step) & set(alone)), rest]
    while refused := _refused(spec, start, end, steps):
        if len(steps) == 1:
            raise UserError(f"{spec.name}: its own configurations are refused: {refused[0]}")
        pairs = [_joined(steps, one[0], other[0]) for one, other in combinations(steps, 2)]
        best = min(pairs, key=lambda joined: len(_refused(spec, start, end, joined)))
        (new,) = (step for step in best if step not in steps)
        reasons[new[0]] = f"the study refuses {refused[0]}"
        steps = best
    merges = [step for step in steps if len(step) > 1 and step != rest]
    return steps, [Merge(step, "; ".join(reasons[key] for key in step if key in reasons)) for step in merges]


def path(count: int) -> list[Moved]:
    """Return the configurations from the baseline to the best, a step at a time."""
    return [frozenset(range(taken)) for taken in range(count + 1)]


def adding(count: int) -> list[Moved]:
    """Return the baseline with each step alone."""
    return [frozenset({place}) for place in range(count)]


def removing(count: int) -> list[Moved]:
    """Return the best without each step."""
    return [path(count)[-1] - {place} for place in range(count)]


def configurations(count: int) -> list[Moved]:
    """Return each that an ablation of so many steps needs, once: 2 for one step, 4 for two, `3k - 1` for more."""
    return list(dict.fromkeys([*path(count), *adding(count), *removing(count)]))


def check_knobs(name: str, option: str, given: Sequence[str], knobs: Sequence[str]) -> None:
    """Refuse keys that are not among the knobs.

    Raises:
        UserError: says which are.
    """
    for key in given:
        if key not in knobs:
            raise UserError(
                f"{option} {key}: baseline and best of {name} do not differ in it. {nearest(key, list(knobs))}"
                f"They differ in {', '.join(knobs)}"
            )


def _deciders(spec: StudySpec, start: Params, end: Params, knob: str, knobs: Sequence[str]) -> list[str]:
    """Return the other knobs that decide whether one of the two configurations has this one."""
    section, domain = knob.split(".")[0], spec.search.space.get(knob)
    deciders: dict[str, None] = {}
    for params in (start, end):
        values = {**params, **{key: each for key in knobs if (each := value(spec, params, key)) is not None}}
        is_there = value(spec, params, knob) is not None
        if domain is not None and not domain.applies(values):
            deciders |= dict.fromkeys(domain.when)
        if not is_there:
            words = (key for key in values if key.split(".")[0] == section and isinstance(values[key], str))
            deciders |= dict.fromkeys([f"{section}.name", *words])
    return [key for key in deciders if key in knobs and key != knob]


def _joined(steps: Sequence[Step], one: str, other: str) -> list[Step]:
    """Join the steps of two knobs, where the first of the two steps stands."""
    both = [step for step in steps if one in step or other in step]
    joined = tuple(key for step in both for key in step)
    return [joined if step is both[0] else step for step in steps if step is both[0] or step not in both]


def _ordered(steps: Sequence[Step], order: Sequence[str]) -> list[Step]:
    """Order the steps by their first knob in `order`; those without one come last, as they stand."""
    place = {key: at for at, key in reversed(list(enumerate(order)))}
    return sorted(steps, key=lambda step: min((place[key] for key in step if key in place), default=len(order)))


def _refused(spec: StudySpec, start: Params, end: Params, steps: Steps) -> list[str]:
    """Return the configurations that the study refuses, each with the reason."""
    found = []
    for moved in configurations(len(steps)):
        taken = [steps[place] for place in sorted(moved)]
        if why := refusal(spec, mixed(spec, start, end, taken)):
            keys = " and ".join(key for step in taken for key in step)
            found.append(f"the baseline with {keys} of the best ({why})" if keys else f"the baseline ({why})")
    return found


SEEDS = 5
"""Number of an ablation's seeds where neither the user nor the study's confirmation says how many."""


@dataclass(frozen=True)
class Ablation:
    """The configurations that an ablation compares.

    Attributes:
        reference, best: the trials whose configurations it begins and ends with.
        steps: the keys of each step, in the order of the path.
        seeds: the training seeds of every configuration.
    """

    reference: TrialRecord
    best: TrialRecord
    steps: Steps
    seeds: Sequence[int]

    @property
    def configurations(self) -> list[Moved]:
        """Configurations that run on each seed."""
        return configurations(len(self.steps))

    def params(self, spec: StudySpec, moved: Moved) -> Params:
        """Return the parameters of a configuration."""
        if repeated := self.repeated(moved):
            return repeated.params
        return mixed(spec, self.reference.params, self.best.params, [self.steps[place] for place in sorted(moved)])

    def repeated(self, moved: Moved) -> TrialRecord | None:
        """Return the trial of the baseline or the best if the configuration is one of these two, else None."""
        return {0: self.reference, len(self.steps): self.best}.get(len(moved))


def asked(record: StudyRecord) -> Ablation | None:
    """Return the ablation that was asked for last; None without one."""
    reference = next(record.by_stage("baseline"), None)
    told = record.ablating
    if told is None or reference is None:
        return None
    return Ablation(reference, record.trials[told.trial], told.steps, range(told.first, told.first + told.seeds))


def seeds_for(results: Results, best: Candidate, count: int | None) -> range:
    """Return the seeds of an ablation: none of those that the best was chosen by, as it was lucky on these.

    Where several configurations were confirmed, these are the seeds behind those of the confirmation; else its own
    seeds, whose trials of baseline and best then count. An ablation of the same configuration keeps its seeds, and gets
    more of them.
    """
    confirm_seeds, before = results.confirm_seeds, results.record.ablating
    if before is not None and before.trial == best.trial.number:
        return range(before.first, before.first + max(before.seeds, count or 0))
    first = confirm_seeds.stop if is_chosen_by(results, confirm_seeds) else confirm_seeds.start
    return range(first, first + (count or len(confirm_seeds) or SEEDS))


def is_chosen_by(results: Results, seeds: Collection[int]) -> bool:
    """Return whether some of these seeds chose the best.

    They did where several configurations of the search were confirmed on some of them.
    """
    confirmed = (candidate.repeats for candidate in results.searched)
    return sum(any(trial.seed in seeds for trial in repeats) for repeats in confirmed) > 1


def runs(results: Results, ablation: Ablation) -> dict[Moved, dict[int, TrialRecord]]:
    """Return the trials on fresh seeds of each configuration, whatever they ran for.

    One per seed, a complete one if any.
    """
    fresh = [trial for trial in results.record.by_stage("confirm", "rule", "ablation") if trial.seed in ablation.seeds]
    fresh.sort(key=lambda trial: (trial.state == "complete", -trial.number))
    found = {}
    for moved in ablation.configurations:
        params = ablation.params(results.spec, moved)
        found[moved] = {trial.seed: trial for trial in fresh if same(trial.params, params)}
    return found


def missing(results: Results, ablation: Ablation | None) -> Iterator[tuple[Moved, int]]:
    """Yield the configurations and seeds of an ablation that have no trial yet."""
    if ablation is not None:
        by_configuration = runs(results, ablation)
        for moved, by_seed in by_configuration.items():
            yield from ((moved, seed) for seed in ablation.seeds if seed not in by_seed)


def to_test(results: Results) -> list[TrialRecord]:
    """Return the complete trials of the ablation that was asked for: test is read for each of them."""
    ablation = asked(results.record)
    return [trial for trial in _trials(results, ablation) if trial.state == "complete"] if ablation else []


def _trials(results: Results, ablation: Ablation) -> list[TrialRecord]:
    return [trial for by_seed in runs(results, ablation).values() for trial in by_seed.values()]


def is_measured(results: Results) -> bool:
    """Return whether all that was asked for has run, and test was read for it as far as that could be."""
    ablation = asked(results.record)
    if ablation is None or next(missing(results, ablation), None):
        return False
    ended = (trial.state in ENDED for trial in _trials(results, ablation))
    return all(ended) and all(trial.tested or trial.untested for trial in to_test(results))


@dataclass(frozen=True)
class Progress:
    """How far an ablation is.

    Attributes:
        baseline, best: the trials that it leads from and to.
        trials, complete: of all its configurations; `is_measured`: and test was read.
    """

    baseline: int
    best: int
    steps: Steps
    seeds: Sequence[int]
    trials: int
    complete: int
    is_measured: bool


def progress(results: Results) -> Progress | None:
    """Return how far the ablation that was asked for is; None without one."""
    ablation = asked(results.record)
    if ablation is None:
        return None
    return Progress(
        ablation.reference.number,
        ablation.best.number,
        ablation.steps,
        list(ablation.seeds),
        len(ablation.configurations) * len(ablation.seeds),
        len(to_test(results)),
        is_measured(results),
    )


def as_event(ablation: Ablation) -> Ablating:
    """Convert an ablation to its event in the ledger."""
    steps = tuple(tuple(step) for step in ablation.steps)
    return Ablating(ablation.best.number, steps, ablation.seeds[0], len(ablation.seeds))
