"""No sampler proposes a configuration twice while its space has another one."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers import quickstart
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from study.spec import StudySpec, load_study
from study.spec.configuration import are_same_configuration
from study.spec.objective import TrialScore
from study.spec.sampler_capabilities import SAMPLER_CAPABILITIES
from study.spec.search_checks import count_configurations
from study.sweep.optuna_history import ConfigurationOutcome
from study.sweep.search_stage import UntriedSuggestions

SUGGESTIONS = 30
EVERYWHERE = [name for name, can in SAMPLER_CAPABILITIES.items() if not (can.needs_every_key or can.tries_every_cell)]

CHOICES = st.lists(
    st.one_of(st.booleans(), st.integers(-3, 3), st.sampled_from(["a", "b", "c"]), st.sampled_from([0.5, 1.5])),
    min_size=1,
    max_size=4,
    unique_by=lambda value: (isinstance(value, bool), value),
).map(lambda found: {"choices": found})
STEPS = st.tuples(st.integers(0, 2), st.integers(1, 4)).map(
    lambda ends: {"low": 0.25 * ends[0], "high": 0.25 * sum(ends), "step": 0.25}
)
RANGES = st.sampled_from(
    [{"low": 0.0, "high": 1.0}, {"low": 1e-4, "high": 1.0, "log": True}, {"low": -2.5, "high": 1e6}]
)


@st.composite
def spaces(draw: st.DrawFn, conditions: bool = True) -> dict[str, Any]:
    found = {f"method.k{place}": draw(st.one_of(STEPS, RANGES, CHOICES)) for place in range(draw(st.integers(1, 3)))}
    if conditions and draw(st.booleans()):
        found["method.mode"] = {"choices": ["here", "there"]}
        found["method.sometimes"] = {**draw(st.one_of(STEPS, CHOICES)), "when": {"method.mode": ["here"]}}
    return found


def spec_of(folder: Path, sampler: str, space: dict[str, Any]) -> StudySpec:
    method = {"name": "own_function", "function": "own_functions:train"}
    search = {"space": space, "metric": "val/accuracy", "sampler": sampler, "trials": SUGGESTIONS}
    document = {"name": "kinds", "method": method, "train": {"epochs": 2}, "search": search}
    file = folder / "kinds.yaml"
    file.write_text(yaml.safe_dump(document))
    return load_study(str(file))


def worth(params: dict[str, Any]) -> float:
    return float(sum(hash(json.dumps(value)) % 7 if isinstance(value, str) else value for value in params.values()))


def end(number: int, params: dict[str, Any]) -> ConfigurationOutcome:
    value = worth(params)
    return ConfigurationOutcome(number, "complete", (), TrialScore((value,), (value,)))


def check(spec: StudySpec, cut: int) -> None:
    """30 suggestions, of which those from `cut` on are also made by a sampler that took the others from a ledger."""
    sampler, found = UntriedSuggestions(spec), list[dict[str, Any]]()
    for number in range(SUGGESTIONS):
        if (params := sampler.suggest_untried_params(number)) is None:
            break
        found.append(params)
        sampler.history.add_outcome(end(number, params))
    there = count_configurations(spec.search, spec.space)
    assert there is None or not any(domain.is_range_of_reals for domain in spec.search.space.values())
    assert len(found) == min(SUGGESTIONS, there or SUGGESTIONS)
    for number, params in enumerate(found):
        assert spec.space.contains(params)
        assert not any(are_same_configuration(params, other) for other in found[:number])
        for key, value in params.items():
            domain = spec.search.space[key]
            assert domain.choices is None or any(type(value) is type(one) and one == value for one in domain.choices)
            assert domain.choices is not None or isinstance(value, float)
    resumed = UntriedSuggestions(spec)
    for number, params in enumerate(found[:cut]):
        resumed.add_decided_params(number, params)
        resumed.history.add_outcome(end(number, params))
    for number, params in enumerate(found[cut:], start=min(cut, len(found))):
        assert resumed.suggest_untried_params(number) == params
        resumed.history.add_outcome(end(number, params))


TRIED = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.slow
@pytest.mark.parametrize("sampler", EVERYWHERE)
@TRIED
@given(space=spaces(), cut=st.integers(0, SUGGESTIONS))
def test_any_space(sampler: str, tmp_path: Path, space: dict[str, Any], cut: int) -> None:
    check(spec_of(tmp_path, sampler, space), cut)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [name for name, can in SAMPLER_CAPABILITIES.items() if can.needs_every_key])
@settings(TRIED, max_examples=8)
@given(space=spaces(conditions=False), cut=st.integers(0, SUGGESTIONS))
def test_any_space_whose_keys_every_trial_has(sampler: str, tmp_path: Path, space: dict[str, Any], cut: int) -> None:
    check(spec_of(tmp_path, sampler, space), cut)


def test_what_a_study_is_given_twice_runs_once() -> None:
    one, other = ({"method.alpha": alpha, "method.lambda": 1.0, "method.epsilon": 0.25} for alpha in (0.5, 0.6))
    given_twice = json.dumps([one, other, one, {**other, "method.lambda": 1}])
    spec = quickstart(f"search.baseline={json.dumps(one)}", f"search.enqueue={given_twice}")
    assert spec.search.enqueue == [other]
