"""The report's table of configurations: what breaks a limit is marked, and the mark is explained."""

import pytest
from helpers import Told, quickstart
from told_studies import LIMITED, WHOLE, broken_anew, over

from study.analysis.report.report_page import build_report_page
from study.analysis.tables.report_tables import (
    BROKEN_CONSTRAINT_MARK,
    best_configurations_table,
    broken_constraints_note,
)
from study.ranking import Results

GAP, PARITY = "val/equalized_odds", "val/demographic_parity"
SEARCHED = quickstart(*WHOLE, f"search.constraints=['{GAP} <= 0.1', '{PARITY} <= 0.2']", "search.confirm={top: 0}")


def searched(*gaps: float) -> Results:
    """A baseline and configurations of these gaps, all of parity 0.1."""
    stages = ["baseline", *["search"] * (len(gaps) - 1)]
    trials = (
        Told(stage, [0.5 + gap], further={GAP: gap, PARITY: 0.1}) for stage, gap in zip(stages, gaps, strict=True)
    )
    return Results(SEARCHED, over(*trials))


def marked(results: Results) -> list[str]:
    """The first words of the trials that are marked."""
    return [
        trial.split()[0] for trial in best_configurations_table(results)["trial"] if BROKEN_CONSTRAINT_MARK in trial
    ]


@pytest.mark.parametrize(
    ("gaps", "broken"),
    [([0.05, 0.1, 0.3, 0.2], ["3", "2"]), ([0.3, 0.05, 0.1], ["0"]), ([0.1, 0.05], []), ([0.05, 0.2], ["1"])],
)
def test_the_trials_that_break_a_limit_are_marked_and_the_limit_is_named_below(
    gaps: list[float], broken: list[str]
) -> None:
    results = searched(*gaps)
    assert marked(results) == broken
    note = broken_constraints_note(results)
    assert (f"{GAP} <= 0.1" in note, PARITY in note) == (bool(broken), False)
    below = [block for section in build_report_page(results, ()).sections for block in section.blocks]
    assert (note in below) is bool(broken)


@pytest.mark.parametrize(("gap", "broken"), [(0.2, ["1"]), (0.1, [])])
def test_on_fresh_seeds_the_means_decide_there(gap: float, broken: list[str]) -> None:
    """In the search trial 1 has 0.09 of at most 0.1."""
    assert marked(Results(LIMITED, broken_anew(gap))) == broken


def test_a_row_shows_a_parameter_only_where_its_method_is_searched_with_it() -> None:
    """Cross entropy has an alpha in the file, too, which nothing uses there."""
    alpha = "method.alpha: {low: 0.1, high: 1.0, when: {method.name: [eps_sup_info_nce]}}"
    spec = quickstart(
        f"search.space={{method.name: {{choices: [cross_entropy, eps_sup_info_nce]}}, {alpha}}}",
        "search.baseline={method.name: cross_entropy}",
        "search.confirm={top: 0}",
        *WHOLE,
    )
    trials = (
        Told("baseline", [0.5], params={"method.name": "cross_entropy"}),
        Told("search", [0.7], params={"method.name": "eps_sup_info_nce", "method.alpha": 0.5}),
        Told("search", [0.6], params={"method.name": "cross_entropy"}),
    )
    shown = best_configurations_table(Results(spec, over(*trials)))
    assert dict(zip(shown["trial"], shown["method.alpha"], strict=True)) == {"1": "0.5", "2": "-", "0 (baseline)": "-"}
