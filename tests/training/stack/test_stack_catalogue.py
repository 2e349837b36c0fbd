"""Every method that a stack takes gives, under drawn hyperparameters, what its trials alone give."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies
from small import section
from stacks import Exact, both, close, configs, drawn, few, ranges, sections

from study import methods
from study.knobs import Knob
from study.training.stack.together import apart

CASES = list(sections())
FAST = ({"name": "sup_con", "regulariser": "fair_kl", "variant": "kl"}, {"name": "bias_con", "cross_entropy": "plain"})


def numbers(case: dict[str, Any]) -> list[Knob]:
    knobs = methods.method_knobs(section(**case)).values()
    return [knob for knob in knobs if knob.kinds == (float,)]


def compare(case: dict[str, Any], rows: list[dict[str, float]]) -> None:
    views = methods.needs(section(**case)).views
    told = configs([case | row for row in rows], epochs=1, augmentation="crop_flip" if views else "none")
    assert apart(told[0], told[1]) is None
    # a plain cross entropy is computed in float32
    exact = 1e-10 if "cross_entropy" not in case.values() and case.get("cross_entropy") != "plain" else 1e-6
    alone, serial, stacked, together = both(told, Exact, few())
    for ours, theirs, trial, other in zip(serial, together, alone, stacked, strict=True):
        assert theirs[0]["train/loss"] == pytest.approx(ours[0]["train/loss"], rel=exact, abs=1e-12)
        assert theirs[0].keys() == ours[0].keys()
        close(trial, other, 1e-6)  # what the probes, in float32, and Adam's division by small numbers leave


@pytest.mark.parametrize("case", FAST, ids=str)
@settings(max_examples=2, derandomize=True, deadline=None, database=None, phases=[Phase.generate])
@given(data=strategies.data())
def test_a_stack_of_two_gives_what_its_trials_give(case: dict[str, Any], data: strategies.DataObject) -> None:
    compare(case, [{knob.key: data.draw(drawn(knob), label=knob.key) for knob in numbers(case)} for _ in range(2)])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(str(value) for value in case.values()))
@settings(
    max_examples=2,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=strategies.data())
def test_every_method_of_the_catalogue_in_a_stack(case: dict[str, Any], data: strategies.DataObject) -> None:
    compare(case, [{knob.key: data.draw(drawn(knob), label=knob.key) for knob in numbers(case)} for _ in range(3)])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(str(value) for value in case.values()))
def test_a_number_that_is_zero_beside_some_that_are_not(case: dict[str, Any]) -> None:
    may = [knob.key for knob in numbers(case) if any(note.low == 0.0 for note in ranges(knob))]
    if not may:
        pytest.skip("none may be 0")
    compare(case, [dict.fromkeys(may, 0.0), dict.fromkeys(may, 0.25)])
