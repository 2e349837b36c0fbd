"""The rooms of the package: what each may import, held by its exact table, and which libraries belong to which room."""

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from helpers import ROOT

PACKAGE = ROOT / "study"

LOOSE = {
    "__init__",
    "__main__",
    "catalogue",
    "cluster_addresses",
    "errors",
    "files",
    "knobs",
    "writable_folders",
    "text",
}
"""The modules at the root; everything else is in a room."""

INNER = {"analysis.figures", "analysis.report", "analysis.statistics", "analysis.tables", "data.sets"}
"""Rooms within rooms that the table tells apart."""

EVERYWHERE = {"catalogue", "errors", "files", "knobs", "writable_folders", "text"}
"""What any room may import; these import none of the others, but for `errors`, and `files` for `writable_folders`."""

ALLOWED = {
    "losses": set(),
    "upstream": set(),
    "data": set(),
    "data.sets": {"data"},
    "models": {"data"},
    "methods": {"data", "losses", "models"},
    "metrics": {"data"},
    "training": {"data", "methods", "metrics", "models", "upstream"},
    "spec": {"data", "methods", "metrics", "models", "training"},
    "home": {"data", "spec", "training"},
    "ranking": {"home", "metrics", "spec", "training"},
    "published": set(),
    "sweep": {
        "cluster_addresses",
        "data",
        "home",
        "models",
        "ranking",
        "spec",
        "training",
        "upstream",
    },
    "trained": {"data", "home", "metrics", "methods", "models", "ranking", "spec", "training"},
    "tracking": {"cluster_addresses", "data", "home", "metrics", "models", "ranking", "spec", "trained", "upstream"},
    "analysis.statistics": {"home", "metrics", "ranking", "spec", "training"},
    "analysis.tables": {"analysis.statistics", "metrics", "ranking", "spec"},
    "analysis.figures": {"analysis.statistics", "home", "metrics", "ranking", "spec"},
    "analysis.report": {
        "analysis.figures",
        "analysis.statistics",
        "analysis.tables",
        "data",
        "home",
        "metrics",
        "ranking",
        "spec",
    },
    "analysis": {"analysis.report", "analysis.statistics", "analysis.tables"},
    "cluster": {"cluster_addresses", "data", "home", "spec", "upstream"},
}
"""What each room imports besides `EVERYWHERE`, inside functions too: the way of the data, which goes one way.

The rooms above these (`commands`, `driver`, `api`, `reproduce`, `doctor`, `cli`) may use all, but not one another
against this order.
"""

ABOVE = ("commands", "driver", "api", "reproduce", "doctor", "cli")

CATALOGUES = {"data": "data.sets"}
"""Rooms that look things up by name in a room within them, whose modules are made of what the outer one defines."""

LIBRARIES = {
    "ray": {"cluster", "sweep", "upstream"},
    "mlflow": {"tracking"},
    "optuna": {"analysis.statistics", "ranking", "sweep", "spec"},
    "matplotlib": {"analysis.figures", "analysis.report", "api"},
}
"""The only rooms that import each of these."""


def room(module: str) -> str:
    """The room of a module, both without the leading `study.`; a loose module is its own."""
    first, _, rest = module.partition(".")
    inner = f"{first}.{rest.partition('.')[0]}"
    return inner if inner in INNER else first


@cache
def imports() -> dict[str, set[str]]:
    """The modules of this package and of libraries that each room imports, those of this package from `study.` on."""
    found: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        modules = found.setdefault(room(".".join(path.relative_to(PACKAGE).with_suffix("").parts)), set())
        modules |= imported_by(path) | named_by(path)
    return found


@cache
def imported_by(path: Path) -> frozenset[str]:
    """The modules, or names in modules, that a file imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(names)


@cache
def named_by(path: Path) -> frozenset[str]:
    """The modules of this package whose full names a file has as texts, to import or start them.

    The names in `study.catalogue` are those of groups of entry points; that in `study.cluster.driver_job` is of what a
    job runs on another machine, in the version of this package that is there.
    """
    texts = {
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return frozenset(text for text in texts if is_module(text) and path.name not in ("catalogue.py", "driver_job.py"))


def is_module(text: str) -> bool:
    """Whether a text is the full name of a module or package of this one, that of the package itself left out."""
    place = ROOT.joinpath(*text.split(".")) if re.fullmatch(r"study(\.\w+)+", text) else None
    return place is not None and (place.with_suffix(".py").is_file() or (place / "__init__.py").is_file())


def module_imports() -> dict[str, set[str]]:
    """The modules of this package that each of its modules imports, by their full names.

    The package's face is left out: it names what it offers for type checkers, and imports it once somebody asks.
    """
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in PACKAGE.rglob("*.py")}
    modules = {path: name.removesuffix(".__init__") for path, name in names.items()}
    known, found = set(modules.values()), {}
    for path, module in modules.items():
        imported = imported_by(path)
        found[module] = {name if name in known else name.rpartition(".")[0] for name in imported} & known - {module}
    return found | {"study": set()}


def rooms_of(importer: str) -> set[str]:
    """The other rooms that a room imports, this package's face and itself left out."""
    modules = {name.removeprefix("study.") for name in imports()[importer] if name.startswith("study.")}
    return {room(module) for module in modules} - {importer, CATALOGUES.get(importer), "__version__"} - EVERYWHERE


def test_the_root_holds_what_every_room_may_use_and_nothing_else() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == LOOSE


def test_each_room_imports_what_the_table_says() -> None:
    """No more, and nothing that the table allows for no reason."""
    assert {importer: rooms_of(importer) for importer in ALLOWED} == ALLOWED


def test_every_room_is_in_the_table() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} | INNER
    assert rooms == {*ALLOWED, *ABOVE}


def test_what_any_room_may_import_imports_nothing_else() -> None:
    assert all(rooms_of(loose) == set() for loose in EVERYWHERE)


def test_no_rooms_import_one_another_in_a_circle() -> None:
    """Imports inside functions are arrows too; raises `CycleError`, which names the rooms."""
    TopologicalSorter({importer: rooms_of(importer) for importer in imports()}).prepare()


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Within rooms and across them, imports inside functions too; raises `CycleError`, which names the modules."""
    TopologicalSorter(module_imports()).prepare()


def test_each_library_is_imported_in_its_rooms() -> None:
    found = {
        library: {importer for importer, names in imports().items() if any(n.split(".")[0] == library for n in names)}
        for library in LIBRARIES
    }
    assert found == LIBRARIES
