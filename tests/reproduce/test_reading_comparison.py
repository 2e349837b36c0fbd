"""A table under several readings of its protocol: which one the print supports, and how surely."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer
from published_study import Course

from study import published
from study.analysis.statistics.parameter_tables import MetricCell
from study.cli import run_commands
from study.errors import UserError
from study.home.folder import Home
from study.home.record import StudyRecord
from study.ranking import Results
from study.reproduce import ALL_READINGS, ReproductionRequest, compare_requested_readings, run_readings
from study.reproduce.reading_comparison import (
    ReadingComparison,
    best_supported_reading_text,
    cell_pairs_in_printed_order,
    compare_readings,
    order_agreement_by_seed,
    reading_comparison_to_dict,
    reading_comparison_to_markdown,
)
from study.reproduce.reproduction import CellsByPlace, build_reproduction, list_cell_places
from study.spec import StudySpec, load_study
from study.spec.load import declared_readings

TABLE = "fairkl-table12"
SEEDS = (0, 1, 2)
BOTH = "once,squared"
ONCE = {0.01: (0.80, 0.81, 0.79), 0.1: (0.45, 0.48, 0.44), 1.0: (0.27, 0.25, 0.30)}
SQUARED = {0.01: (0.79, 0.78, 0.80), 0.1: (0.80, 0.79, 0.81), 1.0: (0.28, 0.29, 0.27)}
Begin = Callable[..., Course]


def unseen(spec: StudySpec, record: StudyRecord) -> AbstractContextManager[Callable[[str], None]]:
    return nullcontext(lambda told: None)


def run(
    begin: Begin, name: str, squared: bool, values: dict[float, tuple[float, ...]], rows: tuple[float, ...]
) -> None:
    """A complete study of some rows of the table, with lambda 0.5."""
    course = begin(TABLE, f"method.alpha_squared={json.dumps(squared)}", profile="cpu", name=name)
    for rho in rows:
        for alpha, by_seed in values.items():
            params = {"data.rho": rho, "method.lambda": 0.5, "method.alpha": alpha}
            for seed in SEEDS:
                course.trial(params, seed, [by_seed[seed]])
    course.close("complete")


def test_the_reading_whose_cells_have_the_printed_order_leads(home: Home, begin: Begin) -> None:
    run(begin, TABLE, False, ONCE, (0.999, 0.997))
    run(begin, f"{TABLE}--squared", True, SQUARED, (0.999, 0.997))
    comparison = compare_requested_readings(home, TABLE, ReproductionRequest(), BOTH)
    assert [result.name for result in comparison.results] == ["once", "squared"]
    once, squared = comparison.results
    # at 0.999 the print tells all three pairs of lambda 0.5 apart: 0.1 is below 1.0; at 0.997 it does not tell these
    assert comparison.n_pairs == 5
    assert once.order_agreement_by_seed == dict.fromkeys(SEEDS, pytest.approx(3 / 5))
    assert squared.order_agreement_by_seed == {
        0: pytest.approx(-1 / 5),
        1: pytest.approx(-1 / 5),
        2: pytest.approx(-1 / 5),
    }
    assert comparison.leading_result is once
    assert once.claim_verdicts["At rho 0.999 and lambda 0.5 alpha 0.01 is better than alpha 1.0"] == "holds"
    assert comparison.is_lead_clear


def test_a_study_that_has_not_begun_has_no_order_and_the_text_says_so(home: Home, begin: Begin) -> None:
    run(begin, TABLE, False, ONCE, (0.999,))
    comparison = compare_requested_readings(home, TABLE, ReproductionRequest(), BOTH)
    assert comparison.leading_result is comparison.results[0]
    assert comparison.results[1].order_agreement_by_seed == {}
    assert not comparison.is_lead_clear
    assert "Only once has been run" in best_supported_reading_text(comparison)
    assert reading_comparison_to_dict(comparison)["readings"][1]["order"] == {}
    assert "alpha weighs" in reading_comparison_to_markdown(comparison)
    assert json.dumps(reading_comparison_to_dict(comparison), allow_nan=False)


def test_a_cell_that_still_runs_is_left_out_and_takes_no_seed_from_the_others(home: Home, begin: Begin) -> None:
    course = begin(TABLE, "method.alpha_squared=false", profile="cpu")
    for rho, seeds in ((0.999, SEEDS), (0.997, SEEDS[:2])):
        for alpha, by_seed in ONCE.items():
            for seed in seeds:
                course.trial({"data.rho": rho, "method.lambda": 0.5, "method.alpha": alpha}, seed, [by_seed[seed]])
    course.close("interrupted")
    comparison = compare_requested_readings(home, TABLE, ReproductionRequest(), ALL_READINGS)
    assert list(comparison.results[0].order_agreement_by_seed) == list(SEEDS)
    assert comparison.n_pairs == 3


def test_of_a_table_of_which_nothing_has_run_no_reading_leads(home: Home) -> None:
    comparison = compare_requested_readings(home, TABLE, ReproductionRequest(), ALL_READINGS)
    assert comparison.leading_result is None
    assert reading_comparison_to_dict(comparison)["leading"] is None


def test_studies_of_readings_are_over_when_they_are_complete(home: Home, begin: Begin) -> None:
    run(begin, TABLE, False, ONCE, (0.999,))
    run(begin, f"{TABLE}--squared", True, SQUARED, (0.999,))
    assert list(run_readings(home, TABLE, ReproductionRequest(), BOTH, unseen)) == []
    assert list(run_readings(home, TABLE, ReproductionRequest(profile="cpu"), "squared", unseen)) == []
    with pytest.raises(UserError, match=r"fairkl-table12--squared: exists already, with other settings"):
        list(run_readings(home, TABLE, ReproductionRequest(profile="cpu", seeds="7,9"), "squared", unseen))


@pytest.mark.parametrize(
    ("table", "readings", "message"),
    [
        (TABLE, "twice", r"'twice' is no reading of fairkl-table12.*once, squared"),
        (TABLE, "once,twice", "'twice'"),
        (TABLE, ",", "declares once, squared, no_base_temperature"),
        ("cclk-table2", ALL_READINGS, "declares none"),
        ("dcl-table2", ALL_READINGS, "nothing of it can be run here"),
    ],
)
def test_readings_that_are_not_there_are_refused(home: Home, table: str, readings: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        list(run_readings(home, table, ReproductionRequest(), readings, unseen))
    assert home.list_studies() == []


# Whether the sentence is right, of studies whose truth is known.


def drawn(random: np.random.Generator, follows: float, noise: float = 0.05) -> CellsByPlace:
    """Cells of the table whose true values follow the print's by a share, and chance on each seed."""
    table, cells = published.load_published_table(TABLE), {}
    for place in list_cell_places(table):
        printed = table.printed_cell(*place).value
        assert printed is not None
        values = follows * printed + random.normal(0, noise, len(SEEDS))
        cells[place] = MetricCell("test/accuracy", tuple(map(float, values)), seeds=SEEDS)
    return cells


def simulated(random: np.random.Generator, *follows: float, noise: float = 0.05) -> ReadingComparison:
    table, full, declared = published.load_published_table(TABLE), load_study(TABLE), declared_readings(TABLE)
    declared = {name: declared[name] for name in BOTH.split(",")}
    empty = build_reproduction(table, Results(full, StudyRecord()), full)
    shares = zip(declared, follows, strict=True)
    found = {name: replace(empty, last_epoch_cells=drawn(random, share, noise)) for name, share in shares}
    return compare_readings(table, declared, {name: name for name in declared}, found)


@pytest.mark.parametrize(
    ("share", "noise"),
    [
        pytest.param(0.2, 0.01, marks=pytest.mark.slow),
        pytest.param(0.0, 0.05, marks=pytest.mark.slow),
        pytest.param(1.0, 0.01, marks=pytest.mark.slow),
    ],
)
def test_of_readings_that_are_alike_one_is_seldom_said_to_be_supported(share: float, noise: float) -> None:
    random = np.random.default_rng(0)
    told = [simulated(random, share, share, noise=noise).is_lead_clear for _ in range(60)]
    assert np.mean(told) <= 0.05 + 2 * (0.05 * 0.95 / len(told)) ** 0.5


def test_the_reading_that_follows_the_print_is_found() -> None:
    random = np.random.default_rng(1)
    found = [simulated(random, -1.0, 1.0, noise=0.02) for _ in range(20)]
    assert all(comparison.leading_result is comparison.results[1] for comparison in found)
    assert np.mean([comparison.is_lead_clear for comparison in found]) > 0.9


def test_only_pairs_that_the_print_tells_apart_and_all_readings_have_are_compared() -> None:
    table = published.load_published_table(TABLE)
    whole = drawn(np.random.default_rng(0), 1.0)
    pairs = cell_pairs_in_printed_order(table, "row", [whole], SEEDS)
    assert all(more[0] == less[0] for more, less in pairs)
    assert all((table.printed_cell(*more).value or 0) > (table.printed_cell(*less).value or 0) for more, less in pairs)
    without: dict[Any, MetricCell] = {place: cell for place, cell in whole.items() if place[0] != "0.999"}
    assert {more[0] for more, _ in cell_pairs_in_printed_order(table, "row", [whole, without], SEEDS)} == {
        "0.997",
        "0.995",
        "0.99",
    }
    assert order_agreement_by_seed(whole, pairs, SEEDS)[0] > 0.5
    assert (
        order_agreement_by_seed(whole, [(less, more) for more, less in pairs], SEEDS)[0]
        == -order_agreement_by_seed(whole, pairs, SEEDS)[0]
    )
    assert order_agreement_by_seed(whole, [], SEEDS) == {}


def test_a_reading_that_failed_is_the_exit_status_though_the_last_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = [SimpleNamespace(record=SimpleNamespace(state=state), untracked=False) for state in ("failed", "complete")]
    monkeypatch.setattr("study.reproduce.run_readings", lambda *_: iter(ends))
    monkeypatch.setattr("study.reproduce.compare_requested_readings", lambda *_: None)
    monkeypatch.setattr("study.reproduce.reading_comparison.reading_comparison_to_markdown", lambda _: "")
    with pytest.raises(typer.Exit) as status:
        run_commands.reproduce("a_table", readings="all", quiet=True)
    assert status.value.exit_code == 1


# Readings that train nothing: the same trials, read in another way.


def test_a_reading_of_the_best_epoch_reads_the_trials_that_are_there(home: Home, begin: Begin) -> None:
    course = begin(TABLE, profile="cpu")
    best = {0.01: 0.70, 0.1: 0.80, 1.0: 0.90}  # the contrary of the last epochs' order
    for alpha, last in ((0.01, 0.6), (0.1, 0.5), (1.0, 0.4)):
        for seed in SEEDS:
            params = {"data.rho": 0.999, "method.lambda": 0.5, "method.alpha": alpha}
            course.trial(params, seed, [best[alpha], last + seed / 100])
    course.close("complete")
    assert list(run_readings(home, TABLE, ReproductionRequest(), "once,best_on_test", unseen)) == []
    assert [folder.name for folder in home.list_studies()] == [TABLE]
    last, at_best = compare_requested_readings(home, TABLE, ReproductionRequest(), "once,best_on_test").results
    assert at_best.study == last.study == TABLE
    assert last.our_cells["0.999", "lambda = 0.5, alpha = 0.01"].values == pytest.approx((0.60, 0.61, 0.62))
    assert at_best.our_cells["0.999", "lambda = 0.5, alpha = 0.01"].values == pytest.approx((0.70,) * 3)
    claim = "At rho 0.999 and lambda 0.5 alpha 0.01 is better than alpha 0.1"
    assert (last.claim_verdicts[claim], at_best.claim_verdicts[claim]) == ("holds", "does not hold")
    assert last.order_agreement_by_seed[0] > at_best.order_agreement_by_seed[0]


def test_a_reading_by_another_metric_judges_by_it_what_the_table_leaves_open(home: Home, begin: Begin) -> None:
    course = begin("wcl-table3", profile="cpu")
    rows = {"Baseline": (0.65, 0.28), "LAFTR": (0.62, 0.09)}
    for split in (0, 1, 2):
        for method, (accuracy, gap) in rows.items():
            further = {"test/equalized_odds": gap + split / 100, "test/accuracy_parity": 0.03}
            params = {"data.name": "compas", "data.split_seed": split, "method.name": method}
            course.trial(params, 0, [accuracy], further=further)
    course.close("complete")
    parity, odds = compare_requested_readings(
        home, "wcl-table3", ReproductionRequest(), "parity,equalized_odds"
    ).results
    place = ("Baseline", "COMPAS EOd")
    assert parity.our_cells[place].values == pytest.approx((0.03,) * 3)
    assert odds.our_cells[place].values == pytest.approx((0.28, 0.29, 0.30))
    # the table gives no verdict on this column; a reading that says what the printed quantity is does
    assert place not in parity.cell_verdicts
    assert place in odds.cell_verdicts
    assert odds.order_agreement_by_seed == {0: 1.0}
    assert parity.order_agreement_by_seed == {0: 0.5}  # of the two pairs that of the accuracies alone


def test_a_reading_may_give_printed_values_another_meaning(home: Home, begin: Begin) -> None:
    course = begin("fairkl-table8", "search.space.method.epsilon.choices=[1.0, 2.5, 5.0]", profile="cpu",
                   name="fairkl-table8--of_similarity")  # fmt: skip
    for seed in SEEDS:
        course.trial({"data.name": "cifar10", "method.name": "eps-SupInfoNCE", "method.epsilon": 2.5}, seed, [0.5])
    course.close("complete")
    (read,) = compare_requested_readings(home, "fairkl-table8", ReproductionRequest(), "of_similarity").results
    assert read.our_cells["CIFAR-10", "epsilon = 0.25"].values == (0.5,) * 3
    assert not read.our_cells["CIFAR-10", "epsilon = 0.5"].values
