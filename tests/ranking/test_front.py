"""Studies with several metrics: what is on the front, what of it is chosen, and what runs again."""

from collections.abc import Sequence

import pytest
from helpers import Told, quickstart, record, refused
from hypothesis import given
from hypothesis import strategies as st

from study import ranking
from study.commands.plan import plan_study, plan_text
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.candidate_selection import CandidateSelection, select_candidates
from study.spec import StudySpec
from study.spec.constraints import SIGNIFICANT_DIGITS

GAP = "val/equalized_odds"
TWO = f"search.metric=[val/accuracy, {GAP}]"
THREE = "search.metric=[val/accuracy, val/equalized_odds, val/demographic_parity]"
ALONE = "search.confirm={top: 0}"

Pair = tuple[float, float]


def spec_of(*given: str, metrics: str = TWO) -> StudySpec:
    return quickstart(metrics, "search.early_stopping={name: none}", "train.epochs=1", *given)


def trial(accuracy: float, gap: float, stage: str = "search", seed: int = 0, of: int | None = None) -> Told:
    return Told(stage, [accuracy], further={GAP: gap}, seed=seed, repeats=of)


def searched(
    *values: Pair, baseline: Pair | None = None, fresh: dict[int, Sequence[Pair]] | None = None
) -> StudyRecord:
    """Trials of a search, the baseline first if there is one; by number their values on fresh seeds from 1 on."""
    told = [trial(*baseline, "baseline")] if baseline else []
    told += [trial(*each) for each in values]
    for of, each in (fresh or {}).items():
        told += [trial(*pair, "confirm", seed, of) for seed, pair in enumerate(each, 1)]
    return record(*told)


def numbers(found: list[ranking.Candidate]) -> list[int]:
    return [one.trial.number for one in found]


def front(found: StudyRecord, spec: StudySpec) -> list[int]:
    return numbers([candidate for candidate, _ in Results(spec, found).front])


def best(found: StudyRecord, spec: StudySpec) -> int:
    return Results(spec, found).ranked_all[0].trial.number


@pytest.mark.parametrize(
    ("accurate", "fair"), [((0.90, 0.30), (0.90, 0.02)), ((0.75, 0.41), (0.74, 0.05)), ((0.62, 0.9), (0.55, 0.1))]
)
def test_what_is_chosen_is_on_the_front_of_the_fresh_seeds(accurate: Pair, fair: Pair) -> None:
    """In the search the fair one leads or they share the front; on fresh seeds the other has a little more accuracy."""
    spec = spec_of("search.confirm={top: 2, seeds: 2}")
    lucky = (accurate[0] + 0.003, accurate[1])
    found = searched(accurate, fair, baseline=(0.5, 0.95), fresh={0: [(0.5, 0.95)] * 2, 1: [lucky] * 2, 2: [fair] * 2})
    assert front(found, spec) == [1, 2]
    assert best(found, spec) == 1
    assert numbers(select_candidates(Results(spec, found), CandidateSelection())) == [best(found, spec)]
    assert numbers(select_candidates(Results(spec, found), CandidateSelection(pareto=spec.objective.metrics))) == [1, 2]
    own = next(pick for pick in Results(spec, found).rule_picks if pick.rule.is_study_objective)
    assert (own.trial_number, own.rank) == (best(found, spec), 1)


values = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4))


@given(points=st.lists(values, min_size=1, max_size=10), limited=st.booleans())
def test_of_three_metrics_the_front_is_what_nothing_beats_and_the_best_is_on_it(
    points: list[tuple[int, int, int]], limited: bool
) -> None:
    """The first is to be high, the others low; by brute force."""
    limits = ["search.constraints=['val/worst_class_accuracy >= 0.5']"] if limited else []
    spec = spec_of(ALONE, *limits, metrics=THREE)
    told = [
        Told(
            "search",
            [high / 4],
            further={
                GAP: low / 4,
                "val/demographic_parity": lower / 4,
                "val/worst_class_accuracy": 1.0 if place % 2 or not limited else 0.0,
            },
        )
        for place, (high, low, lower) in enumerate(points)
    ]
    found = record(*told)
    kept = [place for place in range(len(points)) if place % 2 or not limited] or range(len(points))

    def beats(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
        return one != other and one[0] >= other[0] and one[1] <= other[1] and one[2] <= other[2]

    expected = {place for place in kept if not any(beats(points[other], points[place]) for other in kept)}
    on_front = Results(spec, found).front
    if on_front[0][1].total_violation == 0:
        assert {candidate.trial.number for candidate, _ in on_front} == expected
    assert best(found, spec) in {candidate.trial.number for candidate, _ in on_front}
    gains = [score.values_to_maximise[0] for _, score in on_front]
    assert gains == sorted(gains, reverse=True)


def test_the_last_bits_of_a_sum_neither_choose_nor_take_from_the_front() -> None:
    noisy = 0.1 + 0.2  # 0.30000000000000004
    spec = spec_of(ALONE)
    found = searched((noisy, 0.3), (0.3, 0.1), (0.3, noisy - 0.2))
    assert front(found, spec) == [1, 2], "0.3 and 0.1 both"
    assert best(found, spec) == 1
    one = searched((0.5, 0.3), (0.9, noisy))
    assert Results(spec_of(f"search.constraints=['{GAP} <= 0.3']", ALONE), one).ranked_all[0].score.total_violation == 0
    assert 10**-SIGNIFICANT_DIGITS < 1e-9


def test_a_configuration_that_the_fresh_seeds_beat_is_not_chosen() -> None:
    """Trial 1 was lucky: the best of both in the search, the worst on fresh seeds."""
    spec = spec_of("search.confirm={top: 1, seeds: 2}")
    fresh = {0: [(0.5, 0.5)] * 2, 1: [(0.6, 0.4)] * 2, 2: [(0.8, 0.3)] * 2}
    found = searched((0.95, 0.3), (0.8, 0.25), baseline=(0.5, 0.5), fresh=fresh)
    assert numbers(Results(spec, found).ranked_by_search_value) == [1, 2]
    assert (front(found, spec), best(found, spec)) == ([2], 2)
    assert numbers(Results(spec, found).candidates_to_test) == [2]


def test_before_all_have_run_again_the_search_decides() -> None:
    spec = spec_of("search.confirm={top: 1, seeds: 2}")
    found = searched((0.95, 0.3), (0.8, 0.25), baseline=(0.5, 0.5), fresh={0: [(0.5, 0.5)] * 2, 1: [(0.6, 0.4)] * 2})
    assert (front(found, spec), best(found, spec)) == ([1, 2], 1)


def test_a_baseline_that_nothing_beats_is_on_the_front_and_can_be_chosen() -> None:
    found = searched((0.9, 0.4), (0.7, 0.3), baseline=(0.8, 0.1))
    assert front(found, spec_of(ALONE)) == [1, 0]
    assert best(found, spec_of(ALONE)) == 1


def test_where_none_keeps_the_constraints_what_misses_them_by_least_leads() -> None:
    spec = spec_of(f"search.constraints=['{GAP} <= 0.05']", ALONE)
    found = searched((0.9, 0.4), (0.8, 0.2), (0.7, 0.1))
    assert (front(found, spec), best(found, spec)) == ([2], 2)


LINE = [(0.5 + place / 40, place / 20) for place in range(15)]
"""A front of 15."""


def test_a_file_with_several_metrics_says_how_much_of_the_front_runs_again() -> None:
    spec = quickstart(TWO, "search.confirm={top: 2, seeds: 3}")
    assert spec.to_document()["search"]["confirm"]["front"] == 10
    told = plan_study(spec)
    assert told.budget.trials["confirm"] == (10 + 1) * 3
    assert "then at most 33 to confirm (the whole front up to 10 configurations)" in plan_text(told)
    assert "of the front is chosen: the best val/accuracy" in plan_text(told)
    assert quickstart(TWO, "search.confirm.front=4").search.confirm.front == 4
    assert "search.confirm.front: -1 given" in refused(TWO, "search.confirm.front=-1")


@pytest.mark.parametrize(("top", "most", "expected"), [(1, 10, 10), (12, 10, 12), (2, 0, 2), (20, 10, 16), (1, 30, 15)])
def test_the_whole_front_runs_again_up_to_a_bound(top: int, most: int, expected: int) -> None:
    """With one more that is beaten, which `top` alone asks for."""
    spec = spec_of(f"search.confirm={{top: {top}, seeds: 2, front: {most}}}")
    found = searched(*LINE, (0.4, 0.9), baseline=(0.3, 0.95))
    again = [one.number for one in Results(spec, found).confirmation.trials_to_confirm()]
    assert again[0] == 0
    assert len(set(again)) == len(again) == expected + 1
    if expected < len(LINE):
        assert numbers(Results(spec, found).ranked_by_search_value)[0] in again, "what the rule would choose"
        assert 16 not in again
    if expected >= 10:
        assert {1, 15} <= set(again), "both ends"


def test_a_study_of_one_metric_is_what_it_was() -> None:
    spec = quickstart()
    assert "front" not in spec.to_document()["search"]["confirm"]
