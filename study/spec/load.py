"""Make a StudySpec from a file, overrides and a profile, or raise one message with all that is wrong."""

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from graphlib import CycleError
from itertools import chain
from pathlib import Path
from typing import cast

from study import methods, metrics
from study.data.dataset import Facts
from study.errors import KEYS_COMMAND, UserError, suggest_or_list
from study.knobs import Section, Value, read_knobs, to_options
from study.spec import search_checks
from study.spec.configuration import EXPORT_FORMAT_VERSION, configuration_digest, distinct_configurations
from study.spec.domain import MAX_GRID_CELLS, Domain
from study.spec.key_errors import ProblemCollector, quote_value, validate_section, validate_section_as
from study.spec.paper_readings import ProtocolReading, apply_reading, pop_readings
from study.spec.paper_values import paper_configurations, replace_paper_ranges
from study.spec.reference_models import check_references
from study.spec.rungs import RungSchedule, with_explicit_grace
from study.spec.sampler_capabilities import SAMPLER_CAPABILITIES
from study.spec.schema import ExportOrigin, SearchOptions, StudyFileLayout
from study.spec.section_models import make_section_model
from study.spec.space import make_search_space
from study.spec.stage_seeds import N_FINAL_SEEDS, confirm_seeds
from study.spec.study_spec import StudySpec
from study.spec.trial_sections import (
    SECTION_CATALOGUES,
    TrialSections,
    check_section_names,
    fill_in_sections,
    find_section_forms,
    section_knobs,
    train_knobs,
)
from study.spec.yaml_document import (
    KeyPath,
    YamlDocument,
    apply_overrides,
    apply_profile,
    find_study_file,
    mapping_or_empty,
    parse_assignment,
    read_study_file,
)
from study.text import print_text, quoted
from study.training.config import MAX_SEED, MAX_THREADS, TRIAL_SECTIONS, TrainOptions


def check_search_metrics(spec: StudySpec, problems: ProblemCollector) -> None:
    """Check that every metric that is searched by or constrained exists on the validation split of all data sets."""
    search = spec.search
    by_data = [[]] if spec.training_function else spec.metrics_by_data_set
    valid = [f"val/{name}" for name in by_data[0] if all(name in others for others in by_data)]
    searched = [search.metric] if isinstance(search.metric, str) else search.metric
    named: list[tuple[KeyPath, str]] = [(("search", "metric"), name) for name in searched]
    if len(set(searched)) < len(searched):
        problems.add_problem(("search", "metric"), f"{searched} given: one is repeated")
    for index, constraint in enumerate(spec.objective.constraints):
        named.append((("search", "constraints", str(index)), constraint.metric))
    _check_directions(spec, searched, problems)
    if spec.training_function:
        search_checks.check_function_metric_names(dict(named), problems)
        return
    for at, name in named:
        if name not in valid:
            problems.add_problem(at, f"{name!r} given. {_metric_hint(name, valid, spec.data_facts)}")


def _check_constraints_within_range(spec: StudySpec, problems: ProblemCollector) -> None:
    """Check that the limit of each constraint is within its metric's range.

    A function of the user's own may mean something else by a metric's name. An exported configuration, which may be an
    earlier version's, is taken.
    """
    for index, constraint in enumerate([] if spec.training_function or spec.origin else spec.objective.constraints):
        if why := constraint.why_pointless():
            problems.add_problem(("search", "constraints", str(index)), f"'{constraint}' given: {why}")


def _check_directions(spec: StudySpec, searched: list[str], problems: ProblemCollector) -> None:
    """Check that the better direction of each metric is known, and that none is given against it."""
    given, at = spec.search.direction, ("search", "direction")
    if isinstance(given, list) and len(given) != len(searched):
        each = f"allowed is one for each of {len(searched)} metrics: {', '.join(searched)}"
        problems.add_problem(at, f"{given} given, {each}")
        return
    if unknown := [name for name in searched if spec.training_function and not spec.direction(name)]:
        allowed = "max or min" if len(searched) == 1 else f"a list of max and min, for {', '.join(searched)}"
        python = "maximize=True or False" if len(searched) == 1 else "maximize=[True, False, ...]"
        why = f"is missing: whether a higher or a lower value of {', '.join(unknown)} is better is not known"
        hint = _misspelt_hint(unknown, searched)
        problems.add_problem(at, f"{why}. {hint}Allowed: {allowed} (study.run: {python})")
    for name in searched:
        says = metrics.metric_direction(name) if name.split("/")[-1] in metrics.METRICS else None
        if says and spec.direction(name) != says:
            word = "higher" if says == "max" else "lower"
            message = f"{spec.direction(name)!r} given for {name}, of which a {word} value is better. Allowed: {says}"
            problems.add_problem(at, f"{message}; what should go the other way needs another name")


def _misspelt_hint(unknown: list[str], searched: list[str]) -> str:
    """Return `Did you mean val/accuracy? ` for names that are nearly those of other metrics, or an empty text."""
    meant = dict.fromkeys(
        filter(None, (metrics.suggest_metric_spelling(name, searched[: searched.index(name)]) for name in unknown))
    )
    return f"Did you mean {', '.join(meant)}? " if meant else ""


def _metric_hint(name: str, valid: list[str], facts: Facts) -> str:
    """Return what to do about a metric that a study cannot have."""
    metric = metrics.METRICS.get(name.removeprefix("val/"))
    if metric and metric.needs_inferred_groups:
        kinds = [kind for kind in train_knobs()["inferred_groups"].choices if kind != "none"]
        return f"It needs train.inferred_groups: {', '.join(kinds[:-1])} or, of a frozen network, {kinds[-1]}"
    note = "test metrics cannot be used to choose. " if name.startswith("test/") else ""
    if metric and not facts.bias_classes and metric.is_available(replace(facts, bias_classes=2, aligned=(0, 1))):
        note = "It needs the bias class of each sample, and the data name no bias. "
    return f"{note}{suggest_or_list(name, valid, command=KEYS_COMMAND)}"


def single_bias_class_fault(spec: StudySpec) -> str | None:
    """Return what is wrong where the bias has only one value and something needs a bias; None: nothing is."""
    names = None if spec.training_function else spec.data_facts.bias_names
    if not names or len(names) > 1:
        return None
    without = metrics.available_metrics(replace(spec.data_facts, bias_classes=None, bias_names=None), inferred=True)
    users = [name for name in spec.objective.needed_metrics if name.removeprefix("val/") not in without]
    needing = [section["name"] for section in spec.method_sections if methods.method_needs(section).bias_key]
    users += [f"method {name}" for name in dict.fromkeys(needing)]
    if not users:
        return None
    sentence = f"the bias is {quoted(names[0])} in every row: {', '.join(users)} can tell no groups apart"
    return f"{sentence}. Name another column, or take a metric and a method that need no bias"


DEFAULT_TRIALS = 100
"""Trials of a search whose file gives no number."""

STUDY_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
STUDY_NAME_RULE = "letters, digits, '.', '_' and '-', at most 100, the first a letter or digit"


def apply_set_overrides(document: YamlDocument, assignments: Iterable[str]) -> None:
    """Apply `--set` overrides, and drop the file's keys that nothing uses after them.

    If another regulariser is set, the weight of the former one leaves the document, also where it is searched; a line
    on standard error says which keys were left out. A section whose form the search or a given configuration decides,
    or whose name is not known, stays as it is.
    """
    assignments = list(assignments)
    before = _keys_of_sections(document)
    apply_overrides(document, assignments)
    after = _keys_of_sections(document)
    for section in before.keys() & after.keys():
        changed = [text for text in assignments if text.startswith(f"{section}.")]
        gone = {f"{section}.{key}" for key in before[section] - after[section]}
        keys = (parse_assignment(text)[0].removeprefix("search.space.") for text in assignments)
        given = {".".join(key.split(".")[:2]) for key in keys}
        if dropped := _remove_keys_everywhere(document.values, gone - given):
            print_text(f"left out, as nothing uses them with {', '.join(changed)}: {', '.join(dropped)}", sys.stderr)


def _keys_of_sections(document: YamlDocument) -> dict[str, set[str]]:
    """Return the keys that each section of a document has, for sections whose form the file alone decides."""
    searched = {key for part in _space_and_configurations(document.values) for key in part}
    found = {}
    for section, catalogue in SECTION_CATALOGUES.items():
        values = document.values.get(section)
        if not isinstance(values, dict):
            continue
        name = values.get("name")
        if name not in catalogue.listed_names() or catalogue.why_unusable(name) or f"{section}.name" in searched:
            continue
        declared = section_knobs(section, values)
        deciding = {key: knob.choices for key, knob in declared.items() if knob.choices}
        is_fixed = not any(f"{section}.{key}" in searched for key in deciding)
        if is_fixed and all(values[key] in names for key, names in deciding.items() if key in values):
            found[section] = set(declared)
    return found


def _remove_keys_everywhere(values: dict[str, Value], gone: set[str]) -> list[str]:
    """Take these keys out of a file's sections and its search, and return those that were there."""
    dropped = []
    for key in sorted(gone):
        section, name = key.split(".")
        own = [(part, name) for part in (values[section],) if isinstance(part, dict)]
        places = [*own, *((part, key) for part in _space_and_configurations(values))]
        if there := [(part, at) for part, at in places if at in part]:
            dropped.append(key)
            for part, at in there:
                del part[at]
    return dropped


def _space_and_configurations(values: dict[str, Value]) -> list[dict[str, Value]]:
    """Return the parts of a file that give trials their keys: the space, the baseline, and what is enqueued."""
    search = mapping_or_empty(values.get("search"))
    lists = (search.get(key) for key in search_checks.CONFIGURATION_LIST_KEYS)
    given = chain.from_iterable(listed for listed in lists if isinstance(listed, list))
    return [part for part in (search.get("space"), search.get("baseline"), *given) if isinstance(part, dict)]


def load_study(
    spec: str,
    assignments: Iterable[str] = (),
    profile: str | None = None,
    name: str | None = None,
    *,
    one_trial: bool = False,
    reading: str | None = None,
) -> StudySpec:
    """Load the study of a shipped name or a file's path, with overrides applied and everything checked.

    Args:
        one_trial: only its own configuration is run, so that early stopping need not suit its epochs.
        reading: of its protocol, see `study.spec.paper_readings`; None: the file's own. It overrides a profile.

    Raises:
        UserError: says everything that is wrong, each with file, line, key, what was given and what is allowed.
    """
    assignments = list(assignments)
    document = _load_with_overrides(spec, assignments, profile, reading)
    if one_trial:
        _apply_alternative_labels(document, assignments)
    if name is not None:
        check_study_name(name)
        document.override_key("name", name, "--name")
    return check_and_complete_document(document, one_trial)


def _apply_alternative_labels(document: YamlDocument, assignments: list[str]) -> None:
    """Replace each section whose name is set to a label of `search.alternatives` by what stands there.

    Other keys that are set of that section are set in it again. What the search would give to trials leaves the
    document: it counts on the file's own section.
    """
    given = {text: parse_assignment(text)[0] for text in assignments}
    search = mapping_or_empty(document.values.get("search"))
    for section in SECTION_CATALOGUES:
        label = mapping_or_empty(document.values.get(section)).get("name")
        labelled = mapping_or_empty(mapping_or_empty(search.get("alternatives")).get(section)).get(str(label))
        name = f"{section}.name"
        if name in given.values() and isinstance(labelled, dict):
            document.override_key(section, dict(labelled), f"--set {name}={label}")
            others = [text for text, key in given.items() if key.startswith(f"{section}.") and key != name]
            apply_overrides(document, others)
            given_to_trials = ("space", "baseline", *search_checks.CONFIGURATION_LIST_KEYS)
            document.values["search"] = {key: value for key, value in search.items() if key not in given_to_trials}


def _load_with_overrides(
    spec: str, assignments: list[str], profile: str | None = None, reading: str | None = None
) -> YamlDocument:
    document = read_study_file(find_study_file(spec))
    readings = pop_readings(document)
    record_origin_changes(document, [*([f"--profile {profile}"] if profile else []), *assignments])
    apply_profile(document, profile)
    if reading is not None:
        apply_reading(document, readings, reading)
    apply_set_overrides(document, assignments)
    return document


def declared_readings(spec: str) -> dict[str, ProtocolReading]:
    """Return the readings of a protocol that a study file declares, by name.

    Args:
        spec: a shipped name or a path.

    Raises:
        UserError: there is no such file, or they are not well declared.
    """
    return pop_readings(read_study_file(find_study_file(spec)))


def record_origin_changes(document: YamlDocument, changes: Iterable[str]) -> None:
    """Check that an exported file is unchanged apart from overrides, and record these in its `origin`.

    The metrics in `origin` are those of the configuration without them.

    Raises:
        UserError: it is of another version, or was changed by hand.
    """
    origin = document.values.get("origin")
    if not isinstance(origin, dict):
        return
    version = origin.get("format")
    if version != EXPORT_FORMAT_VERSION:
        raise UserError(
            f"{document.key_location(('origin', 'format'))}: origin.format: {version!r} given, this version of study "
            f"reads {EXPORT_FORMAT_VERSION}. Export the configuration again with it, or read this file with the "
            "version that wrote it"
        )
    unused = origin.get("unused_seed", 0)
    if type(unused) is not int or not 0 <= unused <= MAX_SEED:
        at, given = document.key_location(("origin", "unused_seed")), f"{quote_value(unused)} given"
        raise UserError(f"{at}: origin.unused_seed: {given}, allowed: a whole number from 0 to {MAX_SEED}")
    is_changed = "changed" in origin and "digest" not in origin
    if not is_changed and origin.get("digest") != configuration_digest(document.values):
        raise UserError(
            f"{document.key_location(('origin', 'digest'))}: the configuration is not the one that was exported: it "
            "was changed by hand, or cut short. Change it by --set KEY=VALUE; for a file of your own remove `origin`"
        )
    if overrides := list(changes):
        origin.pop("digest", None)
        origin["changed"] = [*origin.get("changed", []), *overrides]


def load_resolved_and_check(path: Path, name: str | None = None) -> StudySpec:
    """Load the study of a resolved file, as in a study's own folder, checked like any study file.

    Args:
        name: of the study's folder, which may have been renamed; None: that in the file.
    """
    return check_and_complete_document(_read_resolved(path, name), has_begun=True)


def load_resolved(path: Path, name: str | None = None) -> StudySpec:
    """Load the study of a resolved file that was checked when it was made: only its form is checked again.

    No catalogue is asked, so that a study whose method is no longer installed can still be read.
    """
    return spec_of_resolved(_read_resolved(path, name))


def _read_resolved(path: Path, name: str | None) -> YamlDocument:
    document = read_study_file(path)
    if name is not None:
        document.values["name"] = name
    apply_profile(document, None)
    return document


def spec_of_resolved(document: YamlDocument) -> StudySpec:
    """Return the study of a resolved document, checked as `load_resolved` does."""
    problems = ProblemCollector(document)
    layout, _ = _check_layout(document.values, problems)
    problems.raise_if_any()
    train = validate_section(make_section_model("train", read_knobs(TrainOptions)), layout.train, ("train",), problems)
    sections = {**layout.sections, "train": train or {}}
    _check_resolved_form(layout.search, sections, problems)
    problems.raise_if_any()
    return _build_spec(layout, layout.search, sections)


def _check_resolved_form(search: SearchOptions, sections: Mapping[str, Section], problems: ProblemCollector) -> None:
    """Check what every reader of a study relies on, without a catalogue."""
    for section in ("data", "model", "method"):
        if not isinstance(sections[section].get("name"), str):
            problems.add_problem((section, "name"), "is missing")
    if search.trials is None:
        problems.add_problem(("search", "trials"), "is missing")
    for name in [search.metric] if isinstance(search.metric, str) else search.metric:
        if not re.fullmatch(r"val/\w+", name):
            problems.add_problem(("search", "metric"), f"{name!r} given, allowed is val/NAME")


def check_study_name(name: str) -> None:
    """Refuse a study name that cannot be a folder's name.

    Raises:
        UserError: says the rule.
    """
    if not STUDY_NAME_PATTERN.fullmatch(name):
        raise UserError(f"{name!r} cannot be a study's name: {STUDY_NAME_RULE}")


def check_and_complete_document(
    document: YamlDocument, one_trial: bool = False, *, has_begun: bool = False
) -> StudySpec:
    """Check a document and fill in every default.

    Args:
        one_trial: see `load_study`.
        has_begun: it is of a study that goes on, with constraints that earlier versions took.
    """
    problems = ProblemCollector(document)
    values = search_checks.collect_incumbents(document.values, problems)
    document.values = search_checks.fill_in_function_file(values, problems)
    values, wants_papers = _take_out_enqueue_papers(document.values)
    layout, values = _check_layout(values, problems)
    search, file_sections = layout.search, TrialSections(layout.sections, layout.search.alternatives)
    before = len(problems.keys)
    check_section_names(file_sections, search.space, problems)
    if len(problems.keys) > before:
        problems.raise_if_any()
    search, sections = _check_and_complete_search(search, file_sections, wants_papers, problems)
    if search.space:
        search = search_checks.adapt_to_several_metrics(search)
    given = mapping_or_empty(mapping_or_empty(values.get("search")).get("confirm"))
    has_folds = sections.own_sections["data"].get("folds") is not None
    search = search_checks.adapt_to_folds(search, has_folds, "seeds" in given, problems)
    spec = _build_spec(layout, search.model_copy(update={"alternatives": sections.alternatives}), sections.own_sections)
    _check_data_sets(spec, problems)
    check_search_metrics(spec, problems)
    if not has_begun:
        _check_constraints_within_range(spec, problems)
    check_references(spec, problems)
    if why := single_bias_class_fault(spec):
        problems.add_problem(("data", "bias"), why)
    problems.raise_if_any()
    _check_trials_and_seeds(spec, problems)
    if not one_trial:
        _check_early_stopping(spec, problems)
        _check_fresh_seeds(spec, problems)
    own, given_points = spec.trial_document({}), search_checks.given_configurations(search)
    for at, why in (
        *search_checks.trial_resource_faults(spec.resources),
        *search_checks.sampler_problems(spec.search, spec.space),
        *search_checks.all_trial_faults(own, spec.facts_of_data(own["data"])),
        *search_checks.problems_of_possible_trials(spec.sections, spec.facts_of_data, spec.space, given_points),
    ):
        problems.add_problem(at, why)
    problems.raise_if_any()
    return spec


def _check_layout(values: dict[str, Value], problems: ProblemCollector) -> tuple[StudyFileLayout, dict[str, Value]]:
    """Return the outline of a document with its defaults, and the document without what is wrong by itself.

    Such problems, and one with the name, are left for the caller to raise, with those of the rest.
    """
    layout = validate_section_as(StudyFileLayout, values, (), problems)
    if layout is None and (rest := _drop_faulty_keys(values, problems.keys)) is not None:
        layout, values = validate_section_as(StudyFileLayout, rest, (), problems), rest
    if layout is None:
        problems.raise_if_any()
    assert layout is not None
    if not STUDY_NAME_PATTERN.fullmatch(layout.name):
        problems.add_problem(("name",), f"{layout.name!r} given. A name has {STUDY_NAME_RULE}")
    threads = min(max(int(layout.resources.cpu), 1), MAX_THREADS)  # by default a trial uses all CPU cores that it takes
    train = {"threads": threads, **layout.train}
    return layout.model_copy(update={"train": train}), values


def _drop_faulty_keys(values: Section, faults: Iterable[KeyPath]) -> dict[str, Value] | None:
    """Return a document without these keys; None if other parts of it depend on one of them."""
    rest, search = dict(values), dict(mapping_or_empty(values.get("search")))
    for section, *inside in faults:
        if section == "search" and inside and inside[0] not in ("space", "alternatives", "baseline", "enqueue"):
            search.pop(inside[0], None)
            rest["search"] = search
        elif section in ("search", "name", *TRIAL_SECTIONS):
            return None
        else:
            rest.pop(section, None)
    return rest


def _build_spec(layout: StudyFileLayout, search: SearchOptions, base: Mapping[str, Section]) -> StudySpec:
    final_seeds = None if layout.final_seeds is None else tuple(layout.final_seeds)
    epochs = to_options(TrainOptions, base["train"]).epochs
    search = search.model_copy(update={"early_stopping": with_explicit_grace(search.early_stopping, epochs)})
    return StudySpec(layout.name, base, search, layout.resources, final_seeds, cast(ExportOrigin | None, layout.origin))


def _take_out_enqueue_papers(values: dict[str, Value]) -> tuple[dict[str, Value], bool]:
    """Return a document without `enqueue: papers`, and whether it had it: these configurations are known later."""
    search = values.get("search")
    if not isinstance(search, dict) or search.get("enqueue") != "papers":
        return values, False
    return {**values, "search": {**search, "enqueue": []}}, True


def _check_and_complete_search(
    search: SearchOptions, file_sections: TrialSections, wants_papers: bool, problems: ProblemCollector
) -> tuple[SearchOptions, TrialSections]:
    """Return the search and the sections with every default filled in and each value valid by itself."""
    section_forms = find_section_forms(file_sections, search.space)
    domains = replace_paper_ranges(search.space, section_forms, problems)
    search_checks.check_space(domains, file_sections, section_forms, problems)
    points = search_checks.given_configurations(search)
    sound = search_checks.check_given_configurations(points, file_sections, problems)
    unused = _unsearched_alternatives(file_sections, search.space)
    every = find_section_forms(file_sections, {**search.space, **unused}) if unused else section_forms
    more = [{key: label} for key in unused for label in file_sections.alternatives[key.removesuffix(".name")]]
    # called for its messages, which are also about alternatives that no trial has
    fill_in_sections(file_sections, every, [*sound, *more], problems)
    problems.raise_if_any()
    try:
        searched = make_search_space(domains, file_sections, section_forms)
    except CycleError as error:
        circle = error.args[1]
        problems.add_problem(("search", "space", circle[0]), f"conditions wait for each other: {', '.join(circle)}")
        problems.raise_if_any()
        raise
    cases = search_checks.combine_deciding_keys(searched, problems)
    search_checks.check_domain_values(searched, file_sections, cases, problems)
    problems.raise_if_any()
    tries_all = SAMPLER_CAPABILITIES[search.sampler].tries_every_cell
    most = search.trials or (MAX_GRID_CELLS if tries_all else DEFAULT_TRIALS)
    first, enqueue = [] if search.baseline is None else [search.baseline], search.enqueue
    there = search_checks.count_configurations(search, searched, most) if domains else max(len(first) + len(enqueue), 1)
    trials = min(most, there or most)
    if wants_papers:
        from_papers = paper_configurations(searched, file_sections)
        enqueue = from_papers[: trials - len(first)]
        if not from_papers:
            why = "'papers' given, but none of their configurations is in the space"
            problems.add_problem(("search", "enqueue"), why)
    enqueue = distinct_configurations([*first, *enqueue])[len(first) :]  # what is given twice runs once
    search = search.model_copy(update={"space": domains, "enqueue": enqueue, "trials": trials})
    search_checks.check_incumbents(search, problems)
    tried = [*cases, *search_checks.given_configurations(search).values()]
    sections = fill_in_sections(file_sections, section_forms, tried, problems)
    problems.raise_if_any()
    return search, sections


def _unsearched_alternatives(file_sections: TrialSections, domains: Mapping[str, Domain]) -> dict[str, Domain]:
    """Return, for each section with alternatives that are not searched, the domain of its name with these added."""
    widened = {}
    for section, labelled in file_sections.alternatives.items():
        key = f"{section}.name"
        chosen = (domains[key].choices if key in domains else None) or []
        if labels := [label for label in labelled if label not in chosen]:
            widened[key] = Domain(choices=[*chosen, *labels])
    return widened


def _check_trials_and_seeds(spec: StudySpec, problems: ProblemCollector) -> None:
    """Check that the numbers of trials, seeds and epochs fit together."""
    fixed = len(spec.search.enqueue) + (spec.search.baseline is not None)
    if fixed > spec.n_configurations:
        message = f"{spec.n_configurations} given, allowed is at least {fixed}: the baseline and what is enqueued"
        problems.add_problem(("search", "trials"), message)
    seeds = list(spec.seeds)
    if seeds[0] != spec.seed or len(set(seeds)) < len(seeds):
        message = f"{seeds} given, allowed are different seeds, the first of them train.seed = {spec.seed}"
        problems.add_problem(("search", "replicates"), message)
    if spec.train.with_val and spec.final_seeds is None:
        why = "nothing could be searched by then; for a last training: study train --data"
        problems.add_problem(("train", "with_val"), why)
    elif spec.train.with_val and spec.search.epoch == "best":
        message = "'best' given, allowed is last with train.with_val: no validation split is left to choose an epoch by"
        problems.add_problem(("search", "epoch"), message)


def _check_early_stopping(spec: StudySpec, problems: ProblemCollector) -> None:
    """Check that early stopping compares trials before their last epoch."""
    rule = spec.search.early_stopping
    if rule.name != "none" and (first := RungSchedule(rule, spec.epochs).grace_epochs) > spec.epochs:
        at = ("search", "early_stopping", "grace")
        problems.add_problem(at, f"{first} given, allowed is at most train.epochs = {spec.epochs}")


def _check_fresh_seeds(spec: StudySpec, problems: ProblemCollector) -> None:
    """Check that there are seeds behind those of the search: for its confirmation, then for a final training."""
    room = MAX_SEED - N_FINAL_SEEDS
    last = confirm_seeds(spec.seeds, spec.search.confirm, spec.folds).stop - 1
    if spec.final_seeds is None and last > room:
        key = ("train", "seed") if isinstance(spec.search.replicates, int) else ("search", "replicates")
        message = f"the study takes seeds up to {last}, allowed is at most {room}: its final training takes later ones"
        problems.add_problem(key, message)


def _check_data_sets(spec: StudySpec, problems: ProblemCollector) -> None:
    """Check that every data set can be described; for the user's own, their tables are read."""
    for section in (spec.trial_document({})["data"], *spec.trial_data_sections):
        try:
            spec.facts_of_data(section)
        except UserError as error:
            named = re.match(r"data\.(\w+): ", text := str(error))  # an error about one key
            problems.add_problem(("data", named[1]) if named else ("data",), text[named.end() :] if named else text)
    problems.raise_if_any()


def load_for_cluster(spec: str, assignments: Iterable[str] = ()) -> StudySpec:
    """Load a study that is to run on a cluster, as `load_study` does.

    For an exported configuration whose data are not here, only the form is checked: it was checked when it was
    exported, and is again where it runs.

    Raises:
        UserError: see `study.spec.load.load_study`.
    """
    assignments = list(assignments)
    if not isinstance(read_study_file(find_study_file(spec)).values.get("origin"), dict):
        return load_study(spec, assignments)
    study = spec_of_resolved(_load_with_overrides(spec, assignments))
    try:
        study.facts_of_data(study.base["data"])
    except UserError:
        return study
    return load_study(spec, assignments)
