"""Check that validation can have the metrics that a study names; otherwise all its trials would count as diverged."""

from collections.abc import Iterator, Mapping, Sequence

from study import data
from study.data import Dataset, Facts, cells
from study.data.cells import DatasetCounts, SplitCounts
from study.errors import UserError
from study.knobs import Section
from study.metrics import CELLS_BY_GROUP_METRIC, suggest_metric_spelling
from study.metrics.selection_rules import BIAS_LABEL_METRICS, SELECTION_RULES
from study.spec import StudySpec
from study.text import quoted

# A gap between groups is measured within a class: equalized odds (FSCL paper Eq. 6) compares the groups of every class,
# equal opportunity those of the positive class, class 1. A class has a gap if two of its groups or more have samples.

ClassAndBiasClass = tuple[int | None, int | None]
"""A class and a bias class; None: any."""

PARITY_METRICS = ("demographic_parity", "accuracy_parity")
METRICS_NEEDING_ALL_CELLS = ("unbiased_accuracy", "worst_group_accuracy")


def empty_cells_that_forbid_metric(
    metric: str, split: SplitCounts, aligned_cells: Sequence[Sequence[bool]] | None
) -> list[ClassAndBiasClass]:
    """Return the empty cells that keep a metric from having a value on a split; an empty list where it has one.

    Args:
        metric: its name in `METRICS`. Those of features and of inferred groups lack nothing.
        aligned_cells: for each class whether it goes with each bias class; None: no sample is aligned.
    """
    if metric == "auc":
        return [(y, None) for y, count in enumerate(split.classes) if not count]
    if not (cells := split.cells):
        return []
    table = {(y, s): count for y, row in enumerate(cells) for s, count in enumerate(row)}
    if metric in ("equalized_odds", "equalized_odds_difference"):
        return [cell for y, row in enumerate(cells) for cell in _incomparable_cells(y, row)]
    if metric == "equal_opportunity":
        return _incomparable_cells(1, cells[1])
    if metric in PARITY_METRICS:
        return [(None, s) for _, s in _incomparable_cells(0, [sum(column) for column in zip(*cells, strict=True)])]
    if metric in CELLS_BY_GROUP_METRIC:
        wanted = [CELLS_BY_GROUP_METRIC[metric]]
    elif metric in METRICS_NEEDING_ALL_CELLS:
        wanted = list(table)
    elif metric in ("aligned_accuracy", "conflicting_accuracy") and aligned_cells:
        wanted = [(y, s) for y, s in table if aligned_cells[y][s] == (metric == "aligned_accuracy")]
    else:
        return []
    return [] if any(table.get(cell) for cell in wanted) else list[ClassAndBiasClass](wanted)


def _incomparable_cells(of_class: int, row: Sequence[int]) -> list[ClassAndBiasClass]:
    """Return the empty cells of a class of which no two groups can be compared."""
    if sum(count > 0 for count in row) >= 2:
        return []
    return [(of_class, s) for s, count in enumerate(row) if not count]


def misspelt_metric_warnings(spec: StudySpec) -> list[str]:
    """Return warnings of metrics of a user's function that are nearly spelt as others; what it yields is not known yet.

    The others are those of this software and of the same study.
    """
    if not spec.training_function:
        return []
    named = spec.objective.needed_metrics
    meant = {name: suggest_metric_spelling(name, named[:place]) for place, name in enumerate(named)}
    return [
        f"{name} is no metric of this software. Did you mean {near}? If not, the function must yield it by this name"
        for name, near in meant.items()
        if near
    ]


MAX_NAMED_CELLS = 3
"""Empty cells that a message names; the others are counted."""

SUGGESTED_METRICS = (
    "shrunk_unbiased_log_loss",
    "shrunk_unbiased_accuracy",
    *BIAS_LABEL_METRICS,
    "balanced_accuracy",
    "accuracy",
)
"""Metrics that a message proposes instead, where the split has them."""

SINGLE_CELL_METRICS = ("worst_group_accuracy", "equalized_odds", "equalized_odds_difference", "equal_opportunity")
"""Metrics that a single cell can decide: the user is told of each cell that they leave out."""


def check_study_metrics(spec: StudySpec) -> None:
    """Refuse metrics that validation cannot have, as far as its labels are known without its samples.

    Raises:
        UserError: says which metric, which cells are empty, and which metrics are possible.
    """
    if not spec.training_function:
        for section in spec.trial_data_sections:
            check_metrics_of_counts(spec, section, cells.count_cells_of_dataset(section))


def check_metrics_of_loaded_data(spec: StudySpec, datasets: Mapping[str, Dataset]) -> None:
    """Refuse metrics that the validation splits of loaded data sets cannot have; some labels are known only then.

    Args:
        datasets: by `data.section_key`.

    Raises:
        UserError: see `check_study_metrics`.
    """
    for section in [] if spec.training_function else spec.trial_data_sections:
        dataset = datasets[data.section_key(section)]
        val = cells.count_cells_of_split(dataset.splits["val"], dataset.facts.facts_of_split("val"))
        check_metrics_of_counts(spec, section, DatasetCounts.from_facts({"val": val}, dataset.facts))


def check_metrics_of_counts(spec: StudySpec, section: Section, counts: DatasetCounts) -> None:
    """Check the metrics against the cells of one data set, as `study.data.cells.count_cells_of_dataset` returns them.

    Cells that are not known pass.

    Raises:
        UserError: validation has no sample of a cell that a metric needs.
    """
    if counts.unknown or "val" not in counts.splits:
        return
    val, facts = counts.splits["val"], spec.facts_of_data(section).facts_of_split("val")
    for place, metric in _metrics_by_key(spec):
        if empty := empty_cells_that_forbid_metric(metric, val, counts.aligned_cells):
            others = (name for name in SUGGESTED_METRICS if name in spec.metrics_by_data_set[0] and name != metric)
            possible = [name for name in others if not empty_cells_that_forbid_metric(name, val, counts.aligned_cells)]
            raise UserError(
                f"{place}: val/{metric} given, which validation cannot have: it has no sample of "
                f"{empty_cells_in_words(empty, facts)}. Give validation such samples (data.val, data.val_share, or "
                f"rows of your own), or take another metric: {', '.join(f'val/{name}' for name in possible)}"
            )


def empty_cell_warnings(spec: StudySpec, counts: DatasetCounts, facts: Facts) -> list[str]:
    """Return warnings of cells of validation without a sample, which metrics by group leave out.

    Args:
        counts: as `study.data.cells.count_cells_of_dataset` returns them.
        facts: of the validation split.
    """
    table = counts.splits["val"].cells
    names = [name for _, name in _metrics_by_key(spec) if name in SINGLE_CELL_METRICS]
    empty = list[ClassAndBiasClass]()
    for y, row in enumerate(table or []):
        empty += ((y, s) for s, count in enumerate(row) if not count)
    if not names or not empty:
        return []
    told = ", ".join(f"val/{name}" for name in dict.fromkeys(names))
    return [
        f"validation has no sample of {empty_cells_in_words(empty, facts)}: {told} cannot see how a model treats them, "
        "however badly it does. Give validation such samples, or expect nothing of these groups"
    ]


def empty_cells_in_words(empty: Sequence[ClassAndBiasClass], facts: Facts) -> str:
    """Name empty cells in words, with the names of classes and groups."""
    shown = [_cell_in_words(cell, facts) for cell in empty[:MAX_NAMED_CELLS]]
    more = [f"{len(empty) - MAX_NAMED_CELLS} more cells"] if len(empty) > MAX_NAMED_CELLS else []
    return " or of ".join([*shown, *more])


def _cell_in_words(cell: ClassAndBiasClass, facts: Facts) -> str:
    y, s = cell
    of_class = None if y is None else f"class {quoted(facts.class_names[y]) if facts.class_names else y}"
    of_group = None if s is None else f"group {quoted(facts.bias_names[s]) if facts.bias_names else s}"
    return " in ".join(part for part in (of_class, of_group) if part)


def _metrics_by_key(spec: StudySpec) -> Iterator[tuple[str, str]]:
    """Yield each metric of validation that the study names, after the key where it stands."""
    goal = spec.objective
    yield from (("search.metric", name) for name in map(_name_without_val, goal.metrics) if name)
    yield from (("search.constraints", name) for limit in goal.constraints if (name := _name_without_val(limit.metric)))
    asked = spec.search.confirm.rules
    named = asked if isinstance(asked, list) else []
    for rule in SELECTION_RULES:
        if rule.name in named:
            names = [rule.metric, *([rule.limit.split()[0]] if rule.limit else [])]
            yield from (("search.confirm.rules", name) for name in names)


def _name_without_val(reported: str) -> str | None:
    split, _, name = reported.partition("/")
    return name if split == "val" else None
