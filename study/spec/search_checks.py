"""Check what a search asks for: its keys exist, its values are valid, and every trial that it can give is valid."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from fractions import Fraction
from itertools import islice
from typing import Annotated

from pydantic import ValidationError

from study import methods, models
from study.catalogue import NAMES_FOR_OWN_FUNCTION, REFERENCE_METHOD
from study.data.dataset import Facts
from study.errors import KEYS_COMMAND, NAMES_COMMAND, closest_spellings, suggest_or_list
from study.knobs import MAX_INTEGER, Knob, Params, Range, Scalar, Section, Value, to_options
from study.methods import OWN_FUNCTION_NAME
from study.methods.debiasing import BIAS_FROM_EARLY_LAYERS
from study.models.network_keys import EARLY_LAYER_MODULES, early_layers_width
from study.spec.configuration import are_same_configuration, distinct_configurations
from study.spec.domain import MAX_GRID_CELLS, Domain, grid_values_of_domain, last_grid_value
from study.spec.key_errors import (
    ProblemCollector,
    TrialProblemCollector,
    fault_of_value,
    format_params,
    name_beside_fair_kl,
)
from study.spec.sampler_capabilities import SAMPLER_CAPABILITIES
from study.spec.schema import DEFAULT_CONFIRM_FRONT, EarlyStoppingOptions, SearchOptions, TrialResources
from study.spec.space import SearchSpace, count_grid_cells
from study.spec.trial_sections import SECTION_CATALOGUES, DomainsByKey, SectionForms, TrialSections, valid_section_names
from study.spec.yaml_document import KeyPath, mapping_or_empty
from study.training import augment
from study.training.config import FUNCTION_TRAIN_KEYS, TrainOptions, TrialConfig

MAX_RANGE_STEPS = 10_000_000
"""Most steps of a range: beyond it rounding blurs which values lie on a step."""


MAX_EXACT_FLOAT_INTEGER = 2**53
"""Largest whole number up to which samplers, which compute with floats, tell each from its neighbours."""


def _is_last_step_inexact(domain: Domain, whole: bool) -> bool:
    """Return whether the last step of a range is off its steps once it is a float."""
    low, step, last = (Fraction(str(value)) for value in (domain.low, domain.step, last_grid_value(domain, whole)))
    return (last - low) % step != 0


def count_configurations(search: SearchOptions, space: SearchSpace, most: int = MAX_GRID_CELLS) -> int | None:
    """Count the different configurations that a search can try: those of its space, and given ones outside it.

    None: its space has more than `most`.
    """
    grained = (
        (domain.high - domain.low, domain.step or 1)
        for domain in space.domains.values()
        if domain.low is not None and domain.high is not None
    )
    if any(width / step > most for width, step in grained):
        return None
    try:
        found = count_grid_cells(space, most, every=True)
    except ValueError:  # a range without steps
        return None
    given = distinct_configurations([*([search.baseline] if search.baseline is not None else []), *search.enqueue])
    return found + sum(not space.contains(params) for params in given) if found <= most else None


def sampler_problems(search: SearchOptions, space: SearchSpace) -> list[tuple[KeyPath, str]]:
    """Return what the sampler cannot search, each with the key at fault."""
    faults: list[tuple[KeyPath, str]] = []
    name, can = search.sampler, SAMPLER_CAPABILITIES[search.sampler]
    if can.needs_every_key:
        others = ", ".join(other for other, declared in SAMPLER_CAPABILITIES.items() if not declared.needs_every_key)
        message = f"is not in every trial, as {name} needs it. Allowed: {others}"
        faults += [(("search", "space", key), message) for key in space.conditional_keys()]
    faults += _range_problems(search, space)
    if can.tries_every_cell:
        endless = _unlistable_ranges(space)
        faults += endless
        if not endless and count_grid_cells(space) > MAX_GRID_CELLS:
            faults.append((("search", "space"), f"has more than {MAX_GRID_CELLS} cells, allowed is at most that many"))
    return faults


def _range_problems(search: SearchOptions, space: SearchSpace) -> Iterator[tuple[KeyPath, str]]:
    """Yield the ranges that are too wide or too fine for numbers, or for the sampler."""
    can = SAMPLER_CAPABILITIES[search.sampler]
    for key, domain in space.domains.items():
        low, high, step = domain.low, domain.high, domain.step
        if low is None or high is None or low == high:
            continue
        at, whole = ("search", "space", key), key in space.integer_keys
        if not math.isfinite(float(high) - float(low)):
            yield at, f"the range {low!r} to {high!r} is wider than the largest number. Allowed: one of at most 1.7e308"
            continue
        if whole and max(abs(low), abs(high)) > MAX_EXACT_FLOAT_INTEGER:
            message = f"samplers do not tell whole numbers beyond {MAX_EXACT_FLOAT_INTEGER} (2**53) from neighbours"
            yield at, f"{low!r} to {high!r} given, and {message}. Allowed: -2**53 to 2**53, or choices"
            continue
        if step and _is_last_step_inexact(domain, whole):
            message = f"the last step from {low!r} to {high!r} has more digits than a number holds"
            yield (*at, "step"), f"{step!r} given, {message}. Allowed: low and step of a size, or no step"
            continue
        values = (high - low) / (step or 1) if whole or step else 0
        if step and not (whole and step == 1) and values > MAX_RANGE_STEPS and not can.tries_every_cell:
            message = f"{step!r} given, more than {MAX_RANGE_STEPS} steps from {low!r} to {high!r}"
            yield (*at, "step"), f"{message}. Allowed: a larger one, or none"
        elif can.max_values_per_key is not None and values >= can.max_values_per_key:
            message = f"the range {low!r} to {high!r} has more than {can.max_values_per_key} values, all of which "
            message += f"{search.sampler} lists"
            allowed = "a larger step, or sampler tpe" if not domain.log else "sampler tpe"
            yield at, f"{message}. Allowed: {allowed}"


def _unlistable_ranges(space: SearchSpace) -> list[tuple[KeyPath, str]]:
    """Return the ranges whose values a grid cannot list."""
    faults: list[tuple[KeyPath, str]] = []
    for key, domain in space.domains.items():
        try:
            grid_values_of_domain(domain, key in space.integer_keys)
        except ValueError as error:
            faults.append((("search", "space", key), str(error)))
    return faults


DescribeData = Callable[[Section], Facts]


def all_trial_faults(trial: Mapping[str, Section], facts: Facts) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield what is wrong with the complete sections of a trial: the key to change, as (section, key), and why."""
    method = trial["method"]
    if apart := list(training_function_faults(trial)):
        yield from apart
        return
    if method["name"] == OWN_FUNCTION_NAME:
        return
    if method["name"] == REFERENCE_METHOD and trial["train"]["epochs"] != 1:
        why = f"allowed is 1 with method.name {REFERENCE_METHOD}, which is fitted at once"
        yield ("train", "epochs"), f"{trial['train']['epochs']} given, {why}"
    epsilon, temperature = method.get("epsilon"), method.get("temperature")
    if isinstance(epsilon, int | float) and isinstance(temperature, int | float) and epsilon > 2.0 / temperature:
        limit = 2.0 / temperature
        why = f"{epsilon!r} given, allowed is at most 2/temperature = {limit:g} (FairKL paper A.2)"
        yield ("method", "epsilon"), why
    yield from incompatible_sections_faults(trial, facts)


def problems_of_possible_trials(
    sections: TrialSections, describe: DescribeData, space: SearchSpace, configurations: Mapping[KeyPath, Params]
) -> Iterator[tuple[KeyPath, str]]:
    """Yield the problems of the search's trials, each once: the place in the search that causes it, and why.

    All combinations of the keys that decide on others are checked, and in each the ends of ranges and the choices of
    the other keys. Problems of the file's own configuration are left out.

    Args:
        sections: complete and valid, each for itself.
        describe: gives the facts about a data section.
        configurations: those that the search is given, by their place.
    """
    own = sections.complete_sections_of_trial({})
    seen: set[str | tuple[KeyPath, str]] = {why for _, why in all_trial_faults(own, describe(own["data"]))}
    searched = (
        (("search", "space"), params)
        for case in space.combinations_of_deciding_keys()
        for params in _extreme_trials(space, case)
    )
    for at, params in [*configurations.items(), *searched]:
        trial = sections.complete_sections_of_trial(params)
        for (section, name), why in all_trial_faults(trial, describe(trial["data"])):
            suspects = _likely_causes(f"{section}.{name}", space, params)
            place = (*at, *list(suspects)[:1])
            others = {key: value for key, value in suspects.items() if not why.startswith(f"{value!r} given")}
            if not {why, (place, why)} & seen:
                seen.add((place, why))
                yield place, f"with {format_params(others)}: {why}" if others else why


def _extreme_trials(space: SearchSpace, case: Params) -> Iterator[Params]:
    """Yield trials of one case: all keys at their lowest end, each in turn at its others, all at the highest."""
    domains = {key: domain for key, domain in space.domains.items() if key not in case and space.applies_to(key, case)}
    lowest = {**case, **{key: domain.boundary_values()[0] for key, domain in domains.items()}}
    yield lowest
    for key, domain in domains.items():
        yield from ({**lowest, key: end} for end in domain.boundary_values()[1:] if not isinstance(end, float))
    yield {**case, **{key: _highest_value(domain) for key, domain in domains.items()}}


def _highest_value(domain: Domain) -> Scalar:
    ends = domain.boundary_values()
    numbers = [end for end in ends if isinstance(end, int | float)]
    return max(numbers) if len(numbers) == len(ends) else ends[-1]


def _likely_causes(key: str, space: SearchSpace, params: Params) -> Params:
    """Return the parameters that may cause a problem with a key, the likeliest first.

    The key itself and all that vary, floats aside; if there are none, all of its section.
    """
    own = {key: params[key]} if key in params else {}
    constant = {other for other, domain in space.domains.items() if len(domain.boundary_values()) == 1}
    varied = {other: value for other, value in params.items() if other not in constant and not isinstance(value, float)}
    section = key.split(".")[0]
    return own | varied or {other: value for other, value in params.items() if other.startswith(f"{section}.")}


MIN_RESOURCE_AMOUNT = 0.0001
"""Smallest amount of a resource: Ray counts in this step, and breaks where a trial takes less than half of it."""


def trial_resource_faults(taken: TrialResources) -> Iterator[tuple[KeyPath, str]]:
    """Yield what is wrong with a trial's resources, with its place.

    That is several GPUs, a kind of GPU without a GPU, or less of something than Ray tells from nothing.
    """
    for key, amount in (("cpu", taken.cpu), ("gpu", taken.gpu)):
        if 0 < amount < MIN_RESOURCE_AMOUNT:
            why = f"{amount:g} given, allowed is at least {MIN_RESOURCE_AMOUNT}, the smallest part that Ray counts"
            yield ("resources", key), why
    if taken.gpu > 1:
        why = f"{taken.gpu:g} given, allowed is at most 1: a trial trains on one card, further ones would idle"
        yield ("resources", "gpu"), why
    if taken.accelerator is not None and taken.gpu == 0:
        why = f"{taken.accelerator!r} given, but a trial takes no GPU: resources.gpu is 0"
        yield ("resources", "accelerator"), why


UNSEARCHABLE_KEYS = {
    "data.folds": "folds",
    "train.epochs": "epochs",
    "train.seed": "seed",
    "train.inferred_groups": "groups to be judged by",
    "train.bias_model_epochs": "groups to be judged by",
    "train.deterministic": "way to compute",
}
"""Keys that have one value in a study, and what messages call it."""

MAX_NAME_COMBINATIONS = 2000
"""Most combinations of names, each of which is checked."""


def given_configurations(search: SearchOptions) -> dict[KeyPath, Params]:
    """Return the configurations that a search is given, baseline and enqueued, by their place."""
    baseline: dict[KeyPath, Params] = {("search", "baseline"): search.baseline or {}}
    return baseline | {("search", "enqueue", str(place)): params for place, params in enumerate(search.enqueue)}


def check_space(
    domains: DomainsByKey, sections: TrialSections, forms: SectionForms, problems: ProblemCollector
) -> None:
    """Check that every key of a space exists and can be searched, and that conditions name keys of the space."""
    for key, domain in domains.items():
        at: KeyPath = ("search", "space", key)
        if not _check_key_exists(key, forms.all_keys, at, problems):
            continue
        if domain.choices is None and (key.endswith(".name") or key.startswith("data.")):
            message = "a range given, allowed are choices: each is a data set, network or method of its own"
            problems.add_problem(at, message)
        if key.endswith(".name"):
            _check_searched_names(key, domain.choices or [], sections, at, problems)
        if isinstance(domain.step, float) and any(int in knob.plain_types for knob in forms.knobs_of_key(key)):
            problems.add_problem((*at, "step"), f"{domain.step!r} given, allowed is a whole number, as {key} is one")
        _check_when_condition(domain.when, domains, (*at, "when"), problems)


def check_given_configurations(
    configurations: Mapping[KeyPath, Params], sections: TrialSections, problems: ProblemCollector
) -> list[Params]:
    """Check that every key of the configurations exists in the sections that they lead to, and has a valid value.

    Returns:
        The valid configurations.
    """
    sound = []
    for at, point in configurations.items():
        labels = {key: value for key, value in point.items() if key.endswith(".name")}
        right = [_check_searched_names(key, [value], sections, (*at, key), problems) for key, value in labels.items()]
        if not all(right):
            continue
        knobs = {
            f"{section}.{key}": knob
            for section in sections.own_sections
            for key, knob in sections.knobs_of_form(section, point).items()
        }
        existing = [key for key in point if _check_key_exists(key, list(knobs), (*at, key), problems)]
        wrong = {key: why for key in existing if key in knobs and (why := _fault_of_parameter(knobs[key], point[key]))}
        for key, why in wrong.items():
            problems.add_problem((*at, key), why)
        if len(existing) == len(point) and not wrong:
            sound.append(point)
    return sound


LEDGER_NUMBER_TYPES = {int: int, float: Annotated[float, Range()]}
"""Numbers that a ledger keeps, as the type of a knob: those in 64 bits, and finite ones."""


def _fault_of_parameter(knob: Knob, value: Scalar) -> str | None:
    """Return what is wrong with a value of a configuration: by its key, or as a ledger cannot keep it."""
    kept = replace(knob, type=LEDGER_NUMBER_TYPES.get(type(value), knob.type))
    return fault_of_value(knob, value) or fault_of_value(kept, value)


def combine_deciding_keys(space: SearchSpace, problems: ProblemCollector) -> list[dict[str, Scalar]]:
    """Return the combinations of the keys that decide on others.

    It checks that they are few enough, and that each key is in one of them.
    """
    cases = list(islice(space.combinations_of_deciding_keys(), MAX_NAME_COMBINATIONS + 1))
    if len(cases) > MAX_NAME_COMBINATIONS:
        of = ", ".join(sorted(space.deciding_keys))
        message = f"more than {MAX_NAME_COMBINATIONS} combinations of {of}. Write several studies"
        problems.add_problem(("search", "space"), message)
        return []
    for key in space.domains:
        if not any(space.applies_to(key, case) for case in cases):
            problems.add_problem(("search", "space", key), "is searched in no trial: its condition never holds")
    return cases


def check_domain_values(
    space: SearchSpace, sections: TrialSections, cases: Iterable[Params], problems: ProblemCollector
) -> None:
    """Check that every value that the search may give to a key is valid, in all forms of the key's section."""
    seen: set[tuple[str, Knob]] = set()
    for case in cases:
        for key, domain in space.domains.items():
            section, name = key.split(".")
            knob = sections.knobs_of_form(section, case).get(name)
            if knob is None or (key, knob) in seen or not space.applies_to(key, case):
                continue
            seen.add((key, knob))
            label = f"{section}.name"
            noted = TrialProblemCollector(problems, {label: case[label]} if label in case else {})
            faults = [fault_of_value(knob, value) for value in domain.boundary_values()]
            if not any(faults) and domain.choices is None:
                faults = [fault_of_value(knob, _middle_value(domain, key, space))]
            for why in filter(None, faults):
                noted.add_problem(("search", "space", key), why)


def _check_key_exists(key: str, valid: list[str], at: KeyPath, problems: ProblemCollector) -> bool:
    meant = key if key in valid else next(iter(closest_spellings(key, [*UNSEARCHABLE_KEYS, *valid])), key)
    if meant in UNSEARCHABLE_KEYS:
        same, who = UNSEARCHABLE_KEYS[meant], "" if meant == key else f"{meant} "
        problems.add_problem(at, f"{who}cannot be searched: every trial of a study has the same {same}")
        return False
    section, _, name = key.partition(".")
    if key in valid or (name == "name" and section in SECTION_CATALOGUES):
        return True
    near = [other for other in valid if other.split(".")[0] == section]
    problems.add_problem(at, f"unknown key. {suggest_or_list(key, near or valid, command=KEYS_COMMAND)}")
    return False


def _check_searched_names(
    key: str, chosen: Sequence[Scalar], sections: TrialSections, at: KeyPath, problems: ProblemCollector
) -> bool:
    section = key.removesuffix(".name")
    valid = list(dict.fromkeys([*sections.alternatives.get(section, {}), *valid_section_names(section)]))
    wrong = [name for name in chosen if name not in valid]
    for name in wrong:
        if section == "method" and (plain_name := name_beside_fair_kl(str(name))):
            label = str(name).replace("+", "_")
            entry = f"{{method: {{{label}: {{name: {plain_name}, regulariser: fair_kl}}}}}}"
            problems.add_problem(at, f"{name!r} given. Did you mean {label!r}, with search.alternatives={entry}?")
            continue
        problems.add_problem(at, f"{name!r} given. {suggest_or_list(str(name), valid, command=NAMES_COMMAND)}")
    plain = [name for name in chosen if name not in wrong and name not in sections.alternatives.get(section, {})]
    unusable = [why for name in plain if (why := SECTION_CATALOGUES[section].why_unusable(str(name)))]
    for why in unusable:
        problems.add_problem(at, why)
    return not wrong and not unusable


def _check_when_condition(
    when: Mapping[str, list[Scalar]], domains: DomainsByKey, at: KeyPath, problems: ProblemCollector
) -> None:
    for key, values in when.items():
        if key not in domains:
            problems.add_problem((*at, key), f"is not in search.space. {suggest_or_list(key, domains)}")
        elif domains[key].choices is None:
            message = f"{key} is searched as a range, allowed in a condition are keys with choices"
            problems.add_problem((*at, key), message)
        else:
            for value in (choice for choice in values if not domains[key].contains(choice)):
                allowed = ", ".join(map(repr, domains[key].boundary_values()))
                problems.add_problem((*at, key), f"{value!r} given, which {key} never is. Allowed: {allowed}")


def _middle_value(domain: Domain, key: str, space: SearchSpace) -> Scalar:
    """Return a value between the ends of a range, which must be valid, too."""
    assert domain.low is not None
    assert domain.high is not None
    if key in space.integer_keys:
        return int(domain.low + domain.high) // 2
    return domain.low + 0.382 * (domain.high - domain.low) if domain.low < domain.high else domain.low


def incompatible_sections_faults(
    sections: Mapping[str, Section], facts: Facts
) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield what does not go together in complete sections: the key to change, as (section, key), and why.

    Args:
        facts: of the data set of the `data` section.
    """
    method, train, name = sections["method"], to_options(TrainOptions, sections["train"]), sections["data"]["name"]
    yield from _early_layers_faults(sections, facts)
    for key, why in methods.unmet_needs(method, facts):
        yield ("method", key), f"{method[key]!r} given, it {why}, which data.name {name!r} lacks"
    if sections["model"].get("frozen"):
        if reason := models.why_network_unsuited(sections["model"], facts):
            yield ("model", "name"), reason
            return
        shaping = [key for key in ("regulariser", "adversary") if method.get(key, "none") != "none"]
        stays = not sections["model"]["adapter"] and not models.has_trained_stages(sections["model"])
        if stays and (shaping or "temperature" in method):
            key = [*shaping, "name"][0]
            why = f"0 given, method.{key} {method[key]!r} shapes features, and those of a frozen network stay"
            yield ("model", "adapter"), f"{why}: allowed is 1 or more, or model.trained_stages"
        facts = models.facts_of_network_inputs(sections["model"], facts)
        name = f"{name} (features of a frozen network, a table)"
    augmentation = train.augmentation
    if reason := augment.why_augmentation_unsuited(augmentation, facts):
        yield ("train", "augmentation"), f"{reason}, which data.name {name!r} is not"
    elif not sections["model"].get("frozen"):
        yield from _shape_faults(sections, facts)
    wish = methods.method_needs(method).views_key
    if wish and not augment.has_random_views(augmentation):
        names = filter(augment.has_random_views, augment.AUGMENTATION_CHECKS)
        random = [other for other in names if not augment.why_augmentation_unsuited(other, facts)]
        why = f"{augmentation!r} given, method.{wish} {method[wish]!r} needs views that differ. "
        yield ("train", "augmentation"), f"{why}Allowed: {', '.join(random)}"
    if train.warmup_epochs > train.epochs:
        yield ("train", "warmup_epochs"), f"{train.warmup_epochs} given, allowed is at most train.epochs"
    if train.graph:
        yield from _cuda_graph_faults(method, train)
    if train.inferred_groups != "none":
        yield from _inferred_groups_faults(sections, facts)
    needed = methods.method_needs(method).min_epochs
    if needed and train.epochs < needed[1]:
        why = f"{method[needed[0]]!r} given, it needs train.epochs of at least {needed[1]}, not {train.epochs}"
        yield ("method", needed[0]), why


def _early_layers_faults(sections: Mapping[str, Section], facts: Facts) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the key that asks for early layers where the network is not frozen, or has none that are known."""
    keys = (("method", "bias_source"), ("train", "inferred_groups"))
    asked = [(section, key) for section, key in keys if sections[section].get(key) == BIAS_FROM_EARLY_LAYERS]
    if asked and facts.unlabelled:
        yield asked[0], f"{BIAS_FROM_EARLY_LAYERS!r} given, it needs the class of every training sample"
    if asked and not (sections["model"].get("frozen") and early_layers_width(sections["model"])):
        networks = ", ".join(EARLY_LAYER_MODULES)
        yield asked[0], f"{BIAS_FROM_EARLY_LAYERS!r} given, it needs model.frozen and one of these networks: {networks}"


def _cuda_graph_faults(method: Section, train: TrainOptions) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield why a step cannot be recorded as a CUDA graph."""
    if train.micro_batch is not None:
        yield ("train", "graph"), "True given, a step in parts (train.micro_batch) cannot be recorded"
    if (key := methods.method_needs(method).varying_key) is not None:
        yield ("train", "graph"), f"True given, a step with method.{key} {method[key]!r} differs from batch to batch"


def _inferred_groups_faults(sections: Mapping[str, Section], facts: Facts) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield why the network that infers groups cannot be trained: it needs classes, and samples as they are stored."""
    kind, given = ("train", "inferred_groups"), f"{sections['train']['inferred_groups']!r} given"
    if facts.unlabelled:
        name = sections["data"]["name"]
        yield kind, f"{given}, it needs the class of every training sample, which data.name {name!r} lacks"
    elif not sections["model"].get("frozen") and (reason := models.why_network_unsuited(sections["model"], facts)):
        yield kind, f"{given}, its network sees samples as they are stored: {reason}"


def _shape_faults(sections: Mapping[str, Section], facts: Facts) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield why the network cannot take what training and evaluation give it."""
    options = TrialConfig.from_document(sections).train
    trained = replace(facts, shape=augment.augmented_shape(options.augmentation, facts.shape, options))
    if reason := models.why_network_unsuited(sections["model"], trained):
        yield ("model", "name"), reason
        return
    size = options.evaluation_size
    evaluated = facts if facts.is_table or size is None else replace(facts, shape=(facts.shape[0], size, size))
    if reason := models.why_network_unsuited(sections["model"], evaluated):
        yield ("train", "evaluation_size"), f"{size!r} given. {reason}"


VALIDATION_METRIC_PATTERN = re.compile(r"val/\w+")


def fill_in_function_file(values: dict[str, Value], problems: ProblemCollector) -> dict[str, Value]:
    """Fill in what the file of a training function of the user's own may leave out; return any other as it is.

    Data set and network are the function's: `data` and `model` say `none`. Every key of `method` but `name` and
    `function` is an argument of the function's configuration; one that is only searched begins at its baseline's value,
    or, without a baseline, at the low end of its range.
    """
    method, search = mapping_or_empty(values.get("method")), mapping_or_empty(values.get("search"))
    if method.get("name") != OWN_FUNCTION_NAME:
        return values
    method = dict(method)
    baseline = mapping_or_empty(search.get("baseline"))
    known = {**{f"method.{name}": value for name, value in method.items()}, **baseline}
    single = {key: value for key, value in known.items() if isinstance(value, Scalar)}
    lacking = []
    for key, given in mapping_or_empty(search.get("space")).items():
        section, _, name = str(key).partition(".")
        if section != "method" or name in ("name", "function"):
            message = "cannot be searched: allowed are method.NAME, the function's"
            problems.add_problem(("search", "space", str(key)), message)
        elif (domain := _valid_domain_or_none(given)) is not None:
            lacking += [key] if key not in known and domain.is_condition_met(single) else []
            ends, value = domain.boundary_values(), method.get(name, baseline.get(key))
            method[name] = _convert_to_type_of_ends(ends, value, name in method)
    if lacking and isinstance(search.get("baseline"), dict):
        more = "the function's own defaults are not known. Give each searched key a value"
        problems.add_problem(("search", "baseline"), f"lacks {', '.join(lacking)}: {more}")
    for name in method:
        if not re.fullmatch(r"[A-Za-z]\w*", str(name)):
            problems.add_problem(("method", str(name)), "allowed is a name of letters, digits and '_'")
    apart = {"data": NAMES_FOR_OWN_FUNCTION["study.data"], "model": NAMES_FOR_OWN_FUNCTION["study.models"]}
    return {
        **values,
        **{key: {"name": name, **mapping_or_empty(values.get(key))} for key, name in apart.items()},
        "method": method,
    }


def training_function_faults(trial: Mapping[str, Section]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield keys that mean nothing to a training function, or that only such a function has.

    Each is the key to change, as (section, key), and why.
    """
    own = trial["method"]["name"] == OWN_FUNCTION_NAME
    for section, catalogue in (("data", "study.data"), ("model", "study.models")):
        name = NAMES_FOR_OWN_FUNCTION[catalogue]
        if own != (trial[section]["name"] == name):
            allowed = name if own else f"any but {name}, which is for method.name {OWN_FUNCTION_NAME}"
            yield (section, "name"), f"{trial[section]['name']!r} given, allowed is {allowed}"
    if own:
        # a final training has no fold
        meant = (*FUNCTION_TRAIN_KEYS, "with_val") if trial["data"].get("folds") else FUNCTION_TRAIN_KEYS
        for field in fields(TrainOptions):
            value = trial["train"].get(field.name, field.default)
            value = tuple(value) if isinstance(value, list) else value
            if field.name not in meant and value != field.default:
                why = f"means nothing to a function of one's own. Allowed: {', '.join(FUNCTION_TRAIN_KEYS)}"
                yield ("train", field.name), f"{why}; give it under method"


def check_function_metric_names(names: Mapping[tuple[str, ...], str], problems: ProblemCollector) -> None:
    """Check the form of a function's metrics, by their places; only a trial tells which there are."""
    for place, name in names.items():
        if not VALIDATION_METRIC_PATTERN.fullmatch(name):
            note = "test metrics cannot be used to choose. " if name.startswith("test/") else ""
            problems.add_problem(place, f"{name!r} given. {note}Allowed: val/NAME, as the function yields it")


def adapt_to_several_metrics(search: SearchOptions) -> SearchOptions:
    """Return the search as several metrics need it: how many of its front run again, and no trial ends early."""
    if isinstance(search.metric, str) or len(search.metric) < 2:
        return search
    front = DEFAULT_CONFIRM_FRONT if search.confirm.front is None else search.confirm.front
    confirm = search.confirm.model_copy(update={"front": front})
    return search.model_copy(update={"confirm": confirm, "early_stopping": EarlyStoppingOptions()})


def adapt_to_folds(
    search: SearchOptions, has_folds: bool, names_seeds: bool, problems: ProblemCollector
) -> SearchOptions:
    """Return the search with what it does with folds, where the data have some.

    Args:
        has_folds: whether the data have some.
        names_seeds: whether the file says `search.confirm.seeds`.
    """
    confirm = search.confirm
    if not has_folds:
        for at, value in (("search", "folds"), search.folds), (("search", "confirm", "folds"), confirm.folds):
            if value is not None:
                problems.add_problem(at, f"{value!r} given, but the data have no folds. Say how many: data.folds: 5")
        if confirm.seeds < 2:
            why = f"{confirm.seeds} given, allowed is greater than or equal to 2"
            problems.add_problem(("search", "confirm", "seeds"), why)
        return search
    seeds = confirm.seeds if names_seeds else 1
    confirm = confirm.model_copy(update={"folds": "all", "seeds": seeds})
    return search.model_copy(update={"folds": search.folds or "one", "confirm": confirm})


def _valid_domain_or_none(given: Value) -> Domain | None:
    """Return a domain that has ends, None where it is none: the checks of the search say why."""
    try:
        domain = Domain.model_validate(given)
    except ValidationError:
        return None
    return domain if domain.choices or None not in domain.boundary_values() else None


def _convert_to_type_of_ends(ends: list[Scalar], value: Value, is_given: bool) -> Value:
    """Return a value of the type that a domain has: a whole number as a float where there are floats.

    A value that the section itself does not give, and that is missing or of another type, is replaced by an end.
    """
    others = [end for end in ends if type(end) is not int]
    if type(value) is int and abs(value) <= MAX_INTEGER and any(type(end) is float for end in others):
        return float(value)
    fits = value is not None and (others or type(value) is int)
    return value if is_given or fits else next(iter(others), ends[0])


INCUMBENT_MARK_KEY = "incumbent"
"""Key in a given configuration: whether another one has to beat it by `search.margin`."""


CONFIGURATION_LIST_KEYS = ("enqueue", "incumbents")
"""Keys of `search` that hold lists of configurations."""


def collect_incumbents(values: dict[str, Value], problems: ProblemCollector) -> dict[str, Value]:
    """Return a document without these marks; the marked configurations stand in `search.incumbents` as well."""
    search = values.get("search")
    if not isinstance(search, dict):
        return values
    lists = (search.get(key) for key in CONFIGURATION_LIST_KEYS)
    enqueued, incumbents = ([*listed] if isinstance(listed, list) else [] for listed in lists)
    given: dict[KeyPath, Value] = {("search", "baseline"): search.get("baseline")}
    given |= {("search", "enqueue", str(place)): params for place, params in enumerate(enqueued)}
    marked = {at: params for at, params in given.items() if isinstance(params, dict) and INCUMBENT_MARK_KEY in params}
    for at, params in marked.items():
        if not isinstance(mark := params[INCUMBENT_MARK_KEY], bool):
            problems.add_problem((*at, INCUMBENT_MARK_KEY), f"{mark!r} given, allowed is true or false")
    problems.raise_if_any()
    if not marked:
        return values
    own = dict(search)
    for at, given_params in marked.items():
        params = {key: value for key, value in given_params.items() if key != INCUMBENT_MARK_KEY}
        incumbents += [params] if given_params[INCUMBENT_MARK_KEY] else []
        if at[1] == "baseline":
            own["baseline"] = params
        else:
            enqueued[int(at[2])] = params
    return {**values, "search": {**own, **({"enqueue": enqueued} if enqueued else {}), "incumbents": incumbents}}


def check_incumbents(search: SearchOptions, problems: ProblemCollector) -> None:
    """Check that there is a margin where there are incumbents, and something to beat where there is a margin."""
    given = list(given_configurations(search).values())
    for place, params in enumerate(search.incumbents):
        if not any(are_same_configuration(params, other) for other in given):
            why = "is none of the configurations of search.baseline and search.enqueue"
            problems.add_problem(("search", "incumbents", str(place)), why)
    if search.incumbents and not search.margin:
        problems.add_problem(("search", "margin"), "is 0, but there is an incumbent. Give it a number above 0, as 0.5")
    elif search.margin and not search.enqueue and search.baseline is None:
        message = f"{search.margin:g} given, but nothing is to be beaten. Give search.baseline or search.enqueue"
        problems.add_problem(("search", "margin"), message)
