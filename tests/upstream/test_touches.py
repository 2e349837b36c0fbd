"""What is used of Ray, Tune, MLflow and Optuna that they do not promise to keep is listed in the guide, and nothing
else is used."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from helpers import ROOT
from pages import GUIDE

LIBRARIES = ("ray", "mlflow", "optuna")

DOCUMENTED = {
    *("ray", "ray.tune", "ray.tune.schedulers", "ray.tune.search", "ray.tune.stopper", "ray.tune.experiment"),
    *("ray.exceptions", "ray.job_submission", "ray.util", "ray.util.placement_group", "ray.util.scheduling_strategies"),
    *("ray.cloudpickle", "mlflow", "mlflow.artifacts", "mlflow.entities", "mlflow.exceptions", "mlflow.models"),
    *("mlflow.data", "mlflow.data.meta_dataset", "mlflow.pyfunc", "mlflow.types", "mlflow.types.schema"),
    *("optuna", "optuna.distributions", "optuna.samplers", "optuna.storages", "optuna.study", "optuna.trial"),
    *("optuna.storages.journal", "optuna.visualization"),
}
"""The modules of theirs that their documentation shows how to import from."""

PRIVATE = re.compile(r"_[A-Za-z]\w*")

ROOMS = ("upstream", "sweep", "tracking", "cluster")
"""Where they are imported and something of theirs may be reached by an attribute; elsewhere an import says it all."""

OF_TUPLES = {"_replace", "_asdict", "_fields"}
"""What named tuples of Python have."""

OTHERS = {"os", "atexit", "sys", "threading", "np", "numpy", "torch"}
"""Modules that are not theirs, as they are called here."""


def defined(trees: list[ast.Module]) -> set[str]:
    """The names that this package gives itself."""
    names: set[str] = set()
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            names.add(node.attr)
    return names


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def imported(tree: ast.Module) -> dict[str, str]:
    """By the name here, what a file imports of modules that they do not document, with the module."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name: alias.name for alias in node.names if is_undocumented(alias.name)}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if is_undocumented(node.module) or is_private(name):
                    found[alias.asname or alias.name] = name
    return found


def is_undocumented(module: str) -> bool:
    return module.split(".")[0] in LIBRARIES and module not in DOCUMENTED


def is_private(name: str) -> bool:
    return name.split(".")[0] in LIBRARIES and any(PRIVATE.fullmatch(part) for part in name.split("."))


def touches(tree: ast.Module, ours: set[str], is_near: bool) -> Iterator[str]:
    """What a file uses of theirs: imports by their full names, of a module that it imports the names that it uses;
    attributes, keywords and strings that begin with an underscore; classes that are given other bases.

    Args:
        ours: names that this package gives itself.
        is_near: whether it is in one of `ROOMS`.
    """
    known, used = imported(tree), set[str]()
    formatted = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) and not known]
    parts = {id(part) for text in formatted for part in text.values}  # of sentences and names of our own
    for node in ast.walk(tree):  # another name of a module of theirs
        if isinstance(node, ast.AnnAssign | ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in known:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name):
                known[target.id] = known[node.value.id]
                used.add(known[target.id])
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            place = known[node.value.id]
            if is_module(place) or PRIVATE.fullmatch(node.attr):
                used.add(place)
                yield f"{place}.{node.attr}"
        elif isinstance(node, ast.Attribute) and node.attr == "__bases__" and isinstance(node.ctx, ast.Store):
            yield ast.unparse(node)
        elif isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr) and is_near:
            base = node.value.id if isinstance(node.value, ast.Name) else ""
            if not is_self(node.value) and base not in OTHERS and node.attr not in ours:
                yield node.attr
        elif isinstance(node, ast.Tuple) and len(node.elts) > 1 and is_near:  # a module, and a name in it
            module, name = node.elts[:2]
            if isinstance(module, ast.Name) and module.id in known and isinstance(name, ast.Constant):
                used.add(known[module.id])
                yield f"{known[module.id]}.{name.value!s}"
        elif isinstance(node, ast.keyword) and node.arg and PRIVATE.fullmatch(node.arg) and is_near:
            yield node.arg
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and is_near:
            if PRIVATE.fullmatch(node.value) and node.value not in ours and id(node) not in parts:
                yield node.value
        elif isinstance(node, ast.ClassDef) and any(theirs(base, known) for base in node.bases):
            yield from (inner for inner in overridden(node))
    yield from set(known.values()) - used


def is_module(name: str) -> bool:
    return name.rpartition(".")[2].islower()


def theirs(base: ast.expr, known: dict[str, str]) -> bool:
    first = base.value if isinstance(base, ast.Attribute) else base
    return isinstance(first, ast.Name) and first.id in known


def overridden(node: ast.ClassDef) -> Iterator[str]:
    """What a class of ours has in place of what one of theirs has."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef):
            yield inner.name
        elif isinstance(inner, ast.Attribute) and is_self(inner.value) and isinstance(inner.ctx, ast.Store):
            yield inner.attr


def found() -> set[str]:
    near, trees = dict[Path, bool](), dict[Path, ast.Module]()
    for path in (ROOT / "study").rglob("*.py"):
        text, near[path] = path.read_text(encoding="utf-8"), path.relative_to(ROOT / "study").parts[0] in ROOMS
        if near[path] or any(library in text for library in LIBRARIES):
            trees[path] = ast.parse(text)
    ours = defined(list(trees.values())) | OF_TUPLES
    return {name for path, tree in trees.items() for name in touches(tree, ours, near[path])}


def listed(page: Path) -> set[str]:
    """The names in the first column of the page's table of them."""
    table = page.read_text(encoding="utf-8").partition("| what of theirs |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_what_they_do_not_promise_to_keep_is_listed_with_its_reason() -> None:
    assert found() == listed(GUIDE / "architecture.md")


def test_each_way_to_use_something_of_theirs_is_seen() -> None:
    source = """
from ray._private import worker
from ray.tune.execution import tune_controller
from ray.core.generated.gcs import Stub
import mlflow.store.tracking as tables
module: Any = worker
module.thread = None
tune_controller.Class
places = ((worker, "Node", 1),)
tables.Run
ray.init(_temp_dir=1, **{"_skip": True})
getattr(trial, "_state")
trial._runner.go()
ray.exceptions.DiskError.__bases__ = (ray.exceptions.RayError,)
class Mine(tune_controller.Actors):
    def failed(self): self._seen = 1
"""
    assert set(touches(ast.parse(source), {"_ours"}, is_near=True)) == {
        *("ray._private.worker.thread", "ray.tune.execution.tune_controller.Class", "ray.core.generated.gcs.Stub"),
        *("ray._private.worker.Node", "mlflow.store.tracking.Run", "_temp_dir", "_skip", "_state", "_runner"),
        *("ray.tune.execution.tune_controller.Actors", "failed", "_seen", "ray.exceptions.DiskError.__bases__"),
    }
