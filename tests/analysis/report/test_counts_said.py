"""Sentences of the lead and of the summary that count or repeat what the record has."""

from dataclasses import replace

import pytest
from helpers import Told, quickstart, record
from kept import reading
from told_studies import CELLS, grouped, only, over, said

from study.analysis.figures import FIGURES
from study.analysis.report.caveats import TrialsWithoutMetric
from study.analysis.report.conclusions import NoResultYet
from study.analysis.report.groups_section import group_blocks_below_summary, groups_section
from study.analysis.report.page_formats import ReportPage, TableBlock, page_to_html
from study.analysis.report.report_lead import (
    CountOfTestReadings,
    StudyCost,
    TrialsNotAllStarted,
    WorstGroups,
    build_report_lead,
    report_lead_lines,
)
from study.analysis.report.report_page import build_report_page
from study.analysis.statistics.next_step import NoStepLeft, UndecidedBySeeds, next_steps
from study.analysis.statistics.seeds_needed import SeedsNeeded
from study.commands.final_training import final_training_spec
from study.home.events import EnsembleMeasured, GroupSampleCounts
from study.home.record import StudyRecord
from study.metrics import METRICS
from study.ranking import Results, study_summary
from study.spec import StudySpec

ONE = quickstart("search.confirm={top: 0}", "search.trials=4", "train.epochs=2", "search.early_stopping={name: none}")


WORST = "val/worst_group_accuracy"
CONFIRMED = quickstart("search.confirm={top: 1, seeds: 3}", "train.epochs=1", "search.early_stopping={name: none}")


def lines(spec: StudySpec, told: StudyRecord) -> list[str]:
    return study_summary.summary_lines(study_summary.summarise_study(Results(spec, told)))


def test_the_page_says_what_its_metric_is() -> None:
    spec = quickstart("search.metric=val/log_loss", "search.confirm={top: 0}")
    page = build_report_page(Results(spec, record(Told("baseline", [0.5], metric="val/log_loss"))), {})
    (numbers,) = [section for section in page.sections if section.title == "What these numbers are"]
    first = numbers.blocks[0]
    assert isinstance(first, str)
    assert first == f"val/log_loss: {METRICS['log_loss'].description} Smaller is better."


def test_the_cost_is_counted() -> None:
    told = record(
        Told("baseline", [0.5, 0.5], tested={"test/accuracy": 0.5}),
        Told("search", [0.6, 0.7]),
        Told("search", [0.4], "pruned"),
        Told("confirm", [0.6, 0.6], seed=1, repeats=1),
    )
    cost = only(StudyCost, Results(ONE, told))
    assert (cost.configurations, cost.pruned, cost.further, cost.epochs, cost.gpu_hours) == (3, 1, 1, 7, 0.0)
    assert cost.busy == sum((trial.ended_at or 0) - (trial.started_at or 0) for trial in told.trials.values())
    assert only(CountOfTestReadings, Results(ONE, told)).times == 1


TOP = "search.confirm={top: 1, seeds: 3}"


@pytest.mark.parametrize(
    ("trials", "gains", "why"),
    [
        (10, (0.10, 0.11, 0.12), NoStepLeft(10, False, True, "")),
        (2, (0.10, 0.11, 0.12), NoStepLeft(2, False, True, "")),
        (1, (0.10, 0.11, 0.12), NoStepLeft(1, False, True, "")),
        (10, (-0.10, 0.001, 0.11), SeedsNeeded(10, None, None, 10)),
    ],
)
def test_it_is_enough_only_where_it_can_be_told(
    trials: int, gains: tuple[float, ...], why: NoStepLeft | SeedsNeeded
) -> None:
    told = record(
        Told("baseline", [0.5]),
        Told("search", [0.7]),
        *(Told("search", [0.4]) for _ in range(trials - 1)),
        *(Told("confirm", [0.6], seed=seed, repeats=0) for seed in (1, 2, 3)),
        *(Told("confirm", [0.6 + gain], seed=seed, repeats=1) for seed, gain in enumerate(gains, 1)),
    )
    told.state = "complete"
    (step,) = next_steps(Results(CONFIRMED, told))
    told_why = step.why.needed if isinstance(step.why, UndecidedBySeeds) else step.why
    assert (step.kind, step.command, told_why) == ("enough", None, why)


def test_a_space_that_is_used_up_asks_for_no_more_trials() -> None:
    told = record(
        Told("search", [0.7], params={"method.alpha": 0.1}),
        Told("search", [0.4], params={"method.alpha": 0.2}),
        *(Told("confirm", [0.6], seed=seed, repeats=0) for seed in (1, 2, 3)),
    )
    told.state = "complete"
    spec = quickstart(
        "search.space={method.alpha: {choices: [0.1, 0.2]}}", "search.baseline=null", "search.trials=2", TOP
    )
    (step,) = next_steps(Results(spec, told))
    assert step.why == NoStepLeft(2, True, True, "")


@pytest.mark.parametrize("enough", ["stop", None])
def test_what_ended_a_search_is_said(enough: str | None) -> None:
    told = record(Told("baseline", [0.5, 0.5]), Told("search", [0.6, 0.7]))
    told.search_ended_by = enough
    assert only(TrialsNotAllStarted, Results(ONE, told)) == TrialsNotAllStarted(2, 4, enough)


def test_a_trial_that_waits_has_not_been_started() -> None:
    """It is decided on, and has not run; one that was lost and waits to run again has."""
    told = record(Told("baseline", [0.5]), Told("search", [], "waiting"), Told("search", [], "waiting"))
    assert only(TrialsNotAllStarted, Results(ONE, told)).started == 1
    assert only(StudyCost, Results(ONE, told)).configurations == 1
    told.trials[1].attempt = 1
    assert only(TrialsNotAllStarted, Results(ONE, told)).started == 2
    waiting = Results(ONE, record(Told("baseline", [], "waiting")))
    assert only(NoResultYet, waiting).stage == "any"
    assert not said(StudyCost, waiting)


def test_what_ended_a_search_of_data_keys_is_said_too() -> None:
    told = record(Told("search", [0.6], params={"data.rho": 0.9}))
    told.search_ended_by = "time"
    spec = quickstart("search.space={data.rho: {choices: [0.9, 0.99]}}", "search.trials=2", "search.baseline=null")
    assert only(TrialsNotAllStarted, Results(spec, told)) == TrialsNotAllStarted(1, 2, "time")


def test_a_time_limit_that_left_the_baseline_alone_is_named_at_the_end() -> None:
    told = record(Told("baseline", [0.5, 0.5]))
    told.state, told.search_ended_by = "complete", "time"
    spec = quickstart("search.trials=4", "search.time=90s", "search.confirm={top: 0}")
    shown = " ".join(" ".join(report_lead_lines(build_report_lead(Results(spec, told)))).split())
    assert "No trial of the search is complete, so that it has no result." in shown
    assert (
        "1 of the 4 planned trials of the search was started: its time limit was reached (search.time 90 s)." in shown
    )


def test_a_space_that_is_used_up_is_said_to_have_ended_the_search() -> None:
    assert only(TrialsNotAllStarted, reading.loaded("grid")) == TrialsNotAllStarted(
        9, 20, "every configuration of the space"
    )


def test_the_worst_group_is_named_with_its_size() -> None:
    told, own = grouped(), {"val/group_0_0_accuracy": 0.9, "val/group_0_1_accuracy": 0.25, WORST: 0.25}
    found = only(WorstGroups, Results(ONE, told))
    (group,) = found.found.worst
    assert (group.name, group.right, group.samples) == ("class 'cat' with bias class 'light'", 2.0, 8)
    assert (found.arm.label, found.found.split, len(found.found.group_sizes)) == ("trial 0", "val", 3)
    assert "1 of 3 groups has fewer than 10 samples, too few to judge. Groups without a sample: 1." in str(found)
    compared, error = (block for block in group_blocks_below_summary(Results(ONE, told)) if isinstance(block, str))
    assert "equalized_odds is no number: of class 'dog' no two groups have samples" in compared
    assert error.startswith("The split's error is the standard error of the value of trial 0, because the split is a")
    (every,) = [one for one in build_report_page(Results(ONE, told), ()).sections if one.title == "Every metric"]
    assert isinstance(every.blocks[0], TableBlock)
    assert not any("standard_error" in name for name in every.blocks[0].frame["metric"])
    gap = record(Told("search", [0.6], further={**own, "val/equalized_odds": 0.1}))
    gap.group_sample_counts = replace(told.group_sample_counts, cells={"val": [[40, 8], [4, 30]]})
    told_of = "equalized_odds compares groups of the classes 'cat', 'dog'; equal_opportunity compares groups of the "
    assert f"On val {told_of}class 'dog'." in list(group_blocks_below_summary(Results(ONE, gap)))


@pytest.mark.parametrize(("joined", "shares"), [(0.9, ["90%", "50%"]), (0.4, ["60%", "25%"])])
def test_groups_of_a_final_training_are_those_of_its_model(joined: float, shares: list[str]) -> None:
    """Of the ensemble where that is the model, else of the best seed; not the means over the seeds."""
    cells = ("val/group_0_0_accuracy", "val/group_0_1_accuracy")
    seeds = [
        Told("final", [value], seed=seed, further=dict(zip(cells, values, strict=True)))
        for seed, (value, values) in enumerate([(0.5, (0.2, 0.75)), (0.6, (0.6, 0.25))])
    ]
    told = record(*seeds)
    told.group_sample_counts = CELLS
    of_ensemble = {"val/accuracy": joined, **dict(zip(cells, (0.9, 0.5), strict=True))}
    told.apply(EnsembleMeasured((0, 1), of_ensemble, time=99.0))
    section = groups_section(Results(final_training_spec(ONE, [0, 1]), told))
    assert section is not None
    grid, note = section.blocks
    assert isinstance(grid, TableBlock)
    assert list(grid.frame.iloc[0]) == ["cat", f"{shares[0]} of 40", f"({shares[1]} of 8)"]
    assert isinstance(note, str)
    assert "the bar is that of the model" in note


@pytest.mark.parametrize("of_val", [40, 8])
def test_groups_against_the_bias_that_are_small_on_test_alone_are_told_of_validation(of_val: int) -> None:
    own = dict.fromkeys((*NAMES, "val/group_1_0_accuracy", "val/conflicting_accuracy"), 0.5)
    own["val/group_0_1_accuracy"] = 0.25
    tested = {name.replace("val/", "test/"): value for name, value in own.items()} | {"test/accuracy": 0.5}
    told = record(Told("search", [0.6], further=own, tested=tested))
    sizes = {"val": [[40, of_val], [of_val, 30]], "test": [[40, 8], [8, 30]]}
    told.group_sample_counts = replace(CELLS, cells=sizes)
    results = Results(ONE, told)
    found = only(WorstGroups, results)
    section = groups_section(results)
    assert section is not None
    notes = [block for block in section.blocks if isinstance(block, str)]
    folded = [block for block in group_blocks_below_summary(results) if isinstance(block, TableBlock)]
    if of_val < 10:
        assert (found.on_validation, len(notes), len(folded)) == (None, 1, 1)
        return
    assert found.on_validation is not None
    assert [(group.name, group.samples) for group in found.on_validation.worst] == [
        ("class 'cat' with bias class 'light'", 40)
    ]
    assert "On val trial 0 serves class 'cat' with bias class 'light' worst of 4 groups: 10 of 40 right" in str(found)
    assert str(found).count("Wilson") == 1
    assert ["samples on test" in note for note in notes] == [True, False]
    assert folded == []


def test_all_groups_stand_in_a_grid_with_those_of_the_baseline() -> None:
    """Small groups are in brackets and have no bar."""
    accuracies = ((0.5, 0.5, 1.0), (0.9, 0.25, 0.75))
    trials = [
        Told(stage, [value], further=dict(zip(NAMES, shares, strict=True)))
        for stage, value, shares in zip(("baseline", "search"), (0.5, 0.6), accuracies, strict=True)
    ]
    told = record(*trials)
    told.group_sample_counts = CELLS
    section = groups_section(Results(ONE, told))
    assert section is not None
    grid, note = section.blocks
    assert isinstance(grid, TableBlock)
    assert [list(row) for row in grid.frame.itertuples(index=False)] == [
        ["cat", "50% → 90% of 40", "(50% → 25% of 8)"],
        ["dog", "-", "100% → 75% of 30"],
    ]
    assert grid.bar_shares == [[None, 0.9, None], [None, None, 0.75]]
    assert isinstance(note, str)
    assert "the baseline → trial 1; the bar is that of trial 1" in note
    html = page_to_html(ReportPage("page", [], [section]), {})
    assert html.count('class="bar" style="--share: 90%"') == html.count('style="--share: 75%"') == 1
    assert groups_section(Results(ONE, record(Told("search", [0.6])))) is None


NAMES = ("val/group_0_0_accuracy", "val/group_0_1_accuracy", "val/group_1_1_accuracy")


def test_a_search_whose_best_is_the_baseline_gained_nothing() -> None:
    said = "The search gained nothing over the baseline."
    nothing = [Told("baseline", [0.5, 0.9]), Told("search", [0.6, 0.7])]
    assert said in lines(ONE, over(*nothing))
    assert said not in lines(ONE, record(*nothing)), "it goes on"
    assert said not in lines(ONE, over(Told("baseline", [0.5, 0.6]), Told("search", [0.6, 0.7])))


def test_a_search_without_a_complete_trial_is_not_said_to_have_gained_nothing() -> None:
    for state in ("running", "pruned"):
        told = lines(ONE, record(Told("baseline", [0.5, 0.9]), Told("search", [0.6], state)))
        assert not [line for line in told if "gained nothing" in line]


def test_limits_that_nothing_keeps_are_said_with_the_miss() -> None:
    spec = quickstart("search.constraints=[val/equalized_odds <= 0.1]", "search.confirm={top: 0}")
    told = record(*(Told("search", [0.6], further={"val/equalized_odds": odds}) for odds in (0.3, 0.5)))
    missed = "val/equalized_odds <= 0.1 by 0.2 (it has 0.300)"
    said = f"the best misses {missed}; none of those that it was chosen from keeps it"
    assert said in lines(spec, told)
    kept = record(*(Told("search", [0.6], further={"val/equalized_odds": odds}) for odds in (0.05, 0.5)))
    assert not [line for line in lines(spec, kept) if "misses" in line]


def test_of_several_limits_those_that_are_missed_are_named_each_with_its_own_value() -> None:
    odds, parity, total = "val/equalized_odds", "val/demographic_parity", "val/accuracy"
    limits = f"search.constraints=[{odds} <= 0.1, {parity} <= 0.5, {total} >= 0.75]"
    spec = quickstart(limits, "search.confirm={top: 0}")
    told = record(*(Told("search", [0.6], further={odds: gap, parity: 0.2}) for gap in (0.3, 0.5)))
    missed = f"{odds} <= 0.1 by 0.2 (it has 0.300) and {total} >= 0.75 by 0.15 (it has 60.0%)"
    said = f"the best misses {missed}; none of those that it was chosen from keeps all limits"
    assert said in lines(spec, told)


def test_a_trial_without_a_number_is_named() -> None:
    told = record(Told("search", [0.6, 0.7]), Told("search", [0.6, None]))
    assert only(TrialsWithoutMetric, Results(ONE, told)).trials == [1]


def test_titles_repeat_numbers_of_the_record() -> None:
    told = record(
        Told("baseline", [0.5, 0.5]),
        Told("search", [0.6, 0.7]),
        Told("search", [0.4], "pruned"),
        *(Told("confirm", [0.5, 0.6 + 0.2 * of], seed=seed, repeats=of) for of in (0, 1) for seed in (1, 2, 3)),
    )
    titles = {
        name: FIGURES[name](Results(ONE, told)).get_suptitle().replace("\n", " ")
        for name in ("learning_curves", "seeds")
    }
    assert titles == {
        "learning_curves": "1 of 3 trials pruned: 5 epochs run instead of 6",
        "seeds": "val/accuracy: 80.0 ± 0.0% (trial 1) against 60.0 ± 0.0% (baseline)",
    }


def test_why_many_groups_have_no_grid_is_said() -> None:
    many = record(Told("search", [0.6]))
    many.group_sample_counts = GroupSampleCounts.from_sizes({"val": [[4, 1, 0]] * 10, "aligned": [0, 1, 2]})
    section = groups_section(Results(ONE, many))
    assert section is not None
    (why,) = section.blocks
    assert isinstance(why, str)
    assert why.startswith("10 classes and 3 bias classes are 30 groups, of 0 to 4 samples each on val.")
    assert "conflict with it (conflicting_accuracy)" in why
