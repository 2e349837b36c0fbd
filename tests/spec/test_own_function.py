"""Study files of a training function of the user's own."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from study.errors import UserError
from study.home.folder import Home
from study.spec import StudySpec, load_resolved, load_resolved_and_check, load_study

SPACE = {"method.rate": {"low": 0.001, "high": 1, "log": True}, "method.depth": {"low": 1, "high": 4}}


def own(
    tmp_path: Path, method: dict[str, Any] | None = None, search: dict[str, Any] | None = None, **other: Any
) -> Path:
    document = {
        "name": "own",
        "method": {"name": "own_function", "function": "own_functions:train", **(method or {})},
        "train": {"epochs": 6},
        "search": {"space": SPACE, "trials": 9, "metric": "val/auc", **(search or {})},
        **other,
    }
    path = tmp_path / "own.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


def read(path: Path, *assignments: str) -> StudySpec:
    return load_study(str(path), assignments)


def test_the_sections_are_filled_in_and_the_resolved_file_is_the_same_study(tmp_path: Path) -> None:
    spec = read(own(tmp_path, {"batch": 32, "name": "own_function", "layers": [1, 2]}))
    assert spec.training_function == "own_functions:train"
    assert (spec.base["data"], spec.base["model"]) == ({"name": "none", "folds": None}, {"name": "none"})
    assert spec.metrics_by_data_set == [["auc"]]
    assert spec.trial_document({"method.rate": 0.5})["method"] == {
        "name": "own_function",
        "function": "own_functions:train",
        "batch": 32,
        "layers": [1, 2],
        "rate": 0.5,
        "depth": 1,
    }
    folder = Home(tmp_path / "home").create_study(spec)
    assert load_resolved(folder.spec_file).hash == spec.hash == load_resolved_and_check(folder.spec_file).hash


@pytest.mark.parametrize(
    ("baseline", "expected"), [(None, (0.001, 1)), ({"method.depth": 3, "method.rate": 0.5}, (0.5, 3))]
)
def test_what_is_only_searched_begins_at_the_baseline_or_without_one_at_the_low_end(
    baseline: dict[str, Any] | None, expected: tuple[float, int], tmp_path: Path
) -> None:
    method = read(own(tmp_path, search={"baseline": baseline})).base["method"]
    assert (method["rate"], method["depth"]) == expected


@pytest.mark.parametrize("baseline", [{"method.depth": 3}, {}])
def test_a_baseline_without_a_value_that_the_file_does_not_give_is_refused(
    baseline: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"search.baseline: lacks .*method.rate"):
        read(own(tmp_path, search={"baseline": baseline}))
    of_file = {"rate": 0.1, "depth": 2}
    spec = read(own(tmp_path, of_file, {"baseline": baseline}))
    assert spec.trial_document(spec.search.baseline or {})["method"].items() >= {"rate": 0.1}.items()


@pytest.mark.parametrize(("kind", "is_needed"), [("svm", False), ("net", True)])
def test_a_baseline_needs_only_the_keys_whose_condition_holds(kind: str, is_needed: bool, tmp_path: Path) -> None:
    space = {
        "method.kind": {"choices": ["svm", "net"]},
        "method.width": {"low": 4, "high": 64, "when": {"method.kind": ["net"]}},
    }
    path = own(tmp_path, search={"space": space, "baseline": {"method.kind": kind}})
    if is_needed:
        with pytest.raises(UserError, match=r"search.baseline: lacks method.width"):
            read(path)
    else:
        assert read(path).search.baseline == {"method.kind": "svm"}


@pytest.mark.parametrize("name", ["val/score", "val/f1", "val/bias_accuracy"])
def test_a_direction_that_is_not_known_must_be_given(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=rf"own.yaml.*search.direction: is missing: .*{name} .*Allowed: max or min "):
        read(own(tmp_path, search={"metric": name}))
    for direction in ("max", "min"):
        spec = read(own(tmp_path, search={"metric": name, "direction": direction}))
        assert spec.mode == spec.direction(name.replace("val", "test")) == direction
        assert load_resolved_and_check(Home(tmp_path / direction).create_study(spec).spec_file).mode == direction


def test_a_direction_against_what_the_table_says_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"search.direction: 'max' given for val/loss, of which a lower value"):
        read(own(tmp_path, search={"metric": "val/loss", "direction": "max"}))
    both = {"metric": ["val/score", "val/f1"], "direction": ["min"]}
    with pytest.raises(UserError, match=r"search.direction: \['min'\] given, allowed is one for each of 2 metrics"):
        read(own(tmp_path, search=both))
    spec = read(own(tmp_path, search={**both, "direction": ["min", "max"]}))
    assert spec.objective.directions == ("min", "max")


def test_ranges_of_whole_numbers_are_such_and_others_are_not(tmp_path: Path) -> None:
    spec = read(own(tmp_path, {"rate": 1, "depth": 2}))
    assert spec.space.integer_keys == {"method.depth"}
    assert type(spec.base["method"]["rate"]) is float


@pytest.mark.parametrize("choices", [[1, 0.5], [1, "auto"], [True, 2], ["a", None]])
def test_choices_may_be_of_different_kinds(choices: list[Any], tmp_path: Path) -> None:
    spec = read(own(tmp_path, search={"space": {"method.kind": {"choices": choices}}, "trials": 2}))
    assert spec.search.space["method.kind"].choices == choices
    assert spec.base["method"]["kind"] in choices


def test_an_exported_configuration_has_no_search_left(tmp_path: Path) -> None:
    spec = read(own(tmp_path, {"rate": 0.5, "depth": 2}, {"space": {}, "trials": 1}))
    assert spec.trial_config({}).method["depth"] == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"search": {"metric": "accuracy"}}, r"search.metric: 'accuracy' given. Allowed: val/NAME, as the function"),
        ({"search": {"constraints": ["gap <= 0.1"]}}, r"search.constraints.0: 'gap' given"),
        ({"search": {"space": {"train.learning_rate": {"low": 0.1, "high": 1.0}}}}, r"allowed are method.NAME"),
        ({"search": {"space": {"method.function": {"choices": ["a:b"]}}}}, r"cannot be searched"),
        ({"search": {"space": {"method.a": {"low": 2}}}}, r"search.space.method.a: give low and high"),
        ({"search": {"baseline": {"method.dept": 2}}}, r"method.dept: unknown key. Did you mean 'method.depth'"),
        ({"search": {"baseline": {"method.depth": 2.5}}}, r"search.baseline.method.depth: 2.5 given"),
        ({"train": {"report_test": True}}, r"train.report_test: means nothing"),
        ({"data": {"name": "biased_digits"}}, r"data.name: 'biased_digits' given, allowed is none"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        read(own(tmp_path, **changes))


def test_a_function_is_missing(tmp_path: Path) -> None:
    path = own(tmp_path)
    document = yaml.safe_load(path.read_text())
    del document["method"]["function"]
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(UserError, match=r"method.function: is missing"):
        read(path)


@pytest.mark.parametrize("key", ["data", "model"])
def test_a_method_of_this_package_needs_data_and_a_network(key: str) -> None:
    with pytest.raises(UserError, match=rf"{key}.name: 'none' given"):
        load_study("fairkl_digits", [f"{key}={{name: none}}"])


def test_neither_is_a_choice_of_a_search_or_an_alternative() -> None:
    with pytest.raises(UserError, match=r"method.name.*'own_function' given"):
        load_study("fairkl_digits", ["search.space.method.name={choices: [own_function]}"])
    with pytest.raises(UserError, match=r"search.alternatives.method.mine.name: 'own_function' given"):
        load_study("fairkl_digits", ["search.alternatives.method.mine={name: own_function, function: a:b}"])
