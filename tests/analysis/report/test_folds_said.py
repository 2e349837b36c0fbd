"""Where configurations ran on folds, sentences speak of folds, and of the samples of all folds together."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from course import Course
from folded import Judges, folded
from numpy.typing import NDArray
from told_studies import only, statements

from study.analysis.figures import FIGURES
from study.analysis.report.conclusions import GainOverBaseline, MetricDifferenceToBaseline
from study.analysis.report.figure_captions import figure_caption
from study.analysis.report.groups_section import groups_section
from study.analysis.report.page_formats import TableBlock, page_to_markdown
from study.analysis.report.pareto_front_section import ConfigurationsOnFront, FrontGainsOverBaseline
from study.analysis.report.reference_sentences import ReferenceIsResult, ResultBesideReference
from study.analysis.report.report_lead import WorstGroups
from study.analysis.report.report_page import build_report_page, summary_table_note
from study.analysis.report.trade_off_sentences import AccuracyTradeOff, smaller_accuracy_loss_statements
from study.analysis.statistics.compare_studies import differences_to_first
from study.analysis.statistics.debiasing_metrics import (
    n_samples_of_accuracy,
    sampling_standard_error,
    worst_group_of_arm,
)
from study.analysis.statistics.formatting import difference_with_verdict, format_difference_interval
from study.analysis.statistics.next_step import UndecidedBySamples, next_steps
from study.analysis.statistics.rule_pick_results import judge_rule_picks
from study.analysis.tables.report_tables import baseline_and_result_table
from study.commands.progress import StudyProgress
from study.data.cells import group_sizes
from study.home.events import GroupSampleCounts, ReferenceFitted
from study.home.record import StudyRecord, TrialRecord
from study.home.trial_record import EpochMetrics
from study.metrics import is_gap_metric
from study.ranking import Results
from study.ranking.arms import arm_of_candidate
from study.ranking.study_summary import summarise_study, summary_lines
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
    assert (gain.best.metric_seeds("val/accuracy"), gain.best.repeats_text) == ([1, 2, 3], "folds and seeds")
    assert not any("over seeds" in str(one) for one in statements(results))


def test_the_difference_of_two_is_that_of_the_same_samples(confirmed: tuple[StudySpec, StudyRecord]) -> None:
    spec, record = confirmed
    baseline, best = Results(spec, record).baseline_and_best_arms
    gain = best.difference_to(baseline, spec.metric)
    ours, theirs = best.joined_folds, baseline.joined_folds
    assert gain.value == pytest.approx(ours.metrics[spec.metric] - theirs.metrics[spec.metric])
    assert gain.is_paired
    low, high = gain.interval
    assert low < gain.value < high
    assert arm_of_candidate(spec, Results(spec, record).baseline).repeats_text == "folds and seeds"
    # two independent networks: the error is about that of two binomials
    assert gain.standard_error == pytest.approx((2 * 0.25 / 1438) ** 0.5, rel=0.3)


def test_two_that_are_right_in_the_same_samples_are_the_same_on_every_draw_of_them_not_on_every_seed(
    tmp_path: Path,
) -> None:
    """Of the samples of all folds together no seed has a value."""
    spec = folded()
    judges = Judges(spec)
    right = Course(tmp_path / "ledger.jsonl", spec, joins=judges.joins, predict=judges.right).play().record
    baseline, best = Results(spec, right).baseline_and_best_arms
    gain = best.difference_to(baseline, spec.metric)
    change = str(MetricDifferenceToBaseline(spec.metric, baseline, best, gain))
    assert change.endswith(" to the baseline in val/accuracy: the same on every draw of the samples.")
    assert format_difference_interval(spec.metric, gain) == "on every draw of the samples alike"


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
    stays = only(ReferenceIsResult, Results(referenced, found))
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
    gap = told.arm.difference_to(arm_of_candidate(spec, told.reference), spec.metric)
    assert gap.standard_error == pytest.approx(np.std(np.subtract(own, draws), ddof=1))
    assert gap.n_candidates == Results(spec, record).baseline_and_best_arms[1].n_candidates
    assert f"needs no search (95% interval {format_difference_interval(spec.metric, gap)}" in str(told)
    assert str(told).endswith(said)


def test_a_milder_configuration_is_told_by_the_samples_of_all_folds(confirmed: tuple[StudySpec, StudyRecord]) -> None:
    spec, record = confirmed
    results = Results(spec, record)
    before, best = results.baseline_and_best_arms
    assert before is not None
    assert best is not None
    (told,) = smaller_accuracy_loss_statements(results, before, best)
    (candidate,) = (one for one in results.ranked_search if one.trial.number == told.trial)
    assert candidate.joined_folds is not None
    assert told.where == "on all folds"
    assert told.value == candidate.joined_folds.metrics[told.metric]
    assert told.accuracy == candidate.joined_folds.metrics["val/accuracy"]


def test_no_section_of_the_report_speaks_of_fresh_seeds(confirmed: tuple[StudySpec, StudyRecord]) -> None:
    text = page_to_markdown(build_report_page(Results(*confirmed), FIGURES))
    assert "confirmed on all folds" in text
    assert "fresh seeds" not in text


def test_the_bests_of_two_studies_differ_by_what_their_tables_say(
    confirmed: tuple[StudySpec, StudyRecord], tmp_path: Path
) -> None:
    """By the samples of all folds together, which are the same for both."""
    first = Results(*confirmed)
    spec = replace(first.spec, name="other")
    judges = Judges(spec)

    def luckier(trial: TrialRecord) -> NDArray[np.int64]:
        return judges(replace(trial, seed=trial.seed + 7))

    other = Results(spec, Course(tmp_path / "ledger.jsonl", spec, joins=judges.joins, predict=luckier).play().record)
    gap = differences_to_first(first, other)[spec.metric]
    ours, theirs = (results.best.joined_folds for results in (other, first))
    assert gap.value == pytest.approx(ours.metrics[spec.metric] - theirs.metrics[spec.metric], abs=1e-12)
    assert gap.standard_error == pytest.approx(
        np.std(np.subtract(*(of.draws[spec.metric] for of in (ours, theirs))), ddof=1)
    )
    assert gap.n_candidates == 9  # each the best of two and the baseline


def test_no_seeds_are_asked_for_where_the_samples_of_all_folds_do_not_decide(
    confirmed: tuple[StudySpec, StudyRecord],
) -> None:
    """Their error stays, however many seeds run."""
    (step,) = next_steps(Results(*confirmed))
    assert (type(step.why), step.command) == (UndecidedBySamples, None)
    assert str(step.why).startswith("By val/accuracy it is open which of trial 4 and trial 3 is better: ")


@pytest.mark.parametrize(("folds", "repeats"), [(3, 2), (5, 1)])
def test_a_first_confirmation_runs_about_as_often_as_without_folds(tmp_path: Path, folds: int, repeats: int) -> None:
    """`--seeds` is how often all folds run."""
    spec = folded("search.confirm={top: 0}", f"data.folds={folds}")
    (*_, step) = next_steps(Results(spec, Course(tmp_path / "ledger.jsonl", spec).play().record))
    assert step.command == f"study confirm quickstart --top 5 --seeds {repeats}"


def test_a_front_speaks_of_folds(tmp_path: Path) -> None:
    spec = folded("search.metric=[val/accuracy, val/worst_class_accuracy]")
    judges = Judges(spec)
    course = Course(tmp_path / "ledger.jsonl", spec, joins=judges.joins, predict=judges)
    course.further = lambda trial: {"worst_class_accuracy": 0.4 + 0.01 * trial.number}
    found = course.play().record
    results = Results(spec, found)
    lines = "\n".join(summary_lines(summarise_study(results)))
    assert "fresh seeds" not in page_to_markdown(build_report_page(results, FIGURES)) + lines
    assert "that ran on all folds, by the samples of all folds together," in str(only(ConfigurationsOnFront, results))
    said = str(only(FrontGainsOverBaseline, results))
    assert "the spread over folds and seeds" in said
    assert "over seeds" not in said


def test_a_gap_between_groups_has_no_interval_on_the_samples_of_all_folds(
    confirmed: tuple[StudySpec, StudyRecord],
) -> None:
    """Of equal groups of few samples it is far above 0, and so is each bootstrap draw of it; a difference has one."""
    results = Results(*confirmed)
    baseline, best = results.baseline_and_best_arms
    assert best.metric_statistics("val/accuracy").confidence_interval()
    gaps = [name for name in best.joined_folds.metrics if is_gap_metric(name)]
    assert {"val/equalized_odds", "val/demographic_parity", "val/accuracy_parity"} <= set(gaps)
    for name in gaps:
        found = best.metric_statistics(name)
        assert not found or found.confidence_interval() is None
        assert sampling_standard_error(results.record, best, name) is None
    assert best.difference_to(baseline, "val/demographic_parity").interval


def test_the_note_of_the_summary_says_that_seeds_have_folds_of_their_own(
    confirmed: tuple[StudySpec, StudyRecord],
) -> None:
    note = summary_table_note(Results(*confirmed))
    assert "the value over the samples of all folds together" in note
    assert "the same for both; where each fold's model has a value of its own, as on test, it is Student's t" in note
    assert note.endswith(" Each seed validates on a fold of its own; all read the same test split.")


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


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> tuple[StudySpec, StudyRecord, Judges]:
    """A study of a table with rare groups on three folds, with the groups that a driver counts."""
    folder, draw = tmp_path_factory.mktemp("groups"), np.random.default_rng(0)
    kind = draw.choice(3, 300, p=[0.5, 0.4, 0.1])
    site = np.where(draw.random(300) < 0.9, kind, draw.integers(0, 3, 300))
    rows = [f"{draw.normal():.3f},{'abc'[y]},{'rst'[s]}" for y, s in zip(kind, site, strict=True)]
    (folder / "table.csv").write_text("\n".join(["leaf,kind,site", *rows]))
    own = f"{{name: table, path: {folder}/table.csv, target: kind, bias: site, val: biased, folds: 3}}"
    search = ("search.metric=val/accuracy", "search.constraints=[]")
    spec = folded(f"data={own}", "model={name: linear}", *search)
    judges = Judges(spec)
    record = Course(folder / "ledger.jsonl", spec, joins=judges.joins, predict=judges).play().record
    record.group_sample_counts = GroupSampleCounts.from_sizes(group_sizes({"": judges.dataset}) or {})
    return spec, record, judges


def test_groups_of_all_folds_together_are_counted_over_all_folds(
    grouped: tuple[StudySpec, StudyRecord, Judges],
) -> None:
    spec, record, judges = grouped
    outside, results = judges.folds.non_test_samples, Results(spec, record)
    best = results.baseline_and_best_arms[1]
    table, note = groups_section(results).blocks
    assert isinstance(table, TableBlock)
    assert isinstance(note, str)
    texts = table.frame.iloc[:, 1:].to_numpy()
    sizes = [[int(np.sum((outside.target == y) & (outside.bias == s))) for s in range(3)] for y in range(3)]
    assert [[text.strip("()").rpartition(" of ")[2] for text in row] for row in texts] == [
        [str(size) if size else "-" for size in row] for row in sizes
    ]
    assert [[text.startswith("(") for text in row] for row in texts] == [
        [0 < size < 10 for size in row] for row in sizes
    ]
    assert "of the samples of all folds together" in note
    assert n_samples_of_accuracy(record, best, "val", "accuracy") == len(outside.target)
    told = worst_group_of_arm(record, best, "val")
    assert told.worst
    assert sum(told.group_sizes) == len(outside.target)
    assert "on average" not in " ".join(told.sentences())  # each sample is judged once: the counts are whole


def test_a_metric_without_draws_differs_by_its_values_over_all_folds_and_has_no_interval(
    grouped: tuple[StudySpec, StudyRecord, Judges],
) -> None:
    """The columns beside it are these values; the folds' own ones are of few samples of a group."""
    spec, record, _ = grouped
    name, found = "val/group_0_1_accuracy", copy.deepcopy(record)
    for place, trial in enumerate(found.trials_of_stages("confirm")):
        own = {**trial.reports[-1], name: (0.9, 0.1, 0.4)[place % 3]}
        trial.reports[-1] = EpochMetrics(int(own.pop("epoch") or 0), own)
    baseline, best = Results(spec, found).baseline_and_best_arms
    assert name not in best.joined_folds.draws
    gain = best.difference_to(baseline, name)
    assert gain.value == pytest.approx(best.metric_statistics(name).mean - baseline.metric_statistics(name).mean)
    assert (gain.interval, gain.is_over_samples) == (None, True)
    table = baseline_and_result_table(Results(spec, found), [name])
    assert table.loc[0, "95% interval"] == "-"
    assert difference_with_verdict(name, gain, True, "seeds").endswith(", whose error on other samples is not known")
    without = {
        arm.trial_number: {of: each for of, each in arm.joined_folds.draws.items() if of != spec.metric}
        for arm in (baseline, best)
    }
    for number, draws in without.items():
        found.joined_folds[number] = replace(found.joined_folds[number], draws=draws)
    results = Results(spec, found)
    assert "one seed" not in str(only(MetricDifferenceToBaseline, results))
    told = str(AccuracyTradeOff("val", baseline, best, {spec.metric: gain}))
    assert told.endswith("whose error on other samples is not known.")
    assert isinstance(next_steps(results)[0].why, UndecidedBySamples)


def test_groups_of_one_fold_are_counted_in_that_fold(grouped: tuple[StudySpec, StudyRecord, Judges]) -> None:
    spec, record, judges = grouped
    for trial in record.trials_of_stages("search"):
        arm = replace(Results(spec, record).baseline_and_best_arms[1], trials=[trial], joined_folds=None)
        of_fold = np.sum(judges.folds.fold_of_sample == trial.fold)
        assert n_samples_of_accuracy(record, arm, "val", "accuracy") == of_fold


def test_counts_of_an_older_study_that_knows_one_fold_alone_are_not_told(
    grouped: tuple[StudySpec, StudyRecord, Judges],
) -> None:
    spec, record, judges = grouped
    sizes = group_sizes({"": judges.dataset}) or {}
    del sizes["val_by_fold"]
    found = copy.deepcopy(record)
    found.group_sample_counts = GroupSampleCounts.from_sizes(sizes)
    best = Results(spec, found).baseline_and_best_arms[1]
    assert n_samples_of_accuracy(found, best, "val", "accuracy") is None
    assert groups_section(Results(spec, found)) is None


def test_counts_on_test_are_means_over_the_models_of_the_folds(
    grouped: tuple[StudySpec, StudyRecord, Judges],
) -> None:
    spec, record, _ = grouped
    found, names = copy.deepcopy(record), [f"test/group_{y}_{s}_accuracy" for y in range(3) for s in range(3)]
    for place, trial in enumerate(found.trials_of_stages("confirm")):
        shares = {name: 0.5 + (place + number) / 100 for number, name in enumerate(names)}
        trial.test_metrics = {"test/accuracy": 0.6, **shares}
    assert "on average over the folds' models" in str(only(WorstGroups, Results(spec, found)))
    value = {spec.metric: 0.99, "test/accuracy": 0.8, **dict.fromkeys(names, 0.97), names[0]: 0.123}
    found.apply(ReferenceFitted("logistic_regression", value, 1.0, draws={spec.metric: [0.99] * 200}, time=90.0))
    results = Results(replace(spec, search=spec.search.model_copy(update={"references": True})), found)
    assert results.reference_as_result
    _, note, *_ = groups_section(results).blocks
    assert isinstance(note, str)
    assert "on average over the 3 folds' models" in note
    told = str(only(WorstGroups, results))
    assert "on average over the folds' models" in told
    assert "over the seeds" not in told
