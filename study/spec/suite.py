"""A suite: methods x data sets x searches at equal budget, each search an ordinary study.

One search gives every selection rule's pick, so rules need no searches of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from pydantic import Field, JsonValue

from study.errors import UserError, nearest
from study.knobs import MAX_INTEGER, Section, Value
from study.metrics import available
from study.metrics.selection_rules import RULES
from study.spec.document import Document, Key, apply_profile, find, read, shipped_folder
from study.spec.load import NAME_RULE, resolve
from study.spec.schema import Positive, RuleName
from study.spec.section_checks import Problems, Strict, validated
from study.spec.study_spec import StudySpec

JsonSection = dict[str, JsonValue]


class SuiteMethod(Strict):
    """A row of the table: a `method` section, the `space` that is searched for it, and sections of its own.

    `enqueue` are configurations that each of its searches tries first; they count as trials.
    """

    method: JsonSection
    model: JsonSection | None = None
    train: JsonSection = Field(default_factory=dict)
    space: JsonSection = Field(default_factory=dict)
    enqueue: list[JsonSection] = Field(default_factory=list)


class BaseSearch(Strict):
    """Keys of `search` that are the same for every method."""

    sampler: JsonValue = None
    metric: JsonValue = None
    epoch: JsonValue = None
    epoch_window: JsonValue = None
    early_stopping: JsonValue = None
    concurrency: JsonValue = None
    retries: JsonValue = None


class Base(Strict):
    """Sections that are the same for every method, unless a method's own section says otherwise."""

    model: JsonSection | None = None
    train: JsonSection = Field(default_factory=dict)
    search: BaseSearch = BaseSearch()
    resources: JsonSection = Field(default_factory=dict)


class Budget(Strict):
    """Budget of each search: so many `trials` of so many `epochs`.

    What the rules pick is judged on `seeds` fresh training seeds.
    """

    trials: Positive
    epochs: Positive
    seeds: Annotated[int, Field(ge=2, le=1000)]


class SuiteLayout(Strict):
    """Outline of a suite file; the studies that its sections become check what these hold.

    `searches` is the number of independent searches of a method on a data set, each with a sampler's seed and training
    seeds of its own; they share the data set's split. `judge` is the test metric of the table; null: that of
    `base.search.metric`.
    """

    name: str
    base: Base = Base()
    methods: Annotated[dict[str, SuiteMethod], Field(min_length=1)]
    data: Annotated[dict[str, JsonSection], Field(min_length=1)]
    rules: Annotated[list[RuleName], Field(min_length=1)]
    searches: Annotated[int, Field(ge=1, le=MAX_INTEGER)] = 3
    budget: Budget
    judge: str | None = None


SHARED_SEARCH_KEYS = tuple(BaseSearch.model_fields)
"""Keys of `search` that are the same for every method."""

SAMPLER = "random"
"""Default sampler: it draws for no rule in particular, so that all rules choose among the same configurations."""


def graft(source: Document, at: Key, target: Document, to: Key) -> None:
    """Record in `target` below `to` where the keys of `source` below `at` stand."""
    for key, place in source.places.items():
        if key[: len(at)] == at:
            target.places[*to, *key[len(at) :]] = place


def cell_document(suite: Document, checked: SuiteLayout, method: str, label: str) -> Document:
    """Make the study file of a method's first search on a data set; its keys stand where the suite file has them.

    Args:
        suite: the file, its base written out.
        checked: its values with defaults.
    """
    base, own, budget = checked.base, checked.methods[method], checked.budget
    search: dict[str, Value] = {
        "sampler": SAMPLER,
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
        "model": _model(base.model, own.model),
        "train": {**base.train, **own.train, "epochs": budget.epochs},
        "search": search,
        "resources": dict(base.resources),
    }
    cell = Document(f"{suite.source}: methods.{method} on data.{label}", values)
    for section in ("model", "train", "search", "resources"):
        graft(suite, ("base", section), cell, (section,))
    for section in ("method", "model", "train"):
        graft(suite, ("methods", method, section), cell, (section,))
    for section in ("space", "enqueue"):
        graft(suite, ("methods", method, section), cell, ("search", section))
    graft(suite, ("data", label), cell, ("data",))
    graft(suite, ("budget", "trials"), cell, ("search", "trials"))
    graft(suite, ("budget", "epochs"), cell, ("train", "epochs"))
    graft(suite, ("budget",), cell, ("search", "confirm"))
    return cell


def _model(base: Section | None, own: Section | None) -> dict[str, Value]:
    """Return a method's network: its own where it names one, else that of all with the keys that it gives."""
    return dict(own) if own and "name" in own else {**(base or {}), **(own or {})}


def numbered(first: StudySpec, data: int, search: int, seeds: int) -> StudySpec:
    """Return a search of a method on a data set, made from the first one.

    All methods have the same seeds in the same search of the same data set, so that they can be compared in pairs.
    No two searches of a method share any, be it on one data set or on two.

    Args:
        data, search: places of the data set and of the search, from 0.
        seeds: fresh training seeds of a study.
    """
    turn = block(data, search)
    train = {**first.base["train"], "seed": first.seed + turn * (len(first.seeds) + seeds)}
    return replace(first, base={**first.base, "train": train}, search=first.search.model_copy(update={"seed": turn}))


def block(data: int, search: int) -> int:
    """Return a number of its own for each pair (Cantor's pairing), which no further data set or search changes."""
    total = data + search
    return total * (total + 1) // 2 + search


FOLDER = "suites"
"""Folder of the shipped suites, beside the shipped study files."""


@dataclass(frozen=True)
class SuiteSearch:
    """One search of a suite.

    Attributes:
        method, data: labels of the suite file.
        number: from 1, among the searches of this method on this data set.
        spec: the study that it is.
    """

    method: str
    data: str
    number: int
    spec: StudySpec


@dataclass(frozen=True)
class Suite:
    """Checked suite file.

    Attributes:
        methods, data: their labels, in the file's order.
        rules: names of `study.metrics.selection_rules.RULES`.
        searches: how many of each method on each data set.
        judge: the test metric of the table.
        seeds: fresh training seeds of each pick.
        cells: every search, those of number 1 first, so that a suite that was stopped has a whole table early.
    """

    name: str
    methods: tuple[str, ...]
    data: tuple[str, ...]
    rules: tuple[str, ...]
    searches: int
    judge: str
    seeds: int
    cells: tuple[SuiteSearch, ...]

    @cached_property
    def by_place(self) -> Mapping[tuple[str, str], list[SuiteSearch]]:
        """Searches of each method on each data set, by their labels."""
        places: dict[tuple[str, str], list[SuiteSearch]] = {}
        for cell in self.cells:
            places.setdefault((cell.method, cell.data), []).append(cell)
        return places

    def possible(self, rule: str, place: tuple[str, str]) -> bool:
        """Return whether the validation split of a place has what a rule needs."""
        spec = self.by_place[place][0].spec
        facts = spec.describe(spec.base["data"]).on("val")
        inferred = spec.train.inferred_groups != "none"
        return next(known for known in RULES if known.name == rule).possible(facts, inferred)

    def to_document(self) -> dict[str, Value]:
        """Return what the home remembers of it; each search has its own resolved study file."""
        labels = {"methods": list(self.methods), "data": list(self.data), "rules": list(self.rules)}
        return {"name": self.name, **labels, "searches": self.searches}


def shipped_suites() -> dict[str, Path]:
    """Return the suite files that come with the project, by name."""
    return {path.stem: path for path in sorted((shipped_folder() / FOLDER).glob("*.yaml"))}


def find_suite(suite: str) -> Path:
    """Return the file that a user means by a name or a path.

    Raises:
        UserError: there is none.
    """
    path = Path(suite)
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        return find(suite)
    names = shipped_suites()
    if suite not in names:
        raise UserError(
            f"{suite}: no suite of that name. {nearest(suite, names)}Shipped: {', '.join(names)}. "
            "For a file of your own give its path, ending in .yaml"
        )
    return names[suite]


def load_suite(suite: str) -> Suite:
    """Load the suite of a shipped name or a file's path, with every study of it checked.

    Raises:
        UserError: says everything that is wrong, each with file, line, key, what was given and what is allowed.
    """
    document = read(find_suite(suite))
    base_of_file(document)
    problems = Problems(document)
    checked = validated(SuiteLayout, document.values, (), problems)
    problems.raise_any()
    assert checked is not None
    _check_labels(checked, problems)
    _check_own(checked, problems)
    problems.raise_any()
    firsts = _resolved(document, checked)
    judge = checked.judge or next(iter(firsts.values())).test_metric
    cells = []
    for number in range(1, checked.searches + 1):
        for (method, label), first in firsts.items():
            at = list(checked.data).index(label)
            spec = numbered(first, at, number - 1, checked.budget.seeds)
            cells.append(
                SuiteSearch(method, label, number, replace(spec, name=_name(checked.name, method, label, number)))
            )
    found = Suite(
        checked.name,
        tuple(checked.methods),
        tuple(checked.data),
        tuple(checked.rules),
        checked.searches,
        judge,
        checked.budget.seeds,
        tuple(cells),
    )
    _check_whole(found, problems)
    problems.raise_any()
    return found


def base_of_file(document: Document) -> None:
    """Replace a `base` that is a study file's name or path by what it has that is the same for all methods."""
    base = document.values.get("base")
    if not isinstance(base, str):
        return
    try:
        source = read(find(base))
        apply_profile(source, None)
    except UserError as error:
        raise UserError(f"{document.place(('base',))}: base: {error}") from None
    taken: dict[str, Value] = {
        key: source.values[key] for key in ("model", "train", "resources") if key in source.values
    }
    search = source.values.get("search")
    if isinstance(search, dict):
        taken["search"] = {key: value for key, value in search.items() if key in SHARED_SEARCH_KEYS}
    if isinstance(train := taken.get("train"), dict):
        taken["train"] = {key: value for key, value in train.items() if key not in ("epochs", "seed")}
    document.values["base"] = taken
    graft(source, (), document, ("base",))


def _check_labels(checked: SuiteLayout, problems: Problems) -> None:
    """Check names and labels, which together are names of studies."""
    for key, labels in (("name", [checked.name]), ("methods", checked.methods), ("data", checked.data)):
        for label in labels:
            if not NAME_RULE.fullmatch(label):
                at = (key,) if key == "name" else (key, label)
                problems.add(at, f"{label!r} given. A label has letters, digits, '.', '_', '-', the first no sign")
    names: dict[str, tuple[str, str]] = {}
    for method in checked.methods:
        for label in checked.data:
            name = _name(checked.name, method, label, checked.searches)
            if len(name) > 100:
                problems.add(("methods", method), f"the study's name {name!r} has more than 100 characters")
            if name in names:
                problems.add(("methods", method), f"the name {name!r} is also that of {' on '.join(names[name])}")
            names[name] = (method, label)
    if len(set(checked.rules)) < len(checked.rules):
        problems.add(("rules",), f"{checked.rules} given: one is repeated")


def _check_own(checked: SuiteLayout, problems: Problems) -> None:
    """Refuse what would give a method another budget, or another data set, than the others."""
    methods: dict[Key, SuiteMethod] = {("methods", label): method for label, method in checked.methods.items()}
    trained: dict[Key, Base | SuiteMethod] = {("base",): checked.base, **methods}
    for at, section in trained.items():
        for key, instead in (("epochs", "budget.epochs"), ("seed", "searches")):
            if key in section.train:
                problems.add((*at, "train", key), f"cannot be given here: {instead} says it for all methods")
    for at, method in methods.items():
        for key in method.space:
            if key.startswith("data."):
                problems.add((*at, "space", key), "cannot be searched: each data set is a column of the table")
        if not method.model and not checked.base.model:
            problems.add((*at, "model"), "is missing, here or in base")


def _resolved(document: Document, checked: SuiteLayout) -> dict[tuple[str, str], StudySpec]:
    """Return the first search of each method on each data set.

    Raises:
        UserError: what is wrong with any of them, each message once.
    """
    found, lines = {}, dict[str, None]()
    for method in checked.methods:
        for label in checked.data:
            try:
                found[method, label] = resolve(cell_document(document, checked, method, label))
            except UserError as error:
                lines |= dict.fromkeys(str(error).splitlines())
    if lines:
        raise UserError("\n".join(lines))
    return found


def _check_whole(suite: Suite, problems: Problems) -> None:
    """Check what only the whole table shows: its metric and its rules."""
    specs = {label: suite.by_place[suite.methods[0], label][0].spec for label in suite.data}
    for label, spec in specs.items():
        valid = [f"test/{name}" for name in available(spec.describe(spec.base["data"]).on("test"))]
        if suite.judge not in valid:
            problems.add(
                ("judge",), f"{suite.judge!r} given. {nearest(suite.judge, valid)}{label} has {', '.join(valid)}"
            )
    for place, rule in enumerate(suite.rules):
        if not any(suite.possible(rule, at) for at in suite.by_place):
            problems.add(("rules", str(place)), f"{rule!r} given, but no data set has what it needs")


def _name(suite: str, method: str, label: str, number: int) -> str:
    return f"{suite}--{method}--{label}--{number}"
