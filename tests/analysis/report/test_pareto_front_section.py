"""The page of a study with several metrics: it leads with the front, and what is called best is on it, by its rule."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers import Told, quickstart, write_ledger
from markupsafe import escape
from told_studies import NEARLY, TWO_METRICS, cheaper, kept_in_search_alone, limited_to_one, said

from study.analysis.figures import FIGURES
from study.analysis.report.page_formats import FigureBlock, TableBlock, page_to_html
from study.analysis.report.pareto_front_section import (
    CheaperAlternative,
    ChosenFromFront,
    FrontGainsOverBaseline,
    front_table,
)
from study.analysis.report.report_lead import report_lead_statements
from study.analysis.report.report_page import build_report_page
from study.analysis.report.selection_rules_section import SELECTION_RULES_TITLE
from study.analysis.statistics.next_step import ConstraintsKeptInSearchOnly, is_best_better_than_baseline, next_steps
from study.analysis.tables.report_tables import best_configurations_table
from study.api.study_object import to_configuration
from study.commands.export_configurations import export_best
from study.commands.extend_study import make_confirm_event
from study.commands.status import list_study_rows, studies_table, study_status, study_status_lines
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking import Results, study_summary
from study.ranking.candidate_selection import CandidateSelection
from study.spec import StudySpec, load_study

GAP = "val/equalized_odds"
PARAMS = [{"method.alpha": each / 4, "method.lambda": 1.0, "method.epsilon": 0.0} for each in range(1, 5)]
SEARCH = [(0.7, 0.2), (0.9, 0.3), (0.9, 0.02), (0.85, 0.01)]
FRESH = [(0.7, 0.2), (0.903, 0.3), (0.90, 0.02), (0.80, 0.03)]
"""The baseline; the most accurate; the fair one; one that the fresh seeds take from the front."""


def studied(tmp_path: Path, fresh: Sequence[tuple[float, float]] = FRESH) -> tuple[StudyFolder, StudySpec, StudyRecord]:
    metrics = f"search.metric=[val/accuracy, {GAP}]"
    confirm, early = "search.confirm={top: 3, seeds: 2, rules: true}", "search.early_stopping={name: none}"
    spec = quickstart(metrics, "train.epochs=1", early, confirm, "search.trials=4")
    told = []
    for number, (accuracy, gap) in enumerate(SEARCH):
        told.append(Told("search" if number else "baseline", [accuracy], params=PARAMS[number], further={GAP: gap}))
    for number, (accuracy, gap) in enumerate(fresh):
        for seed in (1, 2):
            tested = {"test/accuracy": accuracy - 0.01, "test/equalized_odds": gap} if number != 3 else {}
            value, params = accuracy + 0.001 * seed, PARAMS[number]
            told.append(
                Told("confirm", [value], params=params, further={GAP: gap}, seed=seed, repeats=number, tested=tested)
            )
    folder = Home(tmp_path / "home").create_study(spec)
    write_ledger(folder.ledger_file, *told)
    return folder, spec, StudyRecord.load(folder.ledger_file)


def test_every_place_that_calls_a_configuration_best_means_the_same_and_names_the_rule(tmp_path: Path) -> None:
    folder, spec, record = studied(tmp_path)
    number, words = 1, "the best val/accuracy"
    page = build_report_page(Results(spec, record), {"front", "seeds"})
    assert page.sections[0].title == "Front"
    picture, shown = page.sections[0].blocks[:2]
    assert isinstance(picture, FigureBlock)
    assert words in picture.caption
    assert isinstance(shown, TableBlock)
    trials = list(shown.frame["trial"])
    assert trials == [f"{each}, chosen" if each == number else str(each) for each in (1, 2)]
    sentences = dict(page.lead)["Result"]
    html = page_to_html(page, {"front": b"", "seeds": b""})
    plain = [re.sub("`(.+?)`", r"<code>\1</code>", str(escape(one))) for one in sentences]
    assert [f"<li>{one}</li>" in html for one in plain] == [False, *[True] * (len(sentences) - 1)]
    result = " ".join(sentences)
    assert result.index("the front is trial 1") < result.index(f"Of the front trial {number} is chosen")
    assert words in result
    note = " ".join(map(str, page.sections[0].blocks[2:]))
    assert "On the front of the search, and beaten on fresh seeds: trial 3." in note
    rules = next(section for section in page.sections if section.title == SELECTION_RULES_TITLE).blocks[0]
    assert isinstance(rules, TableBlock)
    (own,) = [row for row in rules.frame.to_dict("records") if "this study's" in row["rule"]]
    assert (own["pick"], own["rank"]) == (str(number), "1")
    (file,) = export_best(folder, Results(spec, record), folder.best_file)
    assert file.candidate.trial.number == number
    assert words in folder.best_file.read_text().split("name:")[0]
    origin = load_study(str(folder.best_file)).origin
    assert origin is not None
    assert words in origin["chosen_by"]
    told = study_summary.summarise_study(Results(spec, record))
    assert (told.arms["best"].trial, told.chosen_by) == (number, words)
    assert [each.trial for each in told.front or ()] == [1, 2]
    assert any(f"best, {words}: trial {number}" in line for line in study_status_lines(study_status(folder)))
    home = Home(tmp_path / "home")
    assert "the best val/accuracy of the front" in studies_table(home, list_study_rows(home))
    figure = FIGURES["front"](Results(spec, record))
    assert figure is not None
    assert figure.get_suptitle().startswith(f"Trial {number}, best by first metric")
    assert [axes.get_title(loc="left").split(",")[0] for axes in figure.axes] == ["the search"] + ["fresh seeds"] * 2
    figure.draw_without_rendering()


def test_the_values_of_the_front_are_those_that_it_was_judged_by(tmp_path: Path) -> None:
    folder, spec, record = studied(tmp_path)
    front = front_table(Results(spec, record))
    assert list(front[f"{GAP} (lower is better) on fresh seeds"]) == ["0.300 ± 0.000", "0.020 ± 0.000"]
    assert list(front["test/accuracy on fresh seeds"]) == ["89.3 ± 0.0%", "89.0 ± 0.0%"]
    files = export_best(
        folder, Results(spec, record), tmp_path / "front.yaml", CandidateSelection(pareto=spec.objective.metrics)
    )
    assert [file.candidate.trial.number for file in files] == [1, 2]
    listed = best_configurations_table(Results(spec, record))
    assert list(listed["trial"]) == ["1", "2", "3", "0 (baseline)"]
    assert list(listed[f"{GAP} (lower is better) in the search"]) == ["0.300", "0.020", "0.010", "0.200"]
    assert list(listed[f"{GAP} on fresh seeds"])[2] == "0.030 ± 0.000"


@pytest.mark.parametrize(
    ("baseline", "others", "told"),
    [
        ((0.95, 0.2), FRESH[1:], True),  # the most accurate, while the search found what is fairer
        ((0.95, 0.01), FRESH[1:], False),
        ((0.8, 0.2), FRESH[1:], True),
        ((0.9, 0.4), [(0.9, 0.3), (0.9, 0.35), (0.8, 0.4)], True),  # as accurate, and fairer on every seed
    ],
)
def test_a_baseline_is_the_best_of_several_metrics_only_where_nothing_else_is_on_the_front(
    baseline: tuple[float, float], others: list[tuple[float, float]], told: bool | None, tmp_path: Path
) -> None:
    _, spec, record = studied(tmp_path, [baseline, *others])
    assert is_best_better_than_baseline(Results(spec, record)) is told


@pytest.mark.parametrize(("baseline", "is_chosen"), [((0.95, 0.2), True), ((0.8, 0.2), False)])
def test_a_baseline_that_is_chosen_of_the_front_is_told_before_what_the_search_gained(
    baseline: tuple[float, float], is_chosen: bool, tmp_path: Path
) -> None:
    _, spec, record = studied(tmp_path, [baseline, *FRESH[1:]])
    record.state = "complete"
    results = Results(spec, record)
    order = [
        type(one)
        for one in report_lead_statements(results)["Result"]
        if isinstance(one, ChosenFromFront | FrontGainsOverBaseline)
    ]
    folded = page_to_html(build_report_page(results, ()), {})
    assert "<summary>How the search went, what it cost</summary>" in folded, "a front has no How sure"
    assert order == (
        [ChosenFromFront, FrontGainsOverBaseline] if is_chosen else [FrontGainsOverBaseline, ChosenFromFront]
    )
    whole = [
        line for line in study_summary.summary_lines(study_summary.summarise_study(results)) if "gained nothing" in line
    ]
    assert whole == ["In val/accuracy the search gained nothing over the baseline."] * is_chosen


@pytest.mark.parametrize(
    ("gaps", "limit", "said"),
    [
        ((0.3, 0.3, 0.1), 1.0, "trial 2 is the best in every metric: "),
        ((0.1, 0.1, 0.1), 1.0, "none is better than trial 2 in any metric: "),
        ((0.3, 0.3, 0.1), 0.2, f"trial 2 alone keeps {GAP} <= 0.2: "),
        ((0.05, 0.3, 0.02), 0.2, f" keep {GAP} <= 0.2; of these trial 2 is the best in every metric: "),
    ],
)
def test_a_front_of_one_point_is_said_to_be_no_more_than_it_is(
    tmp_path: Path, gaps: Sequence[float], limit: float, said: str
) -> None:
    metrics = f"search.metric=[val/accuracy, {GAP}]"
    limits = f"search.constraints=[{GAP} <= {limit}]"
    spec = quickstart(metrics, limits, "train.epochs=1", "search.early_stopping={name: none}", "search.trials=3")
    pairs = zip((0.7, 0.8, 0.9), gaps, strict=True)
    trials = [
        Told("search" if number else "baseline", [value], params=PARAMS[number], further={GAP: gap})
        for number, (value, gap) in enumerate(pairs)
    ]
    folder = Home(tmp_path / "home").create_study(spec)
    write_ledger(folder.ledger_file, *trials)
    page = build_report_page(Results(spec, StudyRecord.load(folder.ledger_file)), {"front"})
    assert said in " ".join(dict(page.lead)["Result"])
    picture = page.sections[0].blocks[0]
    assert isinstance(picture, FigureBlock)
    assert picture.caption.startswith("Each mark")


def test_of_the_only_configuration_that_was_judged_nothing_is_compared(tmp_path: Path) -> None:
    spec = quickstart(f"search.metric=[val/accuracy, {GAP}]", "train.epochs=1", "search.early_stopping={name: none}")
    folder = Home(tmp_path / "home").create_study(spec)
    write_ledger(folder.ledger_file, Told("search", [0.7], params=PARAMS[0], further={GAP: 0.3}))
    page = build_report_page(Results(spec, StudyRecord.load(folder.ledger_file)), {"front"})
    told = " ".join(dict(page.lead)["Result"])
    assert "The front is trial 0 alone, of the 1 configuration of the search" in told
    assert "keeps" not in told


@pytest.mark.parametrize(
    ("accuracy", "gap", "start", "is_told"),
    [
        (NEARLY, 0.14, 0.7, True),
        ((0.85, 0.851, 0.852), 0.14, 0.7, False),
        (NEARLY, 0.2, 0.7, False),
        (NEARLY, 0.14, 0.89, False),
    ],
    ids=["half the gap", "less accurate", "two thirds of the gap", "the gain is as small"],
)
def test_a_point_that_is_as_good_for_half_of_the_other_metric_is_pointed_out(
    accuracy: tuple[float, ...], gap: float, start: float, is_told: bool
) -> None:
    found = said(CheaperAlternative, Results(TWO_METRICS, cheaper(accuracy, gap, start)))
    assert [(one.chosen.trial_number, one.other.trial_number, one.cost) for one in found] == [(1, 2, GAP)] * is_told


def limited(*assignments: str) -> Results:
    return Results(limited_to_one(*assignments), kept_in_search_alone())


@pytest.mark.parametrize("metrics", [f"search.metric=[val/accuracy, {GAP}]", "search.metric=val/accuracy"])
def test_what_keeps_a_limit_in_the_search_alone_is_named_with_the_command_that_runs_it(
    metrics: str,
) -> None:
    results = limited(metrics)
    assert to_configuration(results, results.best).broken_limits == (f"{GAP} <= 0.05",)  # type: ignore[union-attr]
    assert str(to_configuration(results, results.best)).splitlines()[0].endswith(f"breaks {GAP} <= 0.05")
    step = next_steps(results)[0]
    assert (step.kind, step.command) == ("confirm", "study confirm quickstart --top 2 --seeds 2")
    told = f"Kept in the search, and not run on fresh seeds yet: trial 3 ({GAP} 0.010)."
    assert str(step.why) == f"The result breaks {GAP} <= 0.05 on fresh seeds. {told}"
    make_confirm_event(results, 2, 2, False)
    assert 3 in [trial.number for trial in Results(results.spec, results.record).confirmation.trials_to_confirm()]


@pytest.mark.parametrize(("stage", "state"), [("confirm", "failed"), ("rule", "complete")])
def test_what_ran_on_fresh_seeds_in_whatever_way_is_not_proposed_for_them(stage: str, state: str) -> None:
    spec = limited_to_one("search.metric=val/accuracy")
    ran = [Told(stage, [0.8], state, params=PARAMS[3], further={GAP: 0.2}, seed=seed, repeats=3) for seed in (1, 2)]
    results = Results(spec, kept_in_search_alone(*ran))
    assert not [step for step in next_steps(results) if isinstance(step.why, ConstraintsKeptInSearchOnly)]


def test_where_no_judged_configuration_keeps_the_limits_there_is_no_front_to_be_chosen_of() -> None:
    results = limited(f"search.metric=[val/accuracy, {GAP}]")
    assert front_table(results)["trial"].tolist() == ["2, misses the limits by least"]
    section = build_report_page(results, {"front"}).sections[0]
    text = " ".join(str(block) for block in section.blocks)
    assert "of those that keep" not in text
    assert "chosen" not in text.replace("Nothing is chosen on test", "")


def test_a_baseline_that_breaks_a_limit_is_not_to_be_kept() -> None:
    results = limited("search.metric=val/accuracy")
    assert is_best_better_than_baseline(results) is True
