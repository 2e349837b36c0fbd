"""Where configurations ran on folds, sentences speak of folds, and of the samples of all folds together."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from course import Course
from folded import Judges, folded
from told_studies import only, statements

from study.analysis.figures import FIGURES
from study.analysis.report.conclusions import GainOverBaseline
from study.analysis.report.page import page_to_markdown
from study.analysis.report.reference_sentences import ReferenceStays, ResultBesideReference
from study.analysis.report.result_sentences import milder_configurations
from study.analysis.report.sections import build_report_page, figure_caption
from study.analysis.statistics.formatting import format_interval
from study.analysis.statistics.rule_picks import judge_rule_picks
from study.commands.progress import StudyProgress
from study.home.events import ReferenceFitted
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.difference import to_arm
from study.spec import StudySpec


@pytest.fixture(scope="module")
def confirmed(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudySpec, StudyRecord]:
    spec = folded()
    judges = Judges(spec)
    path = tmp_path_factory.mktemp("folds") / "ledger.jsonl"
    return spec, Course(path, spec, joins=judges.joins, predict=judges).play().record


def test_conclusions_name_folds_and_give_the_value_of_all_samples(confirmed: tuple[StudySpec, StudyRecord]) -> None:
    spec, record = confirmed
    results = Results(spec, record)
    gain = only(GainOverBaseline, results)
    assert (
        gain.best.metric_statistics("val/accuracy").mean
        == results.ranked_search[0].joined_folds.metrics["val/accuracy"]
    )
    assert (gain.best.metric_seeds("val/accuracy"), gain.best.repeated_over) == ([1, 2, 3], "folds and seeds")
    assert not any("over seeds" in str(one) for one in statements(results))


def test_the_difference_of_two_is_that_of_the_same_samples(confirmed: tuple[StudySpec, StudyRecord]) -> None:
    spec, record = confirmed
    reference, best = Results(spec, record).baseline_and_best_arms
    gain = best.difference_to(reference, spec.metric)
    ours, theirs = best.joined_folds, reference.joined_folds
    assert gain.value == pytest.approx(ours.metrics[spec.metric] - theirs.metrics[spec.metric])
    assert gain.is_paired
    low, high = gain.interval
    assert low < gain.value < high
    assert to_arm(spec, Results(spec, record).baseline).repeated_over == "folds and seeds"
    # two independent networks: the error is about that of two binomials
    assert gain.standard_error == pytest.approx((2 * 0.25 / 1438) ** 0.5, rel=0.3)


@pytest.mark.parametrize(("ahead", "is_clear"), [(0.001, False), (0.3, True)])
def test_a_reference_that_leads_is_told_from_the_best_by_the_samples_of_all_folds(
    confirmed: tuple[StudySpec, StudyRecord], ahead: float, is_clear: bool
) -> None:
    spec, record = confirmed
    best = Results(spec, record).baseline_and_best_arms[1].joined_folds
    value, drawn = best.metrics[spec.metric] + ahead, len(best.draws[spec.metric])
    draws = [*np.random.default_rng(0).normal(value, 0.01, drawn)]
    fitted = ReferenceFitted("logistic_regression", {spec.metric: value}, 1.0, draws={spec.metric: draws}, time=90.0)
    referenced = replace(spec, search=spec.search.model_copy(update={"references": True}))
    found = copy.deepcopy(record)
    found.apply(fitted)
    stays = only(ReferenceStays, Results(referenced, found))
    assert stays.is_clear_against(stays.arm) is is_clear
    assert ("may be luck" in str(stays)) is not is_clear


@pytest.mark.parametrize(("behind", "said"), [(0.001, "), which may be luck."), (0.3, ").")])
def test_a_reference_that_the_best_is_ahead_of_comes_with_the_interval_of_the_same_samples(
    confirmed: tuple[StudySpec, StudyRecord], behind: float, said: str
) -> None:
    spec, record = confirmed
    best = Results(spec, record).baseline_and_best_arms[1].joined_folds
    value, own = best.metrics[spec.metric] - behind, best.draws[spec.metric]
    draws = [*np.random.default_rng(0).normal(value, 0.01, len(own))]
    fitted = ReferenceFitted("logistic_regression", {spec.metric: value}, 1.0, draws={spec.metric: draws}, time=90.0)
    search = spec.search.model_copy(update={"references": True, "margin": 0.0})
    found = copy.deepcopy(record)
    found.apply(fitted)
    told = only(ResultBesideReference, Results(replace(spec, search=search), found))
    gap = told.arm.difference_to(to_arm(spec, told.reference), spec.metric)
    assert gap.standard_error == pytest.approx(np.std(np.subtract(own, draws), ddof=1))
    assert gap.n_candidates == Results(spec, record).baseline_and_best_arms[1].n_candidates
    assert f"needs no search (95% interval {format_interval(spec.metric, gap)}" in str(told)
    assert str(told).endswith(said)


def test_a_milder_configuration_is_told_by_the_samples_of_all_folds(confirmed: tuple[StudySpec, StudyRecord]) -> None:
    spec, record = confirmed
    results = Results(spec, record)
    before, best = results.baseline_and_best_arms
    assert before is not None
    assert best is not None
    for told in milder_configurations(results, before, best):
        (candidate,) = (one for one in results.ranked_search if one.trial.number == told.trial)
        assert candidate.joined_folds is not None
        assert told.where == "on all folds"
        assert told.value == candidate.joined_folds.metrics[told.metric]
        assert told.accuracy == candidate.joined_folds.metrics["val/accuracy"]
        break
    else:
        pytest.fail("none is told")


def test_no_section_of_the_report_speaks_of_fresh_seeds(confirmed: tuple[StudySpec, StudyRecord]) -> None:
    text = page_to_markdown(build_report_page(Results(*confirmed), FIGURES))
    assert "confirmed on all folds" in text
    assert "fresh seeds" not in text


def test_figure_and_rules_table_give_the_value_of_all_folds_that_the_summary_gives(
    confirmed: tuple[StudySpec, StudyRecord],
) -> None:
    results = Results(*confirmed)
    best = results.baseline_and_best_arms[1]
    value = best.metric_statistics("val/accuracy")
    (own,) = [one for one in judge_rule_picks(results).results if one.pick.trial_number == best.trial_number][:1]
    assert own.val_statistics.mean == own.pick.candidate.joined_folds.metrics[own.pick.rule.objective.metrics[0]]
    axes = FIGURES["seeds"](results).axes[0]
    lines = [container.lines for container in axes.containers]
    ticks = [tick.get_xdata()[0] for tick, _, _ in lines]
    assert value.mean in ticks
    reaches = [np.ptp(bars[0].get_segments()[0][:, 0]) / 2 for _, _, bars in lines]
    assert reaches[ticks.index(value.mean)] == pytest.approx(value.split_error)
    assert "its standard error" in figure_caption("seeds", results)
    assert not axes.collections[len(lines) :]  # no ring of a fold, which the value is not the mean of
    assert not [one for one in axes.collections if len(one.get_offsets()) > 1]


def test_the_best_so_far_says_that_it_is_of_one_fold(confirmed: tuple[StudySpec, StudyRecord]) -> None:
    spec, record = confirmed
    assert "(on all folds, trial" in StudyProgress(spec, record).best_text()
    unconfirmed = spec.search.confirm.model_copy(update={"top": 0})
    searched = replace(spec, search=spec.search.model_copy(update={"confirm": unconfirmed}))
    assert "(highest in the search, on one fold, trial" in StudyProgress(searched, record).best_text()
