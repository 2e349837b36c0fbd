"""What the lead is computed from, and small versions of its simulations."""

import math
from operator import ge

import numpy as np
import pytest
from benchmarks.simulations import leads
from helpers import Told, quickstart, record
from hypothesis import given, settings
from hypothesis import strategies as st

from study.analysis.statistics.debiasing_metrics import (
    n_samples_of_accuracy,
    sampling_standard_error,
    worst_group_of_arm,
)
from study.analysis.statistics.next_step import TrialFailed, last_front_growth_trial, next_steps
from study.analysis.statistics.range_edges import find_range_edges
from study.home.events import GroupSampleCounts, SessionClosed
from study.ranking import Results
from study.ranking.arms import arm_of_candidate


def test_a_study_that_a_failed_trial_stopped_goes_on_by_running_it_again() -> None:
    found = record(Told("baseline", [0.5], "failed"), Told("search", [0.6]))
    found.trials[0].failure_kind, found.trials[0].reason = "BUG", "RuntimeError: my own"
    found.apply(SessionClosed("failed"))
    [step] = next_steps(Results(quickstart(), found))
    assert isinstance(step.why, TrialFailed)
    assert (step.why.trial, step.why.why) == (0, found.trials[0].end_reason)
    assert step.command == "study resume quickstart --failed"


@pytest.mark.slow
def test_small_simulations_keep_what_the_lead_promises() -> None:
    rng = np.random.default_rng(11)
    rows = [
        *leads.seeds(200, rng, leads.SEEDS),
        *leads.following(200, rng),
        leads.false_alarms(2, 24, 60, rng),
        leads.hits(20, rng),
        leads.nothing_better(10, rng),
        leads.the_best(3, 3, 40, rng),
        leads.split_error(300, rng),
    ]
    assert [row.statement for row in rows if not row.holds] == []


THREE = ("val/accuracy", "val/worst_group_accuracy", "val/unbiased_accuracy")


@settings(max_examples=10)
@given(st.lists(st.tuples(*[st.integers(0, 5)] * 3), min_size=1, max_size=12))
def test_the_front_last_grew_with_the_last_trial_that_no_earlier_one_equals_or_beats(points: list[tuple]) -> None:
    """Of three metrics, with these values in fifths."""
    grown = [n for n, at in enumerate(points) if not any(all(map(ge, other, at)) for other in points[:n])]
    spec = quickstart(f"search.metric=[{', '.join(THREE)}]", "search.early_stopping={name: none}", "train.epochs=1")
    told = [
        Told(
            "search",
            [point[0] / 5],
            further={name: value / 5 for name, value in zip(THREE[1:], point[1:], strict=True)},
        )
        for point in points
    ]
    assert last_front_growth_trial(Results(spec, record(*told))) == grown[-1]


def test_a_range_of_few_steps_or_few_trials_has_no_edge() -> None:
    def rising(space: str, trials: int) -> bool:
        spec = quickstart(f"search.space={{method.lambda: {space}}}", "search.baseline=null")
        told = [Told("search", [0.9 - at / 100], params={"method.lambda": 2.0 - at * 0.05}) for at in range(trials)]
        return bool(find_range_edges(Results(spec, record(*told))))

    assert rising("{low: 0.0, high: 2.0}", 20)
    assert not rising("{low: 0.0, high: 2.0}", 9)
    assert not rising("{low: 0.0, high: 2.0, step: 1.0}", 20)
    assert not rising("{choices: [0.0, 1.0, 2.0]}", 20)


def test_the_worst_group_its_size_and_how_far_it_may_be_off() -> None:
    groups = {"test/group_0_0_accuracy": 0.9, "test/group_0_1_accuracy": 0.5, "test/group_1_0_accuracy": 0.7}
    tested = {"test/worst_group_accuracy": 0.5, "test/accuracy": 1.0, "test/equalized_odds": 0.1, **groups}
    errors = {"val/worst_group_accuracy": 0.4, "val/worst_group_accuracy_standard_error": 0.03}
    spec, found = quickstart(), record(Told("final", [0.5], tested=tested, further=errors))
    arm = Results(spec, found).final_training_arm
    assert arm is not None
    assert worst_group_of_arm(found, arm, "test") is None
    assert sampling_standard_error(found, arm, "test/worst_group_accuracy") is None
    found.group_sample_counts = GroupSampleCounts({"test": [[50, 25], [0, 100]]}, ["cat", "dog"], ["dark", "light"])
    told = worst_group_of_arm(found, arm, "test")
    assert told is not None
    assert [(group.name, group.samples) for group in told.worst] == [("class 'cat' with bias class 'light'", 25)]
    assert sampling_standard_error(found, arm, "test/worst_group_accuracy") == pytest.approx(0.1)
    assert sampling_standard_error(found, arm, "test/accuracy") == pytest.approx(math.sqrt(176 / 177 / 177 / 175))
    assert sampling_standard_error(found, arm, "val/worst_group_accuracy") == 0.03
    assert sampling_standard_error(found, arm, "test/equalized_odds") is None
    assert told.group_sizes == (25, 50, 100)
    assert worst_group_of_arm(found, arm, "val") is None


@pytest.mark.parametrize(
    ("aligned", "conflicting"),
    [([0, 1], 36), ([1, 0], 165), (None, None), ([0, -1], 126), ([-1, -1], 201), ([[0, 1], -1], 120)],
)
def test_samples_that_conflict_are_counted_by_the_class_that_each_bias_class_goes_with(
    aligned: list[int | list[int]] | None, conflicting: int | None
) -> None:
    found = record(Told("search", [0.6]))
    found.group_sample_counts = GroupSampleCounts.from_sizes({"val": [[75, 30], [6, 90]], "aligned": aligned})
    arm = arm_of_candidate(quickstart(), Results(quickstart(), found).ranked_all[0])
    counted = [n_samples_of_accuracy(found, arm, "val", f"{name}_accuracy") for name in ("aligned", "conflicting")]
    assert counted == [None if conflicting is None else 201 - conflicting, conflicting]


def test_more_bias_classes_than_classes_are_counted_too() -> None:
    found = record(Told("search", [0.6]))
    found.group_sample_counts = GroupSampleCounts.from_sizes({"val": [[75, 30, 1], [6, 90, 2]], "aligned": [0, 1, 1]})
    arm = arm_of_candidate(quickstart(), Results(quickstart(), found).ranked_all[0])
    assert n_samples_of_accuracy(found, arm, "val", "conflicting_accuracy") == 30 + 1 + 6
