"""Plan a study: what it would run, before anything starts."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict, cast

from study import data
from study.analysis.statistics import formatting
from study.commands import check_metrics
from study.data import cells, table_findings
from study.data.cells import DatasetCounts, SplitCounts
from study.data.dataset import Facts
from study.data.positive_class import positive_class_name, positive_class_warnings
from study.data.table_findings import ColumnFinding
from study.errors import UserError
from study.knobs import Scalar, Section
from study.metrics import group_names
from study.metrics.selection_rules import SELECTION_RULES
from study.ranking.chosen_epoch import chosen_epoch_text
from study.ranking.json_documents import FLATTEN_FIELDS
from study.ranking.rule_picks import max_extra_picked_configurations
from study.spec import StudySpec, search_checks
from study.spec.configuration import are_same_configuration
from study.spec.reference_models import requested_reference_names
from study.spec.rungs import RungSchedule
from study.spec.schema import ConfirmOptions, SearchOptions
from study.text import format_parameter, format_range_ends

FEW_CELL_SAMPLES = 10
"""Samples of a cell below which its accuracy says little."""

FEW_CONFLICTING_SAMPLES = 17
"""Conflicting validation samples below which more trials chose worse configurations, see
tests/benchmarks/results/draft-space.md."""

SMALL_CELLS_TEXT = f"pairs of class and bias class with fewer than {FEW_CELL_SAMPLES} training samples"

CONFLICTING_SAMPLES_REMEDIES = {
    "biased": "data.val=unbiased, a larger data.val_share, or ",
    "unbiased": "a larger data.val_share or ",
}
"""How to give validation more conflicting samples, by `data.val`; a message continues with "more data"."""

MAX_CELL_COUNT_ROWS = 16
"""Cells, and classes, up to which the text shows the count of each; the JSON document always has them all."""

MAX_LISTED_SMALL_CELLS = 50
"""Small cells up to which the text lists each."""

CELL_SENSITIVE_METRICS = (
    "unbiased_accuracy",
    "worst_group_accuracy",
    "equalized_odds",
    "equalized_odds_difference",
    "equal_opportunity",
)
"""Metrics in which a cell of few samples counts as much as one of many, or alone."""


def small_cell_warnings(spec: StudySpec, cells: DatasetCounts, facts: Facts) -> list[str]:
    """Return which of the study's metrics would be noise on the small cells of validation, and what would be better."""
    val, own = cells.splits["val"], facts.facts_of_split("val")
    found, conflicting = list[str](), val.conflicting
    if conflicting is not None and spec.folds and conflicting * spec.folds < FEW_CONFLICTING_SAMPLES:
        found.append(
            f"all folds together have only about {_sample_count_text(conflicting * spec.folds)} in conflict with the "
            "bias: configurations are hardly told apart. Better: more data"
        )
    elif conflicting is not None and not spec.folds and conflicting < FEW_CONFLICTING_SAMPLES:
        found.append(
            f"val has only {_sample_count_text(conflicting)} in conflict with the bias: configurations are hardly told "
            f"apart. Better: {CONFLICTING_SAMPLES_REMEDIES.get(str(spec.base['data'].get('val')), '')}more data"
        )
    if val.smallest is None or val.smallest >= FEW_CELL_SAMPLES:
        return found
    usable = [rule for rule in SELECTION_RULES if rule.required_labels == "bias labels" and rule.is_available(own)]
    robust = [rule.metric for rule in usable if not rule.limit and rule.metric not in CELL_SENSITIVE_METRICS]
    better = [f"val/{name}" for name in robust]
    remedies = [*([f"search by {' or '.join(better)}"] if better else []), "give validation more samples"]
    return found + [
        f"val/{name} may tell configurations badly apart: "
        f"the smallest cell of val has {_sample_count_text(val.smallest)}, "
        f"fewer than {FEW_CELL_SAMPLES}. Better: {', or '.join(remedies)}"
        for name in (name.split("/")[1] for name in spec.objective.needed_metrics)
        if name in CELL_SENSITIVE_METRICS and (name != "unbiased_accuracy" or _has_uneven_cells(val))
    ]


def _has_uneven_cells(split: SplitCounts) -> bool:
    """Return whether the mean over a split's cells has at least twice the standard error of the accuracy."""
    filled = [count for row in split.cells or () for count in row if count]
    return math.sqrt(sum(1 / count for count in filled)) / len(filled) >= 2 / math.sqrt(split.samples)


def group_metric_meanings(spec: StudySpec) -> dict[str, str]:
    """Return the class and bias class, in words, of each metric of one group that the study needs."""
    facts = spec.data_facts
    names, needed = (facts.class_names, facts.bias_names), spec.objective.needed_metrics
    told = {name: group_names.group_metric_in_words(name, *names) for name in needed}
    return {name: words for name, words in told.items() if words}


def cell_count_lines(cells: DatasetCounts) -> Iterator[str]:
    """Yield the counts of a data set as lines of text."""
    if positive := positive_class_name(cells.class_names):
        yield f"positive class: {positive}"
    if cells.unknown:
        yield f"samples: not counted: {cells.unknown}"
        return
    splits, rows = cells.splits, list(_cell_count_rows(cells))
    few = list[str]()
    if len(rows) > MAX_CELL_COUNT_ROWS:
        if len(splits["train"].classes) > MAX_CELL_COUNT_ROWS:
            yield from (f"{name}: {_split_counts_text(split)}" for name, split in splits.items())
            return
        few = list(_small_cell_lines(cells))
        rows = [*_aligned_and_conflicting_rows(splits), *_cell_count_rows(cells, by_bias=False)]
    rows.insert(0, ("samples", [split.samples for split in splits.values()]))
    width = max(len(label) for label, _ in rows) + 2
    yield f"{'':<{width}}" + "".join(f"{name:>9}" for name in splits)
    for label, numbers in rows:
        yield f"{label:<{width}}" + "".join(f"{count:>9}" for count in numbers)
    yield from few


def _aligned_and_conflicting_rows(splits: Mapping[str, SplitCounts]) -> Iterator[tuple[str, list[int | str]]]:
    """Yield the samples with the bias, against it and without a class, where there are such."""
    for label in ("aligned", "conflicting", "unlabelled"):
        counts = [getattr(split, label) for split in splits.values()]
        if any(counts):
            yield label, ["-" if count is None else count for count in counts]


def _small_cell_lines(cells: DatasetCounts) -> Iterator[str]:
    """Yield each class's cells of fewer than `FEW_CELL_SAMPLES` training samples; their number if many."""
    splits = [split.cells for split in cells.splits.values() if split.cells]
    few = {
        (y, s): "/".join(str(table[y][s]) for table in splits)
        for y, row in enumerate(cells.splits["train"].cells or ())
        for s, count in enumerate(row)
        if count < FEW_CELL_SAMPLES
    }
    if len(few) > MAX_LISTED_SMALL_CELLS:
        number = sum(map(len, cells.splits["train"].cells or ()))
        yield f"{SMALL_CELLS_TEXT}: {len(few)} of {number}"
    elif few:
        names = "/".join(name for name, split in cells.splits.items() if split.cells)
        yield f"{SMALL_CELLS_TEXT} ({names}):"
        for y, of_class in enumerate(_class_names_or_codes(cells)):
            if of := [f"{_bias_name(cells, s)} {counts}" for (of_y, s), counts in few.items() if of_y == y]:
                yield f"  {of_class}: {', '.join(of)}"


def _cell_count_rows(cells: DatasetCounts, by_bias: bool = True) -> Iterator[tuple[str, list[int | str]]]:
    """Yield a label and the count of each split for each cell, or each class where no split has bias labels.

    Args:
        by_bias: whether cells are told apart; else each class.
    """
    splits = cells.splits
    biased = next((split.cells for split in splits.values() if split.cells), None) if by_bias else None
    for y, of_class in enumerate(_class_names_or_codes(cells)):
        if biased is None:
            yield of_class, [split.classes[y] for split in splits.values()]
        for s in range(len(biased[0]) if biased else 0):
            counts: list[int | str] = [split.cells[y][s] if split.cells else "-" for split in splits.values()]
            yield f"{of_class}, {_bias_name(cells, s)}", counts


def _class_names_or_codes(cells: DatasetCounts) -> Sequence[str]:
    return cells.class_names or [f"class {code}" for code in range(len(cells.splits["train"].classes))]


def _bias_name(cells: DatasetCounts, code: int) -> str:
    return cells.bias_names[code] if cells.bias_names else f"bias {code}"


def _split_counts_text(split: SplitCounts) -> str:
    text = _sample_count_text(split.samples)
    text += f" ({split.unlabelled} without a class)" if split.unlabelled else ""
    if split.conflicting is not None:
        text += f", {split.aligned} aligned, {split.conflicting} conflicting"
    if split.cells is None:
        return f"{text}; classes of {min(split.classes)} to {max(split.classes)}"
    number = len(split.cells) * len(split.cells[0])
    empty = f", {split.empty} of {number} empty" if split.empty else ""
    return f"{text}; cells of {split.smallest} to {split.largest}{empty}"


def _sample_count_text(count: int) -> str:
    return f"{count} sample" if count == 1 else f"{count} samples"


@dataclass(frozen=True)
class Budget:
    """The trials and epochs of a study, the most if no trial were pruned and what is expected with early stopping.

    Attributes:
        trials: by stage, at most.
        front: how many of a front run on fresh seeds at most; None: there is none.
        rule_trials: those that rerun what other rules pick.
    """

    trials: Mapping[str, int]
    folds: int | None
    margin: str | None
    references: Sequence[str]
    front: int | None
    rule_trials: Mapping[str, int]
    epochs: Mapping[str, int]


class SearchedKey(TypedDict, total=False):
    """The domain of a searched key: a range or choices, and every condition under which a trial has the key."""

    low: float
    high: float
    log: bool
    step: float
    choices: list[Scalar]
    when: Mapping[str, list[Scalar]]


@dataclass(frozen=True)
class Plan:
    """What a study would run: its data, what it searches and chooses by, its budget.

    Attributes:
        cells, reading, columns: of each of `data`: how many samples of what, how its files are read, what was found in
            the columns of a table.
        features: what those of frozen networks take.
        configurations: how many there are; None: without end.
        labels: by key, the names that labels of `search.alternatives` stand for.
        baseline_outside: the baseline's values that the search cannot give.
        limits: what ends the search earlier.
    """

    name: str
    hash: str
    function: str | None
    data: Sequence[Mapping[str, object]]
    titles: Sequence[str]
    classes: int | None
    bias_classes: int | None
    cells: Sequence[DatasetCounts]
    reading: Sequence[Sequence[str]]
    columns: Sequence[Sequence[ColumnFinding]]
    features: Sequence[str]
    warnings: Sequence[str]
    space: Mapping[str, SearchedKey]
    labels: Mapping[str, Mapping[str, str]]
    configurations: int | None
    baseline: Mapping[str, object] | None
    baseline_outside: Sequence[str]
    enqueued: int
    metric: str
    constraints: Sequence[str]
    chosen_by: str | None
    groups: Mapping[str, str]
    epoch: str
    limits: Sequence[str]
    sampler: str
    early_stopping: Mapping[str, object]
    budget: Budget = field(metadata=FLATTEN_FIELDS)
    epochs_per_trial: int
    resources_per_trial: Mapping[str, object]


def plan_study(spec: StudySpec) -> Plan:
    """Return configurations, trials and epochs of a study, and the samples of its data.

    Raises:
        UserError: the validation split cannot have a metric that the study looks at.
    """
    search, facts, goal, stopping = spec.search, spec.data_facts, spec.objective, spec.search.early_stopping
    trial_data_sections = [] if spec.training_function else spec.trial_data_sections
    samples = [_count_samples(spec, section) for section in trial_data_sections]
    counts = [counted for counted, _ in samples]
    warnings = dict.fromkeys(warning for _, warnings in samples for warning in warnings)
    threads = "searched" if "train.threads" in search.space else spec.train.threads
    return Plan(
        name=spec.name,
        hash=spec.hash,
        function=spec.training_function,
        data=trial_data_sections,
        titles=spec.dataset_titles,
        classes=None if spec.training_function else facts.classes,
        bias_classes=facts.bias_classes,
        cells=counts,
        reading=[data.describe_column_reading(section) for section in trial_data_sections],
        columns=[data.column_findings(section) for section in trial_data_sections],
        features=_feature_extraction_notes(spec, counts),
        warnings=[*_missing_weights_warnings(spec), *check_metrics.misspelt_metric_warnings(spec), *warnings],
        space={key: _searched_key(spec, key) for key in search.space},
        labels={key: names for key in search.space if (names := _names_behind_labels(spec, key))},
        configurations=search_checks.count_configurations(search, spec.space),
        baseline=search.baseline,
        baseline_outside=spec.space.values_outside(search.baseline or {}),
        enqueued=len(search.enqueue),
        metric=", ".join(f"{name} ({mode})" for name, mode in zip(goal.metrics, goal.directions, strict=True)),
        constraints=search.constraints,
        chosen_by=goal.front_choice_text if goal.has_several_metrics else None,
        groups=group_metric_meanings(spec),
        epoch=chosen_epoch_text(goal),
        limits=[*_search_limits(search)],
        sampler=search.sampler,
        early_stopping=stopping.model_dump() | {"words": RungSchedule(stopping, spec.epochs).describe_in_words},
        budget=plan_budget(spec),
        epochs_per_trial=spec.epochs,
        resources_per_trial=spec.resources.model_dump() | {"threads": threads},
    )


def _search_limits(search: SearchOptions) -> Iterator[str]:
    """Yield the keys of `search` that may end it before its number of trials, with their values."""
    if search.time:
        yield f"time {formatting.format_duration(search.time)}"
    if search.gpu_hours:
        yield f"gpu_hours {search.gpu_hours:g}"


def plan_budget(spec: StudySpec) -> Budget:
    """Return the trials of a study by stage and the epochs of all.

    Expected is that early stopping prunes as many as it means to (`study.spec.rungs.RungSchedule`).
    """
    search = spec.search
    rungs = RungSchedule(spec.search.early_stopping, spec.epochs)
    seeds = len(spec.runs_of_configuration())
    baseline = int(search.baseline is not None)
    confirm = count_confirm_trials(spec, search.confirm, spec.n_configurations)
    reported = [f"val/{name}" for name in spec.metrics_by_data_set[0]]
    others = list(spec.incumbents)
    if search.baseline is not None:
        others = [params for params in others if not are_same_configuration(params, search.baseline)]
    whole = baseline + len(others)  # what has to be beaten runs whole
    complete = whole + round((spec.n_configurations - whole) * rungs.expected_complete_share)
    most, expected = (
        count_rule_trials(spec, search.confirm, count, reported) for count in (spec.n_configurations, complete)
    )
    pruned_epochs = (spec.n_configurations - whole) * seeds * rungs.expected_epochs
    return Budget(
        {
            "baseline": baseline,
            "search": spec.n_configurations - baseline,
            "replicate": spec.n_configurations * (seeds - 1),
            "confirm": confirm,
            "rule": most,
        },
        spec.folds,
        spec.margin_rule_text,
        list(requested_reference_names(spec)),
        search.confirm.front if search.confirm.top and spec.objective.has_several_metrics else None,
        {"most": most, "expected": expected},
        {
            "most": (spec.n_configurations * seeds + confirm + most) * spec.epochs,
            "expected": round((whole * seeds + confirm + expected) * spec.epochs + pruned_epochs),
        },
    )


def _missing_weights_warnings(spec: StudySpec) -> list[str]:
    """Return a warning where a file of weights that the study names is not there; its trials could not begin."""
    try:
        _ = spec.initial_weight_files
    except UserError as error:
        return [f"the study cannot run yet: {error}"]
    return []


def _feature_extraction_notes(spec: StudySpec, counted: Sequence[DatasetCounts]) -> list[str]:
    """Return what the features of each frozen network and data set take; nothing where the weights are not there."""
    if not any(model.get("frozen") for model in spec.model_sections) or _missing_weights_warnings(spec):
        return []
    import torch

    from study.models import frozen_networks
    from study.training import features
    from study.training.device import best_available_device

    trunks = [frozen_networks.underlying_network_section(model) for model in spec.model_sections if model.get("frozen")]
    sections = [model for at, model in enumerate(trunks) if model not in trunks[:at]]
    device, found = best_available_device() if spec.resources.gpu else torch.device("cpu"), []
    for section, counts in zip(spec.trial_data_sections, counted, strict=True):
        facts = spec.facts_of_data(section)
        if counts.unknown or facts.is_table:
            continue
        pictures = sum(split.samples for split in counts.splits.values())
        for model in sections:
            found.append(features.describe_feature_cost(model, facts, pictures, device))
    return found


def count_confirm_trials(spec: StudySpec, confirm: ConfirmOptions, configurations: int) -> int:
    """Return the number of confirm trials for the best of `configurations`, the best incumbent and the baseline.

    With several metrics, or where an incumbent is enqueued, it is the most that there can be.
    """
    baseline = int(spec.search.baseline is not None)
    front = confirm.front if spec.objective.has_several_metrics else None
    most = min(max(confirm.top, front or 0) + spec.has_searched_incumbents, configurations - baseline)
    return (most + baseline) * confirm.seeds * (spec.folds or 1) if confirm.top else 0


def count_rule_trials(spec: StudySpec, confirm: ConfirmOptions, configurations: int, reported: Collection[str]) -> int:
    """Return the number of trials for the picks of other rules, at most: several rules may pick the same.

    Args:
        reported: the metrics that trials report.
    """
    if not confirm.rules:
        return 0
    return max_extra_picked_configurations(spec, confirm, configurations, reported) * confirm.seeds * (spec.folds or 1)


def plan_text(plan: Plan) -> str:
    """Return a plan as text."""
    budget, resources = plan.budget, plan.resources_per_trial
    trials, epochs = budget.trials, budget.epochs
    replicates = f" + {trials['replicate']} on further seeds" if trials["replicate"] else ""
    rule = budget.rule_trials
    rules = (
        f" and at most {rule['most']} (expected: {rule['expected']}) for what other rules pick" if rule["most"] else ""
    )
    if rules and not trials["confirm"]:
        rules += " (search.confirm.rules=false leaves these out)"
    confirm = f"{trials['confirm']} to confirm" + (" on every fold" if budget.folds else "")
    if budget.front:
        confirm = f"at most {confirm} (the whole front up to {budget.front} configurations)"
    elif budget.margin:
        confirm = f"at most {confirm}"
    kind = f" of kind {resources['accelerator']}" if resources.get("accelerator") else ""
    limited = f" where {' and '.join(plan.constraints)}" if plan.constraints else ""
    limits = [f"the search ends earlier at: {', '.join(plan.limits)}"] if plan.limits else []
    lines = [
        f"study {plan.name} ({plan.hash}), nothing is started",
        f"function: {plan.function}"
        if plan.function
        else f"data: {', '.join(plan.titles)}: {'; '.join(map(_section_text, plan.data))}",
        *_data_set_lines(plan),
        _space_text(plan),
        *(f"  {key}: {_domain_text(key, domain, plan.labels)}" for key, domain in plan.space.items()),
        *_baseline_outside_space_lines(plan),
        f"metric: {plan.metric}{limited}; sampler {plan.sampler}",
        *(f"  {name}: {words}" for name, words in plan.groups.items()),
        *([f"of the front is chosen: {plan.chosen_by}"] if plan.chosen_by else []),
        *([f"chosen is {budget.margin}"] if budget.margin else []),
        f"a trial's value is that {plan.epoch}",
        f"early stopping: {plan.early_stopping['words']}",
        *([f"fitted without a search, to compare with: {', '.join(budget.references)}"] if budget.references else []),
        f"trials: {trials['baseline']} baseline + {trials['search']} searched{replicates}, then {confirm}{rules}",
        *limits,
        f"epochs: {plan.epochs_per_trial} per full trial; about {epochs['expected']} in all, at most {epochs['most']}",
        f"each trial takes {resources['cpu']:g} CPU, {resources['gpu']:g} GPU{kind}; "
        f"train.threads {resources['threads']}",
        *plan.features,
        *(f"warning: {warning}" for warning in plan.warnings),
    ]
    return "\n".join(lines)


def _count_samples(spec: StudySpec, section: Section) -> tuple[DatasetCounts, list[str]]:
    """Return the cells of a data set, and warnings."""
    counts, facts = cells.count_cells_of_dataset(section), spec.facts_of_data(section)
    of_classes = [*data.user_file_notes(section), *positive_class_warnings(section, facts)]
    if counts.unknown:
        return counts, of_classes
    check_metrics.check_metrics_of_counts(spec, section, counts)
    empty = check_metrics.empty_cell_warnings(spec, counts, facts.facts_of_split("val"))
    small = small_cell_warnings(spec, counts, facts)
    return counts, [
        *of_classes,
        *cells.warnings_from_counts(counts, has_folds=bool(section.get("folds"))),
        *empty,
        *small,
    ]


def _space_text(plan: Plan) -> str:
    if not plan.space:
        return "search space: empty, one configuration"
    if plan.configurations is None:
        return "search space:"
    return f"search space, {plan.configurations} different configurations; when all were tried, the search ends:"


def _baseline_outside_space_lines(plan: Plan) -> list[str]:
    """Return which values of the baseline the search cannot give."""
    outside = plan.baseline_outside
    verb = "lies" if len(outside) == 1 else "lie"
    told = f"  the baseline's {' and '.join(outside)} {verb} outside this space, so the search tries no such value"
    return [told] if outside else []


def _data_set_lines(plan: Plan) -> list[str]:
    """Return lines on the samples of each data set, the sets told apart by what differs."""
    sections = plan.data
    lines = []
    each = zip(sections, plan.reading, plan.columns, plan.cells, strict=True)
    for section, reading, columns, counts in each:
        own = {key: value for key, value in section.items() if any(other.get(key) != value for other in sections)}
        lines += [f"with {_section_text(own)}:"] if own else []
        lines += [f"  {line}" for line in reading]
        lines += [f"  {line}" for line in table_findings.findings_with_heading(columns)]
        lines += [f"  {line}" for line in cell_count_lines(counts)]
        lines += [f"  {text}"] if (text := cells.aligned_pairs_text(section, counts)) else []
    return lines


def _names_behind_labels(spec: StudySpec, key: str) -> dict[str, str]:
    choices = spec.search.space[key].choices or ()
    return {str(choice): name for choice in choices if (name := spec.name_behind_label(key, choice))}


def _searched_key(spec: StudySpec, key: str) -> SearchedKey:
    described = cast(SearchedKey, spec.search.space[key].model_dump(exclude_none=True, exclude={"when"}))
    if condition := spec.space.condition_of_key(key):
        described["when"] = condition
    return described


def _section_text(section: Mapping[str, object]) -> str:
    """Return the section's keys and values as `--set` takes them, without those that are not set."""
    return ", ".join(f"{key}={value}" for key, value in section.items() if value is not None and value != [])


def _domain_text(key: str, domain: SearchedKey, labels: Mapping[str, Mapping[str, str]]) -> str:
    where = " and ".join(
        f"{key} is {' or '.join(map(format_parameter, values))}" for key, values in domain.get("when", {}).items()
    )
    return f"{_domain_values_text(domain, labels.get(key, {}))}{f', where {where}' if where else ''}"


def _choice_text(choice: Scalar, name: str | None) -> str:
    """Return a choice, behind a label the name that it stands for."""
    return format_parameter(choice) + (f" ({name})" if name else "")


def _domain_values_text(domain: SearchedKey, labels: Mapping[str, str]) -> str:
    if "choices" in domain:
        names = ", ".join(_choice_text(choice, labels.get(str(choice))) for choice in domain["choices"])
        return names if len(domain["choices"]) == 1 else f"one of {names}"
    step = f", step {domain['step']:g}" if "step" in domain else ""
    return f"{format_range_ends(domain['low'], domain['high'])}{', log' if domain['log'] else ''}{step}"
