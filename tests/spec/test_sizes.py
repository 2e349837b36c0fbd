"""Numbers of a search that are too large for what computes with them, and choices that are no single value."""

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from study.errors import UserError
from study.spec import StudySpec, load_study
from study.spec.optuna_distributions import distributions_of_space

FILE = """
name: big
method: {name: own_function, function: "functions_of_sizes:train"}
train: {epochs: 1}
search:
  space: {method.n: DOMAIN}
  trials: 4
  metric: val/score
  direction: max
"""


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "functions_of_sizes.py").write_text("def train(config, seed, epochs):\n    yield {}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "functions_of_sizes", raising=False)

    def of(domain: str) -> StudySpec:
        (file := tmp_path / "big.yaml").write_text(FILE.replace("DOMAIN", domain))
        return load_study(str(file))

    return of


@pytest.mark.parametrize(
    ("domain", "told"),
    [
        ("{low: 0, high: 9007199254740993}", "2**53"),
        ("{low: 9007199254740993, high: 9007199254740999}", "2**53"),
        ("{low: -1000000000000000000, high: 5}", "2**53"),
        ("{low: 1, high: 1000000000000000000, log: true}", "2**53"),
        ("{low: 0, high: 1000000000000000000, step: 999999999999}", "2**53"),
        ("{low: 0.1, high: 1.0e+18, step: 3.3e+12}", "more digits than a number holds"),
        ("{choices: [[1, 2], [3, 4]]}", "[1, 2] given, allowed is one value: a number, a word, true, false or null."),
        ("{choices: [{a: 1}, {b: 2}]}", "{'a': 1} given, allowed is one value"),
        ("[1, 2]", "[1, 2] given: values to choose from are written as {choices: [...]}"),
        ("{choices: [.nan, 1.0]}", "nan given, allowed is"),
        ("{choices: [1, .inf]}", "inf given, allowed is"),
        (f"{{low: 0, high: {10**400}}}", "allowed is a whole number of at most 9223372036854775807, in size"),
        (f"{{low: -{10**400}, high: 1}}", "allowed is a whole number of at most 9223372036854775807, in size"),
        (f"{{low: 0, high: 1, step: {10**400}}}", "allowed is a whole number of at most 9223372036854775807, in size"),
        (f"{{choices: [{10**400}, 1]}}", "a whole number of at most 9223372036854775807, in size"),
        (f"{{choices: [1, {2**70}]}}", "a whole number of at most 9223372036854775807, in size"),
        (f"{{choices: [{-(2**63)}, 1]}}", "a whole number of at most 9223372036854775807, in size"),
        (f"{{low: 0, high: {2**63}}}", "a whole number of at most 9223372036854775807, in size"),
        (f"{{low: 0.5, high: {2**70}}}", "a whole number of at most 9223372036854775807, in size"),
    ],
)
def test_what_cannot_be_searched_is_refused_with_the_key(load: Any, domain: str, told: str) -> None:
    with pytest.raises(UserError) as refused:
        load(domain)
    assert told in str(refused.value)
    assert "big.yaml:6: search.space.method.n" in str(refused.value)


@pytest.mark.parametrize(
    "domain",
    [
        "{low: -9007199254740992, high: 9007199254740992}",
        "{low: 9007199254740990, high: 9007199254740992}",
        "{low: 1, high: 9007199254740992, log: true}",
        "{low: 0, high: 9007199254740992, step: 1000000001}",
        "{low: 0, high: 10, step: 3}",
        "{low: 0.0, high: 1.0, step: 0.3}",
        "{low: 0, high: 1.0e+18}",
        "{low: 0.0, high: 1.0e+18, step: 3.0e+12}",
        "{low: 1.0, high: 1.0e+18, log: true}",
        "{choices: [9007199254740993, 9007199254740992]}",
        "{choices: [true, 1, 0, null, x]}",
    ],
)
def test_what_can_be_searched_is_told_to_the_sampler_without_a_warning(load: Any, domain: str) -> None:
    spec = load(domain)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = distributions_of_space(spec.space).values()
    ends = spec.space.domains["method.n"].boundary_values()
    assert found._contains(found.to_internal_repr(ends[0]))


@pytest.mark.parametrize(
    ("value", "allowed"),
    [
        (".inf", "a finite number"),
        ("-.inf", "a finite number"),
        (".nan", "a finite number"),
        (str(10**400), "less than or equal to 9223372036854775807"),
        (str(-(2**63)), "greater than or equal to -9223372036854775807"),
    ],
)
@pytest.mark.parametrize(
    ("given", "key"), [("baseline: {method.n: VALUE}", "baseline"), ("enqueue: [{method.n: VALUE}]", "enqueue.0")]
)
def test_a_given_configuration_has_numbers_that_its_ledger_keeps(
    load: Any, value: str, allowed: str, given: str, key: str
) -> None:
    with pytest.raises(UserError) as refused:
        load(f"{{low: 0.0, high: 1.0}}}}\n  {given.replace('VALUE', value)}\n  alternatives: {{")
    assert f"search.{key}.method.n: " in str(refused.value)
    assert f"given, allowed is {allowed}" in str(refused.value)
