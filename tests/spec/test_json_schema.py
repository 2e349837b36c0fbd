"""The JSON Schema of study files: it takes what `study plan` takes, and refuses the usual mistakes."""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from helpers import quickstart
from jsonschema import Draft202012Validator

from study import cli
from study.errors import UserError
from study.spec import json_schema, load_study
from study.spec.document import read, shipped, shipped_folder
from study.spec.json_schema import declared, names
from study.spec.sections import section_knobs, train_knobs
from study.training.config import SECTIONS

QUICKSTART = read(shipped()["quickstart"]).values


@cache
def text() -> str:
    return json_schema.text()


@cache
def validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(text()))


def problems(values: Any) -> list[str]:
    return [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in validator().iter_errors(values)]


def changed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The quickstart with another value in one place."""
    found = copy.deepcopy(QUICKSTART)
    at = found
    for key in path[:-1]:
        at = at.setdefault(key, {})
    at[path[-1]] = value
    return found


@pytest.mark.slow
def test_it_is_a_schema_and_the_shipped_file_is_it() -> None:
    """After a change of keys: study schema -o search_spaces/study.schema.json"""
    Draft202012Validator.check_schema(validator().schema)
    assert (shipped_folder() / json_schema.FILE).read_text(encoding="utf-8") == text()


@pytest.mark.slow
def test_the_command_writes_it_where_it_can(tmp_path: Path) -> None:
    cli.app(["schema", "-o", str(tmp_path / "own.json")], standalone_mode=False)
    assert (tmp_path / "own.json").read_text(encoding="utf-8") == text()
    (tmp_path / "link").symlink_to("new/own.json")
    cli.app(["schema", "-o", str(tmp_path / "link")], standalone_mode=False)
    assert (tmp_path / "new" / "own.json").read_text(encoding="utf-8") == text()
    with pytest.raises(UserError, match=r"own\.json: cannot be written"):
        cli.app(["schema", "-o", str(tmp_path / "own.json" / "own.json")], standalone_mode=False)


OWN_FILE: dict[str, Any] = {
    "name": "mine",
    "method": {"name": "own_function", "function": "my_loop:train", "batch": 64},
    "train": {"epochs": 5},
    "search": {
        "metric": "val/my_score",
        "space": {"method.rate": {"low": 0.01, "high": 1.0, "log": True}, "method.loss": ["a", "b"][0]},
        "baseline": {"method.rate": 0.1, "method.loss": "a"},
        "trials": 5,
        "confirm": {"top": 1},
    },
}


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({}, None),
        ({"data": {"name": "none"}, "model": {"name": "none"}, "notify": {"command": ["tell"]}}, None),
        ({"data": {"name": "biased_digits"}}, "data.name"),
        ({"method": {"name": "own_function"}}, "method"),
        ({"train": {"batch_size": 3}}, "train"),
        ({"search": {"metric": "test/score"}}, "search.metric"),
        ({"search": {"space": {"train.lr": 3}}}, "search.space"),
        ({"search": {"space": {"method.rate": {"low": 1}}}}, "search.space.method.rate"),
        ({"search": {"trails": 3}}, "search"),
        ({"surch": {}}, ""),
    ],
)
def test_a_file_of_a_function_of_ones_own(changes: dict[str, Any], place: str | None) -> None:
    found = problems({**OWN_FILE, **changes})
    assert [problem.split(":")[0] for problem in found] == ([] if place is None else [place]), found


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_file_names_it_and_is_valid(name: str) -> None:
    first = shipped()[name].read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema={json_schema.FILE}"
    assert problems(read(shipped()[name]).values) == []


@pytest.mark.parametrize("name", ["quickstart", "debias_all"])
def test_a_resolved_file_is_valid(name: str) -> None:
    assert problems(load_study(name).to_document()) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("search", "space", "method.alpha"), "paper"),
        (("search", "space", "method.alpha"), 0.5),
        (("search", "space", "method.alpha"), {"range": "paper", "high": 2.0}),
        (("search", "space", "method.alpha"), {"choices": [0.5], "low": None}),
        (("search", "space", "method.name"), {"choices": ["a label of my own", "sup_con"]}),
        (("search", "space", "train.batch_size"), {"low": 32, "high": 64, "when": {"method.name": ["sup_con"]}}),
        (("search", "enqueue"), "papers"),
        (("search", "enqueue"), [{"method.alpha": 0.5}]),
        (("search", "baseline"), None),
        (("search", "metric"), ["val/accuracy", "val/equalized_odds"]),
        (("search", "time"), "1h30m"),
        (("search", "time"), 90),
        (("search", "plateau"), {"trials": 3}),
        (("search", "stop"), {"gain": 0.005}),
        (("search", "replicates"), [0, 1]),
        (("resources", "hang"), "15m"),
        (("train", "clip_norm"), None),
        (("profiles", "fast"), {"train.epochs": 1, "search.space.method.alpha.low": 0.1, "data": {"name": "adult"}}),
        (("profiles", "fast"), {"search.early_stopping.grace": 1, "search.space": {}, "method.beta": 1.0}),
        (("profiles",), None),
    ],
)
def test_what_is_allowed_is(path: tuple[str, ...], value: Any) -> None:
    assert problems(changed(path, value)) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("trian",), {}),
        (("name",), "a/b"),
        (("data",), {"rho": 0.5}),
        (("data", "roh"), 0.1),
        (("data", "rho"), 1.5),
        (("data", "name"), "biased_digit"),
        (("model", "stem"), "cifar"),
        (("method", "sigma2"), 1),
        (("method", "regulariser"), "fairkl"),
        (("train", "epochs"), "ten"),
        (("train", "epochs"), 0),
        (("train", "epochs"), 1.5),
        (("train", "final"), ["forest"]),
        (("search", "sampler"), "tpee"),
        (("search", "trails"), 3),
        (("search", "trials"), 0),
        (("search", "metric"), "val/acc"),
        (("search", "metric"), "test/accuracy"),
        (("search", "time"), "90 minutes"),
        (("search", "enqueue"), "paper"),
        (("search", "enqueue"), [{"method.epsilonn": 0.1}]),
        (("search", "baseline", "method.eps"), 1),
        (("search", "space", "method.lamda"), {"low": 0, "high": 1}),
        (("search", "space", "method.alpha"), {"low": 0}),
        (("search", "space", "method.alpha"), {"low": 0, "high": 1, "choices": [1]}),
        (("search", "space", "method.alpha"), {"choices": ["large"]}),
        (("search", "space", "method.alpha"), {"choices": []}),
        (("search", "space", "method.alpha"), {"low": 0, "hihg": 1}),
        (("search", "space", "train.epochs"), {"low": 1, "high": 2}),
        (("search", "space", "train.augmentation"), {"choices": ["flip"]}),
        (("search", "alternatives"), {"method": {"mine": {"name": "wcl", "beta": 1}}}),
        (("search", "early_stopping", "grase"), 1),
        (("resources", "gpu"), -1),
        (("profiles", "gpu", "resources.gpus"), 1),
        (("profiles", "gpu", "train.epoch"), 1),
    ],
)
def test_usual_mistakes_are_refused(path: tuple[str, ...], value: Any) -> None:
    assert problems(changed(path, value)) != []


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_of_every_entry_says_what_it_is(section: str) -> None:
    silent = [
        f"{name}: {knob.key}"
        for name in (names(section) if section != "train" else [""])
        for knobs in declared(section, name).values()
        for knob in knobs
        if not knob.about
    ]
    assert silent == []


def test_every_key_says_what_it_may_be() -> None:
    train = validator().schema["$defs"]["train"]["properties"]
    assert train.keys() == train_knobs().keys()
    assert train["batch_size"]["description"] == "samples per step, the last partial batch kept"
    assert train["momentum"].items() >= {"minimum": 0.0, "exclusiveMaximum": 1.0, "default": 0.9}.items()
    alpha = validator().schema["$defs"]["method_alpha"]
    assert alpha["description"] == "weight of the contrastive (or classification) term"


def test_a_section_has_all_keys_that_its_names_can_have() -> None:
    """Also those that only come with another key's value."""
    method = validator().schema["$defs"]["method_eps_sup_info_nce"]["properties"]
    assert method.keys() >= section_knobs("method", dict(quickstart().base["method"])).keys()
    assert {"ce_weight", "adversary_weight", "known_bias", "bias_field"} <= method.keys()
    assert {"head_hidden", "stem"} <= validator().schema["$defs"]["model_resnet18"]["properties"].keys()
