"""The report's section on the steps from the baseline to the best: no more is said than the intervals support."""

import json

import pytest
from ablated_study import PARAMS, write_ablation

from study.analysis import ablation_frame, to_csv, to_latex, to_markdown
from study.analysis.figures.result_figures import plot_ablation as drawn
from study.analysis.report.ablation_section import ABLATION_TITLE, ablation_section
from study.analysis.report.page_formats import ReportPage
from study.analysis.report.page_formats import page_to_markdown as page_markdown
from study.analysis.report.report_page import build_report_page
from study.analysis.statistics.ablation_effects import ablation_effects_by_metric, ablation_to_dicts
from study.home.events import AblationRequested
from study.ranking import Results
from study.spec import load_study

SPEC = load_study("fairkl_digits", ["search.early_stopping={}", "search.confirm={top: 2, seeds: 2}"])


def begun(study):
    study.trial("baseline", [0.5])
    study.trial("search", [0.76], params=PARAMS)
    return study


def ablated(study, **given):
    write_ablation(begun(study), 1, **given)
    return study.record()


def said(spec, record):
    section = ablation_section(Results(spec, record))
    assert section is not None
    return page_markdown(ReportPage("page", [], [section]))


def test_the_steps_and_what_they_sum_to(writer):
    text = said(SPEC, ablated(writer()))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert (
        rows[0]
        == "| part | configuration | val/accuracy | step in val/accuracy | test/accuracy | step in test/accuracy |"
    )
    assert rows[2].startswith("| step by step | baseline | 51.")
    assert rows[3].startswith("| step by step | + method.alpha = 0.01 | 71.")
    assert "| in all | best against the baseline |" in rows[6]
    assert [row.split(" | ")[0] for row in rows[7:]] == ["| baseline with"] * 3 + ["| best with"] * 3 + [
        "| interaction"
    ] * 3
    assert "in 3 steps over 3 seeds." in text
    assert "Beyond the spread over seeds, step by step: method.alpha by +2" in text
    assert "No interaction is beyond the spread over seeds." in text
    assert "with 95% intervals that hold for all of a part's 3 steps at once (Bonferroni)" in text


def test_an_interaction_beyond_the_spread_is_told(writer):
    text = said(SPEC, ablated(writer(), both=0.3))
    assert "What a step is worth depends on the others, beyond the spread over seeds: method.alpha by +2" in text


@pytest.mark.parametrize(
    ("seeds", "confirmed", "words"),
    [
        ((3, 4, 5), (1, 26), "By none of these seeds that trial was chosen"),
        ((1, 2, 3), (1,), "no other configuration of the search was confirmed"),
        ((1, 2, 3), (1, 26), "Later several configurations were confirmed on some of these seeds"),
    ],
)
def test_which_seeds_judge_is_told(writer, seeds, confirmed, words):
    study = begun(writer())
    write_ablation(study, 1, seeds=seeds)
    study.trial("search", [0.6], params=PARAMS | {"method.alpha": 0.5})
    for number in confirmed:
        for seed in (1, 2):
            study.trial("confirm", [0.76 if number == 1 else 0.6], seed=seed, repeats=number)
    assert words in said(SPEC, study.record())


def test_what_has_not_run_is_told(writer):
    study = begun(writer())
    study.append(
        AblationRequested(trial=1, steps=[["method.alpha"], ["method.lambda", "method.epsilon"]], first=5, seeds=2)
    )
    study.trial("ablation", [0.5], seed=5, params={"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0})
    record = study.record()
    text = said(SPEC, record)
    assert "No seed has a complete trial of every configuration on the path" in text
    assert "7 trials of 8 are not complete." in text
    assert "Knobs of one step move together" in text
    assert drawn(Results(SPEC, record)) is None


def test_without_an_ablation_there_is_no_section(writer, frozen, spec):
    assert ablation_section(Results(spec, frozen)) is None
    assert drawn(Results(spec, frozen)) is None
    study = begun(writer())
    study.append(AblationRequested(trial=1, steps=[["method.alpha"]], first=5, seeds=2))
    assert ablation_section(Results(SPEC, study.record())) is None


def test_the_report_holds_section_and_figure(writer):
    record = ablated(writer())
    figure = drawn(Results(SPEC, record))
    assert figure.get_suptitle().startswith("From the baseline in 3 steps to +2")
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "baseline",
        "+ method.alpha = 0.01",
        "+ method.lambda = 1.5",
        "+ method.epsilon = 0.25",
    ]
    assert [axes.get_xlabel() for axes in figure.axes] == ["val/accuracy", "test/accuracy"]
    page = page_markdown(build_report_page(Results(SPEC, record), {"ablation": figure.get_suptitle()}))
    assert f"## {ABLATION_TITLE}" in page
    assert "(figures/ablation.png)" in page


def test_the_metrics_of_constraints_are_shown_too(writer):
    given = ["search.sampler=tpe", "search.early_stopping={}", "search.constraints=[val/equalized_odds <= 0.1]"]
    spec = load_study("fairkl_digits", given)
    record = ablated(writer(), also={"val/equalized_odds": 0.05})
    frame = ablation_frame(Results(spec, record))
    assert list(frame["metric"].unique()) == ["val/accuracy", "val/equalized_odds", "test/accuracy"]
    assert "| val/equalized_odds | step in val/equalized_odds |" in said(spec, record)
    assert [axes.get_xlabel() for axes in drawn(Results(spec, record)).axes] == ["val/accuracy", "test/accuracy"]


def test_the_frame_is_written_as_markdown_latex_csv_and_json(writer):
    record = ablated(writer())
    frame = ablation_frame(Results(SPEC, record))
    effects = frame[frame["metric"] == "val/accuracy"].set_index("part")["effect"]
    assert effects["path"].sum() == pytest.approx(effects["gain"])
    assert "| step by step | + method.alpha = 0.01 | 71." in to_markdown(frame)
    latex = to_latex(frame, caption="From the baseline to the best.")
    assert r"step by step & baseline & 51." in latex
    assert r"method.alpha = 0.01 & 71.5 $\pm$ 1.2 (+20.0; +16.0 to +24.0)" in latex
    assert r"\begin{tabular}{llcc}" in latex
    assert latex.count(r" \\") == 1 + 4 + 1 + 3 + 3 + 3
    lines = to_csv(frame).splitlines()
    assert lines[0] == "part,configuration,column,metric,mean,sd,n,remark"
    assert len(lines) == 1 + 2 * 14
    plain = json.loads(
        json.dumps(ablation_to_dicts(ablation_effects_by_metric(Results(SPEC, record))), allow_nan=False)
    )
    assert {key for key in plain[0] if plain[0][key] is None} == {"effect", "low", "high"}
