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

from study.errors import UserError, did_you_mean
from study.home.events import ENDED_STATES, AblationRequested
from study.home.record import StudyRecord, TrialRecord
from study.knobs import Params, Scalar
from study.ranking import Candidate, Results
from study.spec import StudySpec
from study.spec.configuration import are_same_configuration
from study.spec.domain import is_among_typed_values
from study.spec.key_errors import fault_of_value
from study.spec.search_checks import all_trial_faults
from study.spec.stage_seeds import ablation_seeds

StepKeys = tuple[str, ...]
AblationSteps = Sequence[StepKeys]
AppliedSteps = frozenset[int]
"""A configuration of an ablation: the places of the steps that have the best's values, the others the baseline's."""


@dataclass(frozen=True)
class MergedKnobs:
    """Knobs that move in one step, and why."""

    keys: StepKeys
    reason: str


def value_in_configuration(spec: StudySpec, params: Params, key: str) -> Scalar:
    """Return what a configuration has for a key, its own or the study file's; None for a key that it has not."""
    if key in params:
        return params[key]
    section, _, name = key.partition(".")
    if name != "name":
        found = spec.sections.section_with_names_alone(section, params).get(name)
        return found if isinstance(found, Scalar) else None
    own = str(spec.base[section].get("name"))  # that of an alternative too, perhaps of other values
    given, whole = (spec.sections.section_with_names_alone(section, params) for params in ({key: own}, {}))
    return own if given == whole else None


def differing_knobs(spec: StudySpec, start: Params, end: Params) -> list[str]:
    """Return the knobs in which two configurations differ, in the order of the study file."""
    keys = dict.fromkeys([*spec.search.space, *start, *end])
    ends = {
        key: (value_in_configuration(spec, start, key), value_in_configuration(spec, end, key))
        for key in keys
        if key in start or key in end
    }
    return [key for key, (one, other) in ends.items() if not is_among_typed_values(one, [other])]


def params_after_steps(spec: StudySpec, start: Params, end: Params, steps: AblationSteps) -> dict[str, Scalar]:
    """Return the start's parameters with the end's values for the keys of these steps.

    A key is left out where the end that it is taken from does not have it.
    """
    moved = {key for step in steps for key in step}
    keys = dict.fromkeys([*spec.search.space, *start, *end])
    values = {
        key: value_in_configuration(spec, end if key in moved else start, key)
        for key in keys
        if key in start or key in end
    }
    return {key: each for key, each in values.items() if each is not None}


def why_untrainable(spec: StudySpec, params: Params) -> str | None:
    """Return why the study could not train this configuration; None: it can."""
    for key, given in params.items():
        section, _, name = key.partition(".")
        knob = spec.sections.knobs_of_form(section, params).get(name)
        if name != "name" and (knob is None or not spec.sections.has_key(key, params)):
            return f"there is no {key}"
        if knob is not None and name != "name" and (why := fault_of_value(knob, given)):
            return f"{key}: {why}"
    document = spec.trial_document(params)
    if document["data"] not in spec.trial_data_sections:
        return "the study has not loaded its data"
    for (section, name), why in all_trial_faults(document, spec.facts_of_data(document["data"])):
        return f"{section}.{name}: {why}"
    return None


def plan_steps(
    spec: StudySpec, start: Params, end: Params, order: Sequence[str], separate_knobs: Sequence[str] = ()
) -> tuple[list[StepKeys], list[MergedKnobs]]:
    """Plan the steps between two configurations, so that every configuration that an ablation needs can be trained.

    A knob that one of the two does not have, or has only where another knob has a certain value, moves together with
    the knob that decides on it. Where the study refuses a configuration all the same, those two steps are joined that
    leave the fewest refused.

    Args:
        order: knobs, in the order in which their steps are taken; those that are not in it come last.
        separate_knobs: the knobs that are measured; all others move together, in the last step. Without any, all are.

    Returns:
        The steps, and those that have several knobs although nobody asked for it.

    Raises:
        UserError: one of the two is refused itself, as the study was made with another version of a method.
    """
    knobs = differing_knobs(spec, start, end)
    steps: list[StepKeys] = [(knob,) for knob in knobs]
    reasons: dict[str, str] = {}
    for knob in knobs:
        for decider in _knobs_that_decide_presence(spec, start, end, knob, knobs):
            steps = _merge_steps(steps, knob, decider)
            reasons[knob] = f"{knob} depends on {decider}"
    steps = _order_steps(steps, order)
    rest = tuple(key for step in steps if separate_knobs and not set(step) & set(separate_knobs) for key in step)
    if rest:
        steps = [*(step for step in steps if set(step) & set(separate_knobs)), rest]
    while refused := _untrainable_configurations(spec, start, end, steps):
        if len(steps) == 1:
            raise UserError(f"{spec.name}: its own configurations are refused: {refused[0]}")
        pairs = [_merge_steps(steps, one[0], other[0]) for one, other in combinations(steps, 2)]
        best = min(pairs, key=lambda joined: len(_untrainable_configurations(spec, start, end, joined)))
        (new,) = (step for step in best if step not in steps)
        reasons[new[0]] = f"the study refuses {refused[0]}"
        steps = best
    merges = [step for step in steps if len(step) > 1 and step != rest]
    return steps, [MergedKnobs(step, "; ".join(reasons[key] for key in step if key in reasons)) for step in merges]


def path_configurations(count: int) -> list[AppliedSteps]:
    """Return the configurations from the baseline to the best, a step at a time."""
    return [frozenset(range(taken)) for taken in range(count + 1)]


def single_additions(count: int) -> list[AppliedSteps]:
    """Return the baseline with each step alone."""
    return [frozenset({place}) for place in range(count)]


def single_removals(count: int) -> list[AppliedSteps]:
    """Return the best without each step."""
    return [path_configurations(count)[-1] - {place} for place in range(count)]


def ablation_configurations(count: int) -> list[AppliedSteps]:
    """Return each that an ablation of so many steps needs, once: 2 for one step, 4 for two, `3k - 1` for more."""
    return list(dict.fromkeys([*path_configurations(count), *single_additions(count), *single_removals(count)]))


def check_ablation_knobs(name: str, option: str, given: Sequence[str], knobs: Sequence[str]) -> None:
    """Refuse keys that are not among the knobs.

    Raises:
        UserError: says which are.
    """
    for key in given:
        if key not in knobs:
            raise UserError(
                f"{option} {key}: baseline and best of {name} do not differ in it. {did_you_mean(key, list(knobs))}"
                f"They differ in {', '.join(knobs)}"
            )


def _knobs_that_decide_presence(
    spec: StudySpec, start: Params, end: Params, knob: str, knobs: Sequence[str]
) -> list[str]:
    """Return the other knobs that decide whether one of the two configurations has this one."""
    section, domain = knob.split(".")[0], spec.search.space.get(knob)
    deciders: dict[str, None] = {}
    for params in (start, end):
        values = {
            **params,
            **{key: each for key in knobs if (each := value_in_configuration(spec, params, key)) is not None},
        }
        is_there = value_in_configuration(spec, params, knob) is not None
        if domain is not None and not domain.is_condition_met(values):
            deciders |= dict.fromkeys(domain.when)
        if not is_there:
            words = (key for key in values if key.split(".")[0] == section and isinstance(values[key], str))
            deciders |= dict.fromkeys([f"{section}.name", *words])
    return [key for key in deciders if key in knobs and key != knob]


def _merge_steps(steps: Sequence[StepKeys], one: str, other: str) -> list[StepKeys]:
    """Join the steps of two knobs, where the first of the two steps stands."""
    both = [step for step in steps if one in step or other in step]
    joined = tuple(key for step in both for key in step)
    return [joined if step is both[0] else step for step in steps if step is both[0] or step not in both]


def _order_steps(steps: Sequence[StepKeys], order: Sequence[str]) -> list[StepKeys]:
    """Order the steps by their first knob in `order`; those without one come last, as they stand."""
    place = {key: at for at, key in reversed(list(enumerate(order)))}
    return sorted(steps, key=lambda step: min((place[key] for key in step if key in place), default=len(order)))


def _untrainable_configurations(spec: StudySpec, start: Params, end: Params, steps: AblationSteps) -> list[str]:
    """Return the configurations that the study refuses, each with the reason."""
    found = []
    for moved in ablation_configurations(len(steps)):
        taken = [steps[place] for place in sorted(moved)]
        if why := why_untrainable(spec, params_after_steps(spec, start, end, taken)):
            keys = " and ".join(key for step in taken for key in step)
            found.append(f"the baseline with {keys} of the best ({why})" if keys else f"the baseline ({why})")
    return found


@dataclass(frozen=True)
class Ablation:
    """The configurations that an ablation compares.

    Attributes:
        baseline_trial, best_configuration_trial: the trials whose configurations it begins and ends with.
        steps: the keys of each step, in the order of the path.
        seeds: the training seeds of every configuration.
    """

    baseline_trial: TrialRecord
    best_configuration_trial: TrialRecord
    steps: AblationSteps
    seeds: Sequence[int]

    @property
    def configurations(self) -> list[AppliedSteps]:
        """Configurations that run on each seed."""
        return ablation_configurations(len(self.steps))

    def params_of(self, spec: StudySpec, applied_steps: AppliedSteps) -> Params:
        """Return the parameters of a configuration."""
        if repeated := self.endpoint_trial(applied_steps):
            return repeated.params
        taken = [self.steps[place] for place in sorted(applied_steps)]
        return params_after_steps(spec, self.baseline_trial.params, self.best_configuration_trial.params, taken)

    def endpoint_trial(self, moved: AppliedSteps) -> TrialRecord | None:
        """Return the trial of the baseline or the best if the configuration is one of these two, else None."""
        return {0: self.baseline_trial, len(self.steps): self.best_configuration_trial}.get(len(moved))


def requested_ablation(record: StudyRecord) -> Ablation | None:
    """Return the ablation that was asked for last; None without one."""
    baseline = next(record.trials_of_stages("baseline"), None)
    told = record.ablation_request
    if told is None or baseline is None:
        return None
    return Ablation(baseline, record.trials[told.trial], told.steps, range(told.first, told.first + told.seeds))


def choose_ablation_seeds(results: Results, best: Candidate, count: int | None) -> range:
    """Return the seeds of an ablation, see `study.spec.stage_seeds.ablation_seeds`.

    Args:
        count: how many are asked for; None: as many as that function says.
    """
    confirmed, asked = results.confirmation.seeds, results.record.ablation_request
    is_again = asked is not None and asked.trial == best.trial.number
    before = range(asked.first, asked.first + asked.seeds) if asked is not None and is_again else None
    return ablation_seeds(confirmed, includes_choosing_seed(results, confirmed), before, count)


def includes_choosing_seed(results: Results, seeds: Collection[int]) -> bool:
    """Return whether some of these seeds chose the best.

    They did where several configurations of the search were confirmed on some of them.
    """
    confirmed = (candidate.confirm_trials for candidate in results.ranked_by_search_value)
    return sum(any(trial.seed in seeds for trial in repeats) for repeats in confirmed) > 1


def ablation_trials_by_configuration(
    results: Results, ablation: Ablation
) -> dict[AppliedSteps, dict[int, TrialRecord]]:
    """Return the trials on fresh seeds of each configuration, whatever they ran for.

    One per seed, a complete one if any.
    """
    repeats = results.record.trials_of_stages("confirm", "rule", "ablation")
    fresh = [trial for trial in repeats if trial.seed in ablation.seeds]
    fresh.sort(key=lambda trial: (trial.state == "complete", -trial.number))
    found = {}
    for moved in ablation.configurations:
        params = ablation.params_of(results.spec, moved)
        found[moved] = {trial.seed: trial for trial in fresh if are_same_configuration(trial.params, params)}
    return found


def missing_ablation_trials(results: Results, ablation: Ablation | None) -> Iterator[tuple[AppliedSteps, int]]:
    """Yield the configurations and seeds of an ablation that have no trial yet."""
    if ablation is not None:
        by_configuration = ablation_trials_by_configuration(results, ablation)
        for moved, by_seed in by_configuration.items():
            yield from ((moved, seed) for seed in ablation.seeds if seed not in by_seed)


def ablation_trials_to_test(results: Results) -> list[TrialRecord]:
    """Return the complete trials of the ablation that was asked for: test is read for each of them."""
    ablation = requested_ablation(results.record)
    if ablation is None:
        return []
    return [trial for trial in ablation_trials(results, ablation) if trial.state == "complete"]


def ablation_trials(results: Results, ablation: Ablation) -> list[TrialRecord]:
    """Return the trials of all configurations of an ablation, those of its ends too."""
    return [
        trial for by_seed in ablation_trials_by_configuration(results, ablation).values() for trial in by_seed.values()
    ]


def is_ablation_measured(results: Results) -> bool:
    """Return whether all that was asked for has run, and test was read for it as far as that could be."""
    ablation = requested_ablation(results.record)
    if ablation is None or next(missing_ablation_trials(results, ablation), None):
        return False
    ended = (trial.state in ENDED_STATES for trial in ablation_trials(results, ablation))
    return all(ended) and all(trial.test_metrics or trial.test_failure for trial in ablation_trials_to_test(results))


@dataclass(frozen=True)
class AblationProgress:
    """How far an ablation is.

    Attributes:
        baseline, best: the trials that it leads from and to.
        trials, complete: of all its configurations; `is_measured`: and test was read.
    """

    baseline: int
    best: int
    steps: AblationSteps
    seeds: Sequence[int]
    trials: int
    complete: int
    is_measured: bool


def ablation_progress(results: Results) -> AblationProgress | None:
    """Return how far the ablation that was asked for is; None without one."""
    ablation = requested_ablation(results.record)
    if ablation is None:
        return None
    return AblationProgress(
        ablation.baseline_trial.number,
        ablation.best_configuration_trial.number,
        ablation.steps,
        list(ablation.seeds),
        len(ablation.configurations) * len(ablation.seeds),
        len(ablation_trials_to_test(results)),
        is_ablation_measured(results),
    )


def to_ablation_event(ablation: Ablation) -> AblationRequested:
    """Convert an ablation to its event in the ledger."""
    steps = tuple(tuple(step) for step in ablation.steps)
    return AblationRequested(ablation.best_configuration_trial.number, steps, ablation.seeds[0], len(ablation.seeds))
