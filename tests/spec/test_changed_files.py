"""Whatever is changed in a study file, it is a study or one message that names file and key."""

from typing import Any

import pytest
from helpers import reread
from hypothesis import given
from hypothesis import strategies as st

from study.errors import UserError
from study.spec import load_study
from study.spec.document import dump, read, shipped

TREE = read(shipped()["quickstart"]).values


def paths(node: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [above] if above else []
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return found + [path for key, value in items for path in paths(value, (*above, key))]


NUMBERS = [-1, 0, 3, 10**30, 0.5, -2.5, 1e300, float("nan"), float("inf")]


WORDS = [None, True, "", "word", "tpe", "val/accuracy", "\u00e4\u2028\U0001f600"]


NESTED = [[], [1], [[0.5]], {}, {"a": 1}, {"low": 0, "high": 1}, {"choices": ["x"]}, [{"method.alpha": 0.5}]]


WRONG = st.sampled_from([*NUMBERS, *WORDS, *NESTED])


CHANGE = st.tuples(st.sampled_from(["drop", "rename", "retype"]), st.sampled_from(paths(TREE)), WRONG)


def change(tree: Any, kind: str, path: tuple[Any, ...], value: Any) -> None:
    """Drop, rename or retype what is at a path, if it is still there."""
    *above, last = path
    for key in above:
        if not (isinstance(tree, dict) and key in tree) and not (isinstance(tree, list) and key in range(len(tree))):
            return
        tree = tree[key]
    if not (isinstance(tree, dict) and last in tree) and not (isinstance(tree, list) and last in range(len(tree))):
        return
    if kind == "retype":
        tree[last] = value
    elif isinstance(tree, dict):
        kept = tree.pop(last)
        if kind == "rename":
            tree[f"{last}x"] = kept
    else:
        del tree[last]


def fresh(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: fresh(value) for key, value in node.items()}
    return [fresh(value) for value in node] if isinstance(node, list) else node


@pytest.mark.slow
@given(st.lists(CHANGE, min_size=1, max_size=3))
def test_any_change_gives_a_study_or_one_message_that_names_file_and_key(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[str, tuple[Any, ...], Any]]
) -> None:
    tree = fresh(TREE)
    for one in changes:
        change(tree, *one)
    path = tmp_path_factory.mktemp("changed") / "changed.yaml"
    path.write_text(dump(tree), encoding="utf-8")
    spec, told = None, None
    try:
        spec = load_study(str(path))
    except UserError as error:
        told = str(error)
    if spec is not None:
        assert reread(spec) == spec
    else:
        keys = {str(part) for _, at, _ in changes for part in at} | {f"{at[-1]}x" for _, at, _ in changes}
        assert told is not None
        assert told.startswith(str(path))
        assert any(key in told.removeprefix(str(path)) for key in keys)
