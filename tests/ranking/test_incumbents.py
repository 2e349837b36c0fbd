"""An incumbent is chosen unless another configuration is ahead of it by more than the margin."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from course import Course
from helpers import Told, quickstart, record, refused
from told_studies import DRAWN, ENQUEUED, OTHER, OURS, WHOLE, incumbent_spec, incumbents, judged, only, said

from study.analysis.report.caveats import MarginNotApplied
from study.analysis.report.certainty_sentences import BestAmongRivals
from study.analysis.report.conclusions import GainOverBaseline, IncumbentKeptByMargin
from study.analysis.report.report_lead import ResultParameters
from study.analysis.statistics.next_step import UndecidedBySeeds, next_steps
from study.commands.plan import plan_budget
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.candidate_selection import CandidateSelection, select_candidates
from study.spec import StudySpec
from study.spec.load import spec_of_resolved
from study.spec.yaml_document import parse_study_yaml
from study.training.standard_errors import binomial_error

PLAIN = (*WHOLE, "search.metric=val/accuracy")


def best(spec: StudySpec, found: StudyRecord) -> int:
    chosen = Results(spec, found).best
    assert chosen is not None
    assert (
        select_candidates(Results(spec, found), CandidateSelection())[0] is chosen
        or select_candidates(Results(spec, found), CandidateSelection())[0].trial is chosen.trial
    )
    return chosen.trial.number


def ended(spec: StudySpec, found: StudyRecord) -> Results:
    found.state = "complete"
    return Results(spec, found)


@pytest.mark.parametrize(("margin", "value", "chosen"), [(0, 0.71, 3), (1, 0.72, 1), (1, 0.74, 3), (2, 0.74, 1)])
def test_the_better_incumbent_stays_within_the_margin(margin: float, value: float, chosen: int) -> None:
    # .028 is the error of the difference of two values with an error of .02 each
    found = record(*incumbents(0.5, 0.7, 0.65, value))
    assert best(incumbent_spec(margin), found) == chosen
    numbers = [candidate.trial.number for candidate in Results(incumbent_spec(margin), found).ranked_all]
    assert sorted(numbers) == [0, 1, 2, 3]
    assert numbers[1:] == [number for number in (3, 1, 2, 0) if number != chosen]


def test_the_page_says_in_one_statement_that_it_stays_and_why() -> None:
    results = ended(incumbent_spec(), record(*incumbents(0.5, 0.7, 0.65, 0.712)))
    stays = only(IncumbentKeptByMargin, results)
    assert (stays.leading.trial_number, stays.incumbent.trial_number, stays.chosen.trial_number) == (3, 1, 1)
    assert (stays.lead.gain, stays.lead.standard_error) == (pytest.approx(0.012), pytest.approx(0.02 * 2**0.5))
    assert (stays.margin, stays.is_papers) == (1.0, False)
    assert only(ResultParameters, results).values == OURS
    assert not said(IncumbentKeptByMargin, ended(incumbent_spec(), record(*incumbents(0.5, 0.7, 0.65, 0.8))))


def test_the_papers_values_are_called_that() -> None:
    spec = quickstart(*PLAIN, "search.space={method.alpha: paper, method.lambda: paper}", "search.enqueue=papers",
                      "search.margin=1")  # fmt: skip
    values = [0.7, 0.6, 0.5][: len(spec.search.enqueue)]
    trials = [judged("search", value, params) for value, params in zip(values, spec.search.enqueue, strict=True)]
    results = ended(
        spec, record(judged("baseline", 0.5, dict(spec.search.baseline or {})), *trials, judged("search", 0.71, DRAWN))
    )
    assert only(IncumbentKeptByMargin, results).is_papers


def test_one_behind_the_leader_is_taken_that_is_beyond_its_own_error() -> None:
    trials = [*incumbents(0.5, 0.7, 0.65), judged("search", 0.76, DRAWN, 0.2)]
    trials.append(judged("search", 0.75, DRAWN | {"method.alpha": 0.09}, 0.02))
    found = record(*trials)
    assert best(incumbent_spec(), found) == 4
    assert only(IncumbentKeptByMargin, ended(incumbent_spec(), found)).chosen.trial_number == 4


def again(values: dict[int, Sequence[float]], params: dict[int, dict[str, Any]], error: float) -> list[Told]:
    return [
        judged("confirm", value, params[of], error, seed=seed, repeats=of)
        for of, each in values.items()
        for seed, value in enumerate(each, 1)
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "error", "chosen"),
    [
        ([0.70, 0.72], [0.73, 0.75], 0.02, 3),  # .03 ahead on each seed: the split's .028 alone counts
        ([0.70, 0.72], [0.71, 0.73], 0.02, 1),
        ([0.70, 0.72], [0.70, 0.78], 0.02, 1),  # .03 ahead as well, but the seeds disagree
        ([0.70, 0.72], [0.73, 0.75], 0.03, 1),
    ],
)
def test_fresh_seeds_leave_the_error_of_the_split(
    ours: Sequence[float], theirs: Sequence[float], error: float, chosen: int
) -> None:
    trials = incumbents(0.5, 0.7, 0.65, 0.9)
    params = {number: one.params for number, one in enumerate(trials)}
    repeated = again({0: [0.5, 0.5], 1: ours, 3: theirs}, params, error)
    found = record(*trials, *repeated)
    assert Results(incumbent_spec(), found).is_confirmed
    assert best(incumbent_spec(), found) == chosen


def test_the_errors_of_two_on_the_same_samples_are_rather_too_large() -> None:
    generator, shared = np.random.default_rng(0), {0.0: [], 0.8: []}
    for alike in shared:
        gaps, errors = [], []
        for _ in range(2000):
            luck = generator.random(60)
            own = np.where(generator.random(60) < alike, luck, generator.random(60))
            right = [(each < 0.8).sum() for each in (luck, own)]
            gaps.append((right[0] - right[1]) / 60)
            errors.append(
                np.hypot(*(float(binomial_error(torch.tensor(float(one)), torch.tensor(60.0))) for one in right))
            )
        shared[alike] = [float(np.std(gaps)), float(np.mean(errors))]
    true, told_error = shared[0.0]
    assert told_error == pytest.approx(true, rel=0.05)
    true, told_error = shared[0.8]
    assert true < 0.7 * told_error


def test_the_best_incumbent_runs_on_the_fresh_seeds_too() -> None:
    found = record(*incumbents(0.5, 0.65, 0.7, 0.8))
    confirmed = [trial.number for trial in Results(incumbent_spec(), found).confirmation.trials_to_confirm()]
    assert confirmed == [0, 3, 2]
    assert plan_budget(incumbent_spec()).trials["confirm"] == 6
    assert [trial.number for trial in Results(incumbent_spec(0.0), found).confirmation.trials_to_confirm()] == [0, 3]
    assert plan_budget(incumbent_spec(0.0)).trials["confirm"] == 4
    leading = record(*incumbents(0.5, 0.9, 0.7, 0.8))
    assert [trial.number for trial in Results(incumbent_spec(), leading).confirmation.trials_to_confirm()] == [0, 1]


def test_without_anything_enqueued_the_baseline_stays() -> None:
    spec = incumbent_spec(1.0, "search.enqueue=[]")
    found = record(*incumbents(0.7, 0.6, 0.6, 0.72))
    assert best(spec, found) == 0
    results = ended(spec, found)
    assert only(IncumbentKeptByMargin, results).chosen.label == "baseline"
    assert only(GainOverBaseline, results).won == 0
    assert best(incumbent_spec(0.0, "search.enqueue=[]"), found) == 3
    assert [trial.number for trial in Results(spec, found).confirmation.trials_to_confirm()] == [0, 3]


@pytest.mark.parametrize("marked", [0, 1])
def test_a_mark_in_the_file_says_which_is_one(marked: int) -> None:
    given = [dict(OURS), dict(OTHER)]
    given[marked]["incumbent"] = True
    given[1 - marked]["incumbent"] = False
    spec = incumbent_spec(
        1.0, f"search.enqueue={given}".replace("'", '"').replace("True", "true").replace("False", "false")
    )
    assert spec.incumbents == [(OURS, OTHER)[marked]]
    assert spec.search.enqueue == [OURS, OTHER]
    again = spec_of_resolved(parse_study_yaml(spec.to_yaml(), "study.yaml"))
    assert (again.incumbents, again.hash) == (spec.incumbents, spec.hash)
    found = record(*incumbents(0.5, 0.7, 0.7, 0.71))
    assert best(spec, found) == 1 + marked


def test_the_baseline_can_be_marked_beside_what_is_enqueued() -> None:
    spec = incumbent_spec(1.0, "search.baseline={method.alpha: 1.0, method.lambda: 0.0, incumbent: true}")
    assert list(spec.incumbents) == [spec.search.baseline]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (["search.margin=-0.5"], "search.margin: -0.5 given"),
        (["search.margin=.inf"], "search.margin: inf given"),
        (["search.enqueue=[{method.alpha: 0.5, incumbent: 1}]"], "search.enqueue.0.incumbent: 1 given"),
        (["search.enqueue=[{method.alpha: 0.5, incumbent: true}]"], "search.margin: is 0"),
        (["search.margin=1", "search.incumbents=[{method.alpha: 0.5}]"], "search.incumbents.0: is none of"),
        (["search.margin=1", "search.baseline=null"], "search.margin: 1 given, but nothing is to be beaten"),
    ],
)
def test_what_cannot_be_meant_is_refused(given: list[str], why: str) -> None:
    assert why in refused(*given)


def test_studies_of_before_have_none() -> None:
    before, none = quickstart(*PLAIN, ENQUEUED), quickstart(*PLAIN, ENQUEUED, "search.margin=0")
    assert before.hash == none.hash
    assert not {"margin", "incumbents"} & before.to_document()["search"].keys()
    assert list(before.incumbents) == []


def test_what_breaks_a_limit_does_not_stay() -> None:
    spec = incumbent_spec(1.0, "search.constraints=['val/equalized_odds <= 0.1']")
    gaps = [0.0, 0.3, 0.3, 0.05]
    trials = incumbents(0.5, 0.7, 0.65, 0.6)
    for one, gap in zip(trials, gaps, strict=True):
        one.further["val/equalized_odds"] = gap
    found = record(*trials)
    assert best(spec, found) == 3
    assert only(MarginNotApplied, ended(spec, found)).why == "no incumbent"


def test_of_several_metrics_nothing_changes_and_that_is_said() -> None:
    front = ("search.metric=[val/accuracy, val/equalized_odds]", "search.sampler=tpe")
    trials = incumbents(0.5, 0.7, 0.65, 0.71)
    for one in trials:
        one.further["val/equalized_odds"] = 0.1
    found = record(*trials)
    assert best(incumbent_spec(1.0, *front), found) == best(incumbent_spec(0.0, *front), found) == 3
    assert only(MarginNotApplied, Results(incumbent_spec(1.0, *front), found)).why == "several metrics"


def test_an_error_that_is_not_known_keeps_nobody() -> None:
    found = record(*incumbents(0.5, 0.7, 0.65, 0.71, error=None))
    assert best(incumbent_spec(), found) == 3
    assert only(MarginNotApplied, Results(incumbent_spec(), found)).why == "no standard error"


def test_the_smaller_value_is_ahead_where_it_is_the_better_one() -> None:
    spec = incumbent_spec(1.0, "search.metric=val/equalized_odds", "search.confirm={top: 1, seeds: 3}")
    odds = [0.5, 0.3, 0.35, 0.2]
    trials = [
        Told(one.stage, [gap], params=one.params, metric="val/equalized_odds")
        for one, gap in zip(incumbents(*odds), odds, strict=True)
    ]
    again = [
        Told(
            "confirm",
            [gap + spread * (seed - 2)],
            params=trials[of].params,
            seed=seed,
            repeats=of,
            metric="val/equalized_odds",
        )
        for of, gap, spread in ((0, 0.5, 0.0), (1, 0.3, 0.0), (3, 0.25, 0.1))
        for seed in (1, 2, 3)
    ]
    found = record(*trials, *again)
    assert best(spec, found) == 1  # .05 below it, with an error over the seeds of .058
    assert not only(IncumbentKeptByMargin, ended(spec, found)).lead.includes_split_error


def test_seeds_that_see_a_difference_are_not_said_to_see_none() -> None:
    trials = incumbents(0.5, 0.7, 0.65, 0.9)
    params = {number: one.params for number, one in enumerate(trials)}
    found = record(*trials, *again({0: [0.5, 0.51], 1: [0.70, 0.721], 3: [0.715, 0.7355]}, params, 0.02))
    results = ended(incumbent_spec(), found)
    assert best(incumbent_spec(), found) == 1
    among = only(BestAmongRivals, results)
    assert (among.verdict, among.rivals.runner_up.trial_number) == ("better mean", 3)
    assert not any(isinstance(step.why, UndecidedBySeeds) for step in next_steps(results))


def test_an_incumbent_runs_whole_where_early_stopping_would_end_it(tmp_path: Path) -> None:
    given = (
        "train.epochs=4",
        "search.trials=10",
        "search.early_stopping={name: asha, grace: 1, reduction: 4}",
        ENQUEUED,
    )

    def bad_when_given(trial: Any, epoch: int) -> float:
        return 0.1 if trial.params == OTHER else 0.5 + 0.001 * trial.number

    states = {}
    for margin in (0, 1):
        course = Course(tmp_path / f"{margin}.jsonl", quickstart(*given, f"search.margin={margin}"), bad_when_given)
        course.play()
        states[margin] = course.record.trials[2].state
    assert states == {0: "pruned", 1: "complete"}
