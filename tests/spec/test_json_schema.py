"""The JSON Schema of study files: it takes what `study plan` takes, and refuses the usual mistakes."""

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from jsonschema import Draft202012Validator

import study
from study import cli
from study.errors import UserError
from study.spec import json_schema, load_study
from study.spec.json_schema import names_of_section, possible_knobs_by_key
from study.spec.sampler_capabilities import SAMPLER_CAPABILITIES
from study.spec.schema import SamplerName
from study.spec.yaml_document import read_study_file, shipped_studies_folder, shipped_study_files
from study.sweep.samplers import STRATEGIES
from study.training.config import TRIAL_SECTIONS

PACKAGE = Path(study.__file__).parent
QUICKSTART = read_study_file(shipped_study_files()["quickstart"]).values


SHIPPED = (shipped_studies_folder() / json_schema.SCHEMA_FILE_NAME).read_text(encoding="utf-8")


@cache
def text() -> str:
    return json_schema.study_file_schema_text()


@cache
def validator() -> Draft202012Validator:
    """The schema as shipped: to make it takes seconds, and a slow test holds the two equal."""
    return Draft202012Validator(json.loads(SHIPPED))


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
    assert text() == SHIPPED


def test_the_shipped_file_has_the_names_that_there_are() -> None:
    """After a new name: study schema -o search_spaces/study.schema.json"""
    kinds = json.loads(SHIPPED)["$defs"]
    for section in ("data", "model", "method"):
        assert kinds[f"{section}_name"]["anyOf"][0]["enum"] == names_of_section(section)
    assert kinds["Search"]["properties"]["sampler"]["enum"] == list(SAMPLER_CAPABILITIES)


def test_what_is_declared_of_samplers_is_of_those_that_there_are() -> None:
    assert set(STRATEGIES) == set(SAMPLER_CAPABILITIES) == set(get_args(SamplerName))


def test_the_command_writes_it_where_it_can(tmp_path: Path) -> None:
    cli.app(["schema", "-o", str(tmp_path / "own.json")], standalone_mode=False)
    assert (tmp_path / "own.json").read_text(encoding="utf-8") == text()
    (tmp_path / "link").symlink_to("new/own.json")
    cli.app(["schema", "-o", str(tmp_path / "link")], standalone_mode=False)
    assert (tmp_path / "new" / "own.json").read_text(encoding="utf-8") == text()
    with pytest.raises(UserError, match=r"own\.json: cannot be written"):
        cli.app(["schema", "-o", str(tmp_path / "own.json" / "own.json")], standalone_mode=False)


def test_of_a_file_of_a_function_of_ones_own_nothing_is_said() -> None:
    """Its keys are the function's; `study plan` checks them."""
    own = {"name": "own_function", "function": "my_loop:train", "batch": 64}
    assert problems({"name": "mine", "method": own, "search": {"metric": "val/my_score"}}) == []


@pytest.mark.parametrize("name", shipped_study_files())
def test_every_shipped_file_names_it_and_is_valid(name: str) -> None:
    first = shipped_study_files()[name].read_text(encoding="utf-8").splitlines()[0]
    assert first == f"# yaml-language-server: $schema={json_schema.SCHEMA_FILE_NAME}"
    assert problems(read_study_file(shipped_study_files()[name]).values) == []


@pytest.mark.parametrize("name", ["quickstart", "debias_all"])
def test_a_resolved_file_is_valid(name: str) -> None:
    assert problems(load_study(name).to_document()) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("search", "space", "method.alpha"), "paper"),
        (("search", "space", "method.alpha"), {"range": "paper", "high": 2.0}),
        (("search", "space", "method.alpha"), {"choices": [0.5], "low": None}),
        (("search", "space", "method.name"), {"choices": ["a label of my own", "sup_con"]}),
        (("search", "space", "train.batch_size"), {"low": 32, "high": 64, "when": {"method.name": ["sup_con"]}}),
        (("search", "enqueue"), "papers"),
        (("search", "enqueue"), [{"method.alpha": 0.5}]),
        (("search", "metric"), ["val/accuracy", "val/equalized_odds"]),
        (("search", "time"), "1h30m"),
        (("resources", "hang"), "15m"),
        (("profiles", "fast"), {"train.epochs": 1, "search.space.method.alpha.low": 0.1, "data": {"name": "adult"}}),
    ],
)
def test_what_is_allowed_is(path: tuple[str, ...], value: Any) -> None:
    assert problems(changed(path, value)) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("trian",), {}),
        (("data", "roh"), 0.1),
        (("data", "rho"), 1.5),
        (("model", "stem"), "cifar"),
        (("method", "regulariser"), "fairkl"),
        (("train", "epochs"), "ten"),
        (("search", "trails"), 3),
        (("search", "metric"), "val/acc"),
        (("search", "time"), "90 minutes"),
        (("search", "enqueue"), [{"method.epsilonn": 0.1}]),
        (("search", "space", "method.lamda"), {"low": 0, "high": 1}),
        (("search", "space", "method.alpha"), {"choices": ["large"]}),
        (("search", "space", "train.epochs"), {"low": 1, "high": 2}),
        (("search", "space", "train.augmentation"), {"choices": ["flip"]}),
        (("search", "alternatives"), {"method": {"mine": {"name": "wcl", "beta": 1}}}),
        (("resources", "gpu"), -1),
    ],
)
def test_usual_mistakes_are_refused(path: tuple[str, ...], value: Any) -> None:
    assert problems(changed(path, value)) != []


@pytest.mark.parametrize("section", TRIAL_SECTIONS)
def test_every_key_of_every_entry_says_what_it_is(section: str) -> None:
    silent = [
        f"{name}: {knob.key}"
        for name in (names_of_section(section) if section != "train" else [""])
        for knobs in possible_knobs_by_key(section, name).values()
        for knob in knobs
        if not knob.description
    ]
    assert silent == []
