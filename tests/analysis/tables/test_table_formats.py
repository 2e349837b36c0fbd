"""A fixed set of trials gives exactly these tables."""

import csv
import io

import pytest
from helpers import Told, quickstart, record
from hypothesis import given, settings
from hypothesis import strategies as st

from study.analysis import ablation, sensitivity, to_csv, to_latex, to_markdown, trials_frame
from study.analysis.statistics import formatting
from study.analysis.statistics.parameter_tables import MetricCell
from study.analysis.tables.paper_comparison import (
    claims_table,
    compare_with_paper,
    judge_better_claim,
    judge_decreasing_claim,
)
from study.analysis.tables.printed_grid import PrintedEntry, PrintedGrid
from study.analysis.tables.table_formats import escape_latex
from study.ranking import Results, SeedStatistics, seed_statistics

SPEC = quickstart()
METRIC = "val/accuracy"


def trials(values: dict[tuple[float, float], list[float]]) -> list[Told]:
    """Complete trials by (alpha, lambda), one per seed."""
    return [
        Told(
            "search",
            [value],
            params={"method.alpha": alpha, "method.lambda": lambda_, "method.epsilon": 0.0},
            seed=seed,
        )
        for (alpha, lambda_), seeds in values.items()
        for seed, value in enumerate(seeds)
    ]


FULL = {
    (0.01, 0.5): [0.89, 0.90, 0.91],
    (0.01, 1.0): [0.84, 0.85, 0.86],
    (1.0, 0.5): [0.38, 0.39, 0.40],
    (1.0, 1.0): [0.3896, 0.3901, 0.3906],
}


def test_latex_of_a_full_table() -> None:
    """0.3901 prints as 39.0, as 0.39 does: both are best of their row."""
    table = sensitivity(trials_frame(Results(SPEC, record(*trials(FULL)))), "method.alpha", "method.lambda", METRIC)
    assert (
        to_latex(table, best="row", caption="Weights & margins")
        == r"""\begin{table}
\centering
\caption{Weights \& margins}
\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%
\begin{tabular}{lcc}
\toprule
$\alpha$ & $\lambda$ = 0.5 & $\lambda$ = 1 \\
\midrule
0.01 & \textbf{90.0 $\pm$ 1.0} & \underline{85.0 $\pm$ 1.0} \\
1 & \textbf{39.0 $\pm$ 1.0} & \textbf{39.0 $\pm$ 0.1} \\
\bottomrule
\end{tabular}}
\par\smallskip{\footnotesize """
        + (
            r"val/accuracy in percent: mean $\pm$ sample standard deviation over seeds. n = 3 in every cell. "
            r"Best of a row in bold, second underlined.}"
            "\n" + r"\end{table}"
        )
    )


def test_latex_of_columns_in_groups() -> None:
    """The form of FairKL paper Table 12."""
    frame = trials_frame(Results(SPEC, record(*trials(FULL))))
    table = sensitivity(frame, "method.epsilon", ["method.lambda", "method.alpha"], METRIC)
    lines = to_latex(table, best="column", digits=2).splitlines()
    assert lines[3:10] == [
        r"\begin{tabular}{lcccc}",
        r"\toprule",
        r" & \multicolumn{2}{c}{$\lambda$ = 0.5} & \multicolumn{2}{c}{$\lambda$ = 1} \\",
        r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}",
        r"$\epsilon$ & $\alpha$ = 0.01 & $\alpha$ = 1 & $\alpha$ = 0.01 & $\alpha$ = 1 \\",
        r"\midrule",
        r"0 & 90.00 $\pm$ 1.00 & 39.00 $\pm$ 1.00 & 85.00 $\pm$ 1.00 & 39.01 $\pm$ 0.05 \\",
    ]


PARTLY = [
    *trials({(0.01, 0.5): [0.89, 0.91], (1.0, 0.5): [0.4], (1.0, 1.0): [0.5, 0.5]}),
    *(Told("search", [0.99], state, params={"method.alpha": 0.01, "method.lambda": 1.0, "method.epsilon": 0.0})
      for state in ("pruned", "pruned", "failed", "waiting")),
    *trials({(1.0, 1.0): [0.5]}),
]  # fmt: skip


def test_markdown_of_a_partly_finished_study() -> None:
    table = sensitivity(trials_frame(Results(SPEC, record(*PARTLY))), "method.alpha", "method.lambda", METRIC)
    assert to_markdown(table, best="column").splitlines() == [
        "| method.alpha | method.lambda 0.5 | method.lambda 1 |",
        "| --- | ---: | ---: |",
        "| 0.01 | **90.0 ± 1.4** (2) | - (2 pruned, 1 failed, 1 open) |",
        "| 1 | *40.0* (1) | 50.0 ± 0.0 (2) |",
        "",
        "val/accuracy in percent: mean ± sample standard deviation over seeds. In brackets n, and trials without "
        "a value: pruned (by early stopping), failed, open (not ended). 1 trial repeats another's configuration "
        "and seed and counts once. Best of a column in bold, second in italics.",
    ]


def test_a_spread_over_configurations_does_not_look_like_one_over_seeds() -> None:
    """The cell of alpha 0.01 has two configurations, that of alpha 1 one on two seeds."""
    told = trials({(0.01, 0.5): [0.89, 0.91], (0.01, 1.0): [0.80], (1.0, 0.5): [0.4, 0.5]})
    table = ablation(trials_frame(Results(SPEC, record(*told))), "method.alpha", METRIC)
    lines = to_markdown(table, best="column").splitlines()
    assert [line.split(" | ")[1] for line in lines[2:4]] == ["**85.0 [7.1]** |", "*45.0 ± 7.1* |"]
    assert "± sample standard deviation over seeds, in a cell of one configuration; in a cell of several" in lines[-1]
    assert "85.0 {[}7.1]" in to_latex(table)


def test_csv_is_not_rounded() -> None:
    table = sensitivity(trials_frame(Results(SPEC, record(*PARTLY))), "method.alpha", "method.lambda", METRIC)
    rows = list(csv.reader(io.StringIO(to_csv(table))))
    assert rows[0] == ["method.alpha", "method.lambda", "metric", "mean", "sd", "n", "remark"]
    assert rows[1] == ["0.01", "0.5", METRIC, "0.9", "0.014142135623730963", "2", "(2)"]
    assert rows[2] == ["0.01", "1.0", METRIC, "", "", "0", "(2 pruned, 1 failed, 1 open)"]


def test_no_text_in_the_csv_is_a_formula() -> None:
    """Of a table that is made by hand, too; its numbers stay."""
    grid = PrintedGrid(
        ("kind",),
        [("=1+2",), ("-0.5",)],
        ("",),
        [("@x",)],
        ((PrintedEntry(METRIC, remark="+y"),), (PrintedEntry(METRIC),)),
    )
    rows = list(csv.reader(io.StringIO(to_csv(grid))))
    assert [row[:2] for row in rows[1:]] == [["'=1+2", "'@x"], ["-0.5", "'@x"]]
    assert rows[1][-1] == "'+y"


def test_what_is_no_share_is_no_percent() -> None:
    grid = PrintedGrid(("",), [], ("",), [], [])
    numbers = {(103.25, 0.5): "103.2 ± 0.5", (0.00123456, 0.00002): "0.001235 ± 0.000020", (0.0, None): "0.000"}
    for (mean, deviation), printed in numbers.items():
        assert grid.number_text(PrintedEntry("test/condition_mse", SeedStatistics(mean, deviation, 3))) == printed


def test_nothing_but_text_comes_through_latex() -> None:
    assert escape_latex("50% of_{x} & $y$ #1 ~ ^ \\ <a>\n[b]") == (
        r"50\% of\_\{x\} \& \$y\$ \#1 \textasciitilde{} \textasciicircum{} \textbackslash{} "
        r"\textless{}a\textgreater{} {[}b]"
    )


def test_an_empty_study_has_an_empty_table() -> None:
    table = ablation(trials_frame(Results(SPEC, record())), "method.alpha", METRIC)
    assert to_markdown(table).splitlines()[:2] == ["| method.alpha | val/accuracy |", "| --- | ---: |"]
    assert to_latex(table, best="row").count(r"\\") == 1


OURS = {
    ("CE", "0.99"): MetricCell("test/accuracy", (0.60, 0.61, 0.62), seeds=(1, 2, 3)),
    ("CE", "0.9"): MetricCell("test/accuracy", (0.90,), seeds=(1,)),
    ("new", "0.99"): MetricCell("test/accuracy", (0.80, 0.801, 0.802), seeds=(1, 2, 3)),
    ("new", "0.9"): MetricCell("test/accuracy"),
}
PAPER = {
    place: PrintedEntry("test/accuracy", SeedStatistics(mean, deviation, 3), source="paper")
    for place, mean, deviation in [
        (("CE", "0.99"), 0.7, 0.01),
        (("CE", "0.9"), 0.9, 0.01),
        (("new", "0.99"), 0.8, 0.001),
        (("new", "0.9"), 0.95, 0.01),
        (("old", "0.99"), 0.5, None),
    ]
}
MISSING = {("old", "0.99"): "published only", ("old", "0.9"): "published only"}


def test_ours_beside_the_papers() -> None:
    found = to_markdown(
        compare_with_paper(["CE", "new", "old"], ["0.99", "0.9"], OURS, PAPER, MISSING, ()), best="column"
    ).splitlines()
    assert found[:9] == [
        "|  |  | 0.99 | 0.9 |",
        "| --- | --- | ---: | ---: |",
        "| CE | ours | *61.0 ± 1.0* (3) | 90.0 (1) |",
        "| CE | paper | *70.0 ± 1.0* | *90.0 ± 1.0* |",
        "| CE | verdict | differs | cannot tell |",
        "| new | ours | **80.1 ± 0.1** (3) | - |",
        "| new | paper | **80.0 ± 0.1** | **95.0 ± 1.0** |",
        "| new | verdict | agrees | cannot tell |",
        "| old | paper (published only) | 50.0 |  |",
    ]
    assert "agrees where the 90% interval of the difference lies within 1 points of percent" in found[-1]


def test_a_row_label_is_printed_once_in_latex() -> None:
    lines = to_latex(compare_with_paper(["CE"], ["0.99", "0.9"], OURS, PAPER, {}, ())).splitlines()
    assert lines[7:10] == [
        r"CE & ours & 61.0 $\pm$ 1.0 (3) & 90.0 (1) \\",
        r" & paper & 70.0 $\pm$ 1.0 & 90.0 $\pm$ 1.0 \\",
        r" & verdict & differs & cannot tell \\",
    ]


def test_claims_as_a_table() -> None:
    results = {
        "new is better": judge_better_claim(OURS["new", "0.99"], OURS["CE", "0.99"]),
        "CE falls": judge_decreasing_claim([OURS["CE", "0.9"], OURS["CE", "0.99"]]),
    }
    assert claims_table(results).to_numpy().tolist() == [
        ["new is better", "holds", "show it", "< 0.001", "-"],
        ["CE falls", "cannot tell", "show it", "-", "one value is too few"],
    ]


NUMBERS = st.none() | st.sampled_from([0.5, 0.5001, 0.25]) | st.floats(0, 1)


@settings(max_examples=30)
@given(st.lists(st.lists(NUMBERS, min_size=3, max_size=3), min_size=1, max_size=4))
def test_marks_are_those_of_the_printed_numbers(drawn: list[list[float | None]]) -> None:
    entries = [[PrintedEntry(METRIC, seed_statistics([value])) for value in line] for line in drawn]
    grid = PrintedGrid(("",), [(str(row),) for row in range(len(drawn))], ("",), [("a",), ("b",), ("c",)], entries)
    for line in grid.with_best_marked("row").entries:
        printed = [float(grid.number_text(entry)) for entry in line if entry.statistics]
        best = {float(grid.number_text(entry)) for entry in line if entry.rank_mark == "best"}
        second = {float(grid.number_text(entry)) for entry in line if entry.rank_mark == "second"}
        ranks = sorted(set(printed), reverse=True)
        assert best == (set(ranks[:1]) if len(printed) > 1 else set())
        assert second == (set(ranks[1:2]) if len(printed) > 1 else set())
        marked = [entry for entry in line if entry.rank_mark]
        assert len(marked) == sum(value in ranks[:2] for value in printed) or len(printed) == 1
    assert [[entry.rank_mark for entry in line] for line in grid.entries] == [[None] * 3] * len(drawn)


@pytest.mark.parametrize(
    ("seeds", "shown"),
    [([], "-"), ([4], "4"), ([1, 2, 3], "1, 2, 3"), ([1, 2, 3, 4, 5], "1 to 5"), ([1, 2, 3, 5], "1, 2, 3, 5")],
)
def test_many_seeds_in_a_row_are_a_range(seeds: list[int], shown: str) -> None:
    assert formatting.seed_numbers_text(seeds) == shown
