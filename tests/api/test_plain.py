"""Values from Python keep their kind on their way into a study, and what has no form there is told at its place."""

from pathlib import Path
from typing import Any

import numpy as np
import own_functions
import pytest

from study.api import run_study
from study.api.run_study import build_function_study
from study.errors import UserError
from study.spec import StudySpec
from study.spec.yaml_document import parse_study_yaml

PAIRS = [
    (np.int64(3), 3),
    (np.uint8(3), 3),
    (np.float32(0.5), 0.5),
    (np.float64(3), 3.0),
    (np.bool_(True), True),
    (np.str_("a"), "a"),
    (np.array([1, 2]), [1, 2]),
    (np.array([[0.5], [1.0]]), [[0.5], [1.0]]),
    (np.array(7), 7),
    ((1, np.int64(2)), [1, 2]),
    (Path("here") / "a.csv", str(Path("here") / "a.csv")),
    ({"deep": [np.float32(0.5), Path("b")]}, {"deep": [0.5, "b"]}),
]


def made(**changes: Any) -> StudySpec:
    """The study of a function as it is after it was written and read."""
    changes["assignments"] = run_study.to_assignments(changes.pop("set", {}))
    given: dict[str, Any] = {"space": {"rate": (0.1, 0.9)}, "fixed": {}, "baseline": None}
    rest: dict[str, Any] = {"name": "mine", "metric": "val/accuracy", "maximize": None, "epochs": 3}
    return build_function_study(own_functions.train, **{**rest, **given, **changes})[0]


def kinds(value: Any) -> Any:
    """The types of a value and of all within it."""
    if isinstance(value, list):
        return [kinds(one) for one in value]
    return {key: kinds(one) for key, one in value.items()} if isinstance(value, dict) else type(value)


@pytest.mark.parametrize(("given", "wanted"), PAIRS, ids=str)
@pytest.mark.parametrize("where", ["fixed", "set"])
def test_values_keep_their_kind(given: Any, wanted: Any, where: str) -> None:
    spec = made(fixed={"a": given}) if where == "fixed" else made(set={"method.a": given})
    value = parse_study_yaml(spec.to_yaml(), "written").values["method"]["a"]
    assert value == wanted
    assert kinds(value) == kinds(wanted)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((np.int64(1), np.int64(5)), {"low": 1, "high": 5}),
        ((np.float32(0.5), np.float64(2), "log"), {"low": 0.5, "high": 2.0, "log": True}),
        (np.array([1, 2]), {"choices": [1, 2]}),
        ([np.float32(0.5), np.float64(1)], {"choices": [0.5, 1.0]}),
        ([np.bool_(False), True], {"choices": [False, True]}),
        ([Path("a"), "b"], {"choices": ["a", "b"]}),
        ({"low": np.int64(1), "high": np.int64(9), "step": np.int64(2)}, {"low": 1, "high": 9, "step": 2}),
    ],
    ids=str,
)
def test_what_is_searched_keeps_its_kind(given: Any, wanted: Any) -> None:
    domain = parse_study_yaml(made(space={"key": given}).to_yaml(), "written").values["search"]["space"]["method.key"]
    assert domain == wanted
    assert kinds(domain) == kinds(wanted)


def test_a_baseline_keeps_its_kind() -> None:
    spec = made(space={"layers": [1, 2], "wide": [True, False]}, baseline={"layers": np.int64(1), "wide": np.True_})
    baseline = parse_study_yaml(spec.to_yaml(), "written").values["search"]["baseline"]
    assert baseline == {"method.layers": 1, "method.wide": True}
    assert kinds(baseline) == {"method.layers": int, "method.wide": bool}


STRANGE = [object(), made, {1, 2}, b"bytes", 1j, np.datetime64("2020-01-01"), np.array([object()]), range(3)]


@pytest.mark.parametrize("strange", STRANGE, ids=lambda value: type(value).__name__)
def test_what_has_no_form_is_told_with_its_key(strange: Any) -> None:
    for changes, place in [
        ({"fixed": {"a": strange}}, "fixed: a"),
        ({"fixed": {"a": {"b": [strange]}}}, r"fixed: a\.b\[0\]"),
        ({"space": {"rate": [0.5, strange]}}, r"space: rate\[1\]"),
        ({"baseline": {"rate": strange}}, "baseline: rate"),
        ({"set": {"method.a": strange}}, r"set: method\.a"),
    ]:
        with pytest.raises(UserError, match=rf"^{place}.* given. Allowed are numbers, text"):
            made(**changes)


@pytest.mark.parametrize("argument", ["space", "fixed", "baseline", "set"])
def test_what_is_no_mapping_of_names_is_told(argument: str) -> None:
    with pytest.raises(UserError, match=rf"^{argument}: \[1\] of type list given"):
        made(**{argument: [1]})
    with pytest.raises(UserError, match=rf"^{argument}: the key 3 of type int given"):
        made(**{argument: {3: 1}})


def test_a_fault_of_the_space_is_not_laid_on_what_is_set() -> None:
    with pytest.raises(UserError) as told:
        made(space={"rate": (0.9, 0.1)}, set={"search.trials": 8})
    assert "space: rate: low 0.9 is above high 0.1" in str(told.value)
    assert "--set" not in str(told.value)
