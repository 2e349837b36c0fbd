"""A suite: methods x data sets x searches at equal budget, each search an ordinary study.

One search gives every selection rule's pick, so rules need no searches of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue

from study.errors import KEYS_COMMAND, NAMES_COMMAND, UserError, suggest_or_list
from study.knobs import MAX_INTEGER, Section, Value
from study.metrics import available_metrics
from study.metrics.selection_rules import SELECTION_RULES
from study.spec.key_errors import ProblemCollector, validate_section_as
from study.spec.load import STUDY_NAME_PATTERN, STUDY_NAME_RULE, check_and_complete_document
from study.spec.schema import PositiveInteger, RuleName
from study.spec.section_models import StrictModel
from study.spec.study_spec import StudySpec
from study.spec.yaml_document import (
    STUDY_FILE_SUFFIXES,
    KeyPath,
    YamlDocument,
    apply_profile,
    find_study_file,
    read_study_file,
    shipped_studies_folder,
)

JsonObject = dict[str, JsonValue]


class SuiteMethod(StrictModel):
    """A row of the table: a `method` section, the `space` that is searched for it, and sections of its own.

    `enqueue` are configurations that each of its searches tries first; they count as trials.
    """

    method: JsonObject
    model: JsonObject | None = None
    train: JsonObject = Field(default_factory=dict)
    space: JsonObject = Field(default_factory=dict)
    enqueue: list[JsonObject] = Field(default_factory=list)


class BaseSearch(StrictModel):
    """Keys of `search` that are the same for every method."""

    sampler: JsonValue = None
    metric: JsonValue = None
    epoch: JsonValue = None
    epoch_window: JsonValue = None
    early_stopping: JsonValue = None
    concurrency: JsonValue = None
    retries: JsonValue = None


class SuiteBase(StrictModel):
    """Sections that are the same for every method, unless a method's own section says otherwise."""

    model: JsonObject | None = None
    train: JsonObject = Field(default_factory=dict)
    search: BaseSearch = BaseSearch()
    resources: JsonObject = Field(default_factory=dict)


class SuiteBudget(StrictModel):
    """Budget of each search: so many `trials` of so many `epochs`.

    What the rules pick is judged on `seeds` fresh training seeds.
    """

    trials: PositiveInteger
    epochs: PositiveInteger
    seeds: Annotated[int, Field(ge=2, le=1000)]


class SuiteLayout(StrictModel):
    """Outline of a suite file; the studies that its sections become check what these hold.

    `searches` is the number of independent searches of a method on a data set, each with a sampler's seed and training
    seeds of its own; they share the data set's split. `judge` is the test metric of the table; null: that of
    `base.search.metric`.
    """

    name: str
    base: SuiteBase = SuiteBase()
    methods: Annotated[dict[str, SuiteMethod], Field(min_length=1)]
    data: Annotated[dict[str, JsonObject], Field(min_length=1)]
    rules: Annotated[list[RuleName], Field(min_length=1)]
    searches: Annotated[int, Field(ge=1, le=MAX_INTEGER)] = 3
    budget: SuiteBudget
    judge: str | None = None


SHARED_SEARCH_KEYS = tuple(BaseSearch.model_fields)
"""Keys of `search` that are the same for every method."""

DEFAULT_SAMPLER = "random"
"""Default sampler: it draws for no rule in particular, so that all rules choose among the same configurations."""


def copy_key_locations(source: YamlDocument, at: KeyPath, target: YamlDocument, to: KeyPath) -> None:
    """Record in `target` below `to` where the keys of `source` below `at` stand."""
    for key, place in source.locations.items():
        if key[: len(at)] == at:
            target.locations[*to, *key[len(at) :]] = place


def first_study_document(suite: YamlDocument, checked: SuiteLayout, method: str, label: str) -> YamlDocument:
    """Make the study file of a method's first search on a data set; its keys stand where the suite file has them.

    Args:
        suite: the file, its base written out.
        checked: its values with defaults.
    """
    base, own, budget = checked.base, checked.methods[method], checked.budget
    search: dict[str, Value] = {
        "sampler": DEFAULT_SAMPLER,
        **{key: value for key, value in base.search if value is not None},
        "space": own.space,
        "enqueue": own.enqueue,
        "trials": budget.trials if own.space else 1,
        "confirm": {"top": 0, "seeds": budget.seeds, "rules": list(checked.rules)},
    }
    values: dict[str, Value] = {
        "name": "cell",
        "data": dict(checked.data[label]),
        "method": dict(own.method),
        "model": _model_section_of_method(base.model, own.model),
        "train": {**base.train, **own.train, "epochs": budget.epochs},
        "search": search,
        "resources": dict(base.resources),
    }
    cell = YamlDocument(f"{suite.source}: methods.{method} on data.{label}", values)
    for section in ("model", "train", "search", "resources"):
        copy_key_locations(suite, ("base", section), cell, (section,))
    for section in ("method", "model", "train"):
        copy_key_locations(suite, ("methods", method, section), cell, (section,))
    for section in ("space", "enqueue"):
        copy_key_locations(suite, ("methods", method, section), cell, ("search", section))
    copy_key_locations(suite, ("data", label), cell, ("data",))
    copy_key_locations(suite, ("budget", "trials"), cell, ("search", "trials"))
    copy_key_locations(suite, ("budget", "epochs"), cell, ("train", "epochs"))
    copy_key_locations(suite, ("budget",), cell, ("search", "confirm"))
    return cell


def _model_section_of_method(base: Section | None, own: Section | None) -> dict[str, Value]:
    """Return a method's network: its own where it names one, else that of all with the keys that it gives."""
    return dict(own) if own and "name" in own else {**(base or {}), **(own or {})}


def derive_further_search(first: StudySpec, data: int, search: int, seeds: int) -> StudySpec:
    """Return a search of a method on a data set, made from the first one.

    All methods have the same seeds in the same search of the same data set, so that they can be compared in pairs.
    No two searches of a method share any, be it on one data set or on two.

    Args:
        data, search: places of the data set and of the search, from 0.
        seeds: fresh training seeds of a study.
    """
    turn = cantor_pair_number(data, search)
    train = {**first.base["train"], "seed": first.seed + turn * (len(first.seeds) + seeds)}
    return replace(first, base={**first.base, "train": train}, search=first.search.model_copy(update={"seed": turn}))


def cantor_pair_number(data: int, search: int) -> int:
    """Return a number of its own for each pair (Cantor's pairing), which no further data set or search changes."""
    total = data + search
    return total * (total + 1) // 2 + search


SUITES_FOLDER = "suites"
"""Folder of the shipped suites, beside the shipped study files."""


@dataclass(frozen=True)
class SuiteSearch:
    """One search of a suite.

    Attributes:
        method, data: labels of the suite file.
        search_number: from 1, among the searches of this method on this data set.
        spec: the study that it is.
    """

    method: str
    data: str
    search_number: int
    spec: StudySpec


@dataclass(frozen=True)
class Suite:
    """Checked suite file.

    Attributes:
        methods, data: their labels, in the file's order.
        rules: names of `study.metrics.selection_rules.SELECTION_RULES`.
        searches_per_cell: how many of each method on each data set.
        test_metric: of the table; `judge` in the file.
        seeds_per_pick: number of fresh training seeds of each pick.
        searches: every search, those of number 1 first, so that a suite that was stopped has a whole table early.
    """

    name: str
    methods: tuple[str, ...]
    data: tuple[str, ...]
    rules: tuple[str, ...]
    searches_per_cell: int
    test_metric: str
    seeds_per_pick: int
    searches: tuple[SuiteSearch, ...]

    @cached_property
    def searches_by_cell(self) -> Mapping[tuple[str, str], list[SuiteSearch]]:
        """Searches of each method on each data set, by their labels."""
        cells: dict[tuple[str, str], list[SuiteSearch]] = {}
        for search in self.searches:
            cells.setdefault((search.method, search.data), []).append(search)
        return cells

    def is_rule_available(self, rule: str, cell: tuple[str, str]) -> bool:
        """Return whether the validation split of a cell's data set has what a rule needs."""
        spec = self.searches_by_cell[cell][0].spec
        facts = spec.facts_of_data(spec.base["data"]).facts_of_split("val")
        inferred = spec.train.inferred_groups != "none"
        return next(known for known in SELECTION_RULES if known.name == rule).is_available(facts, inferred)

    def to_document(self) -> dict[str, Value]:
        """Return what the home remembers of it; each search has its own resolved study file."""
        labels = {"methods": list(self.methods), "data": list(self.data), "rules": list(self.rules)}
        return {"name": self.name, **labels, "searches": self.searches_per_cell}


def shipped_suites() -> dict[str, Path]:
    """Return the suite files that come with the project, by name."""
    return {path.stem: path for path in sorted((shipped_studies_folder() / SUITES_FOLDER).glob("*.yaml"))}


def find_suite_file(suite: str) -> Path:
    """Return the file that a user means by a name or a path.

    Raises:
        UserError: there is none.
    """
    path = Path(suite)
    if path.suffix in STUDY_FILE_SUFFIXES or len(path.parts) > 1:
        return find_study_file(suite)
    names = shipped_suites()
    if suite not in names:
        raise UserError(
            f"{suite}: no suite of that name. For a file of your own give its path, ending in .yaml. "
            f"{suggest_or_list(suite, names, 'Shipped', NAMES_COMMAND)}"
        )
    return names[suite]


def load_suite(suite: str) -> Suite:
    """Load the suite of a shipped name or a file's path, with every study of it checked.

    Raises:
        UserError: says everything that is wrong, each with file, line, key, what was given and what is allowed.
    """
    document = read_study_file(find_suite_file(suite))
    resolve_suite_base(document)
    problems = ProblemCollector(document)
    checked = validate_section_as(SuiteLayout, document.values, (), problems)
    problems.raise_if_any()
    assert checked is not None
    _check_study_name_labels(checked, problems)
    _check_equal_budget_and_data(checked, problems)
    problems.raise_if_any()
    firsts = _first_search_of_cells(document, checked)
    judge = checked.judge or next(iter(firsts.values())).test_metric
    searches = []
    for number in range(1, checked.searches + 1):
        for (method, label), first in firsts.items():
            at = list(checked.data).index(label)
            spec = derive_further_search(first, at, number - 1, checked.budget.seeds)
            name = _study_name_of_search(checked.name, method, label, number)
            searches.append(SuiteSearch(method, label, number, replace(spec, name=name)))
    labels = tuple(checked.methods), tuple(checked.data), tuple(checked.rules)
    found = Suite(checked.name, *labels, checked.searches, judge, checked.budget.seeds, tuple(searches))
    _check_metric_and_rules(found, problems)
    problems.raise_if_any()
    return found


def resolve_suite_base(document: YamlDocument) -> None:
    """Replace a `base` that is a study file's name or path by what it has that is the same for all methods."""
    base = document.values.get("base")
    if not isinstance(base, str):
        return
    try:
        source = read_study_file(find_study_file(base))
        apply_profile(source, None)
    except UserError as error:
        raise UserError(f"{document.key_location(('base',))}: base: {error}") from None
    values = source.values
    taken: dict[str, Value] = {key: values[key] for key in ("model", "train", "resources") if key in values}
    if isinstance(search := values.get("search"), dict):
        taken["search"] = {key: value for key, value in search.items() if key in SHARED_SEARCH_KEYS}
    if isinstance(train := taken.get("train"), dict):
        taken["train"] = {key: value for key, value in train.items() if key not in ("epochs", "seed")}
    document.values["base"] = taken
    copy_key_locations(source, (), document, ("base",))


def _check_study_name_labels(checked: SuiteLayout, problems: ProblemCollector) -> None:
    """Check names and labels, which together are names of studies."""
    for key, labels in (("name", [checked.name]), ("methods", checked.methods), ("data", checked.data)):
        for label in labels:
            if not STUDY_NAME_PATTERN.fullmatch(label):
                at = (key,) if key == "name" else (key, label)
                problems.add_problem(at, f"{label!r} given. A label has {STUDY_NAME_RULE}")
    names: dict[str, tuple[str, str]] = {}
    for method in checked.methods:
        for label in checked.data:
            name = _study_name_of_search(checked.name, method, label, checked.searches)
            if len(name) > 100:
                problems.add_problem(("methods", method), f"the study's name {name!r} has more than 100 characters")
            if name in names:
                other = " on ".join(names[name])
                problems.add_problem(("methods", method), f"the name {name!r} is also that of {other}")
            names[name] = (method, label)
    if len(set(checked.rules)) < len(checked.rules):
        problems.add_problem(("rules",), f"{checked.rules} given: one is repeated")


def _check_equal_budget_and_data(checked: SuiteLayout, problems: ProblemCollector) -> None:
    """Refuse what would give a method another budget, or another data set, than the others."""
    methods: dict[KeyPath, SuiteMethod] = {("methods", label): method for label, method in checked.methods.items()}
    trained: dict[KeyPath, SuiteBase | SuiteMethod] = {("base",): checked.base, **methods}
    for at, section in trained.items():
        for key, instead in (("epochs", "budget.epochs"), ("seed", "searches")):
            if key in section.train:
                problems.add_problem((*at, "train", key), f"cannot be given here: {instead} says it for all methods")
    for at, method in methods.items():
        for key in method.space:
            if key.startswith("data."):
                problems.add_problem((*at, "space", key), "cannot be searched: each data set is a column of the table")
        if not method.model and not checked.base.model:
            problems.add_problem((*at, "model"), "is missing, here or in base")


def _first_search_of_cells(document: YamlDocument, checked: SuiteLayout) -> dict[tuple[str, str], StudySpec]:
    """Return the first search of each method on each data set.

    Raises:
        UserError: what is wrong with any of them, each message once.
    """
    found, lines = {}, dict[str, None]()
    for method in checked.methods:
        for label in checked.data:
            try:
                first = first_study_document(document, checked, method, label)
                found[method, label] = check_and_complete_document(first)
            except UserError as error:
                lines |= dict.fromkeys(str(error).splitlines())
    if lines:
        raise UserError("\n".join(lines))
    return found


def _check_metric_and_rules(suite: Suite, problems: ProblemCollector) -> None:
    """Check what only the whole table shows: its metric and its rules."""
    specs = {label: suite.searches_by_cell[suite.methods[0], label][0].spec for label in suite.data}
    for label, spec in specs.items():
        facts = spec.facts_of_data(spec.base["data"]).facts_of_split("test")
        valid = [f"test/{name}" for name in available_metrics(facts)]
        if suite.test_metric not in valid:
            allowed = suggest_or_list(suite.test_metric, valid, f"Metrics of {label}", KEYS_COMMAND)
            problems.add_problem(("judge",), f"{suite.test_metric!r} given. {allowed}")
    for place, rule in enumerate(suite.rules):
        if not any(suite.is_rule_available(rule, cell) for cell in suite.searches_by_cell):
            problems.add_problem(("rules", str(place)), f"{rule!r} given, but no data set has what it needs")


def _study_name_of_search(suite: str, method: str, label: str, number: int) -> str:
    return f"{suite}--{method}--{label}--{number}"
