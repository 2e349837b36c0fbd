"""The papers' tables: each file's form, its sense in our terms, and its numbers against the papers' texts."""

import re
from itertools import combinations, pairwise
from typing import Any

import pytest
from paper_texts import in_order, nearby, needs_texts, numbers, paper_text, places, table

from study.errors import UserError
from study.metrics import METRICS, metric_direction
from study.published import PublishedTable, load_published_table, published_table_names

MEASURED = re.compile(r"[a-z_0-9]+/(?:biased_encoder_)?(?:(?:lbfgs|knn|mlp)_)?(?P<metric>\w+)")

EXAMPLE: dict[str, Any] = {
    "name": "example",
    "paper": {"title": "A title", "authors": "One et al.", "year": 2020, "key": "dcl"},
    "source": "Table 1",
    "caption": "A caption",
    "metric": "test/accuracy",
    "unit": "percent",
    "trials": 3,
    "spread": "standard deviation",
    "rows_title": "Method",
    "columns_title": "rho",
    "columns": [
        {"label": "0.9", "set": {"data.rho": 0.9}},
        {"label": "gap", "metric": "test/equalized_odds", "unit": "fraction"},
    ],
    "rows": [
        {"label": "one", "set": {"method.name": "One"}},
        {"label": "two", "set": {"method.name": "Two"}, "prefix": "lbfgs"},
        {"label": "three", "published_only": True},
    ],
    "cells": [["90.5 ± 1.5", "0.25"], ["-", "0.5 ± 0.1"], ["80", "0.2"]],
}


def mode(metric: str) -> str | None:
    found = MEASURED.fullmatch(metric)
    assert found is not None
    assert found["metric"] in METRICS
    return metric_direction(metric)


def test_cells_are_numbers_in_fractions_with_their_metric_and_their_trials() -> None:
    example = PublishedTable.model_validate(EXAMPLE)
    first, gap = example.printed_cell("one", "0.9"), example.printed_cell("two", "gap")
    assert (first.printed, first.value, first.spread) == ("90.5 ± 1.5", 0.905, 0.015)
    assert (gap.value, gap.spread) == (0.5, 0.1)
    assert (example.printed_cell("two", "0.9").value, example.printed_cell("three", "0.9").spread) == (None, None)
    assert example.metric_of("one", "0.9") == "test/accuracy"
    assert example.metric_of("two", "gap") == "test/lbfgs_equalized_odds"
    assert example.trial_keys_of("one", "0.9") == {"method.name": "One", "data.rho": 0.9}
    assert example.trial_keys_of("three", "0.9") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": [{"label": "one", "set": {"rho": 1}}, *EXAMPLE["rows"][1:]]}, "rows.0.set.rho"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_a_file_that_is_wrong_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PublishedTable.model_validate(EXAMPLE | change)


@pytest.mark.parametrize("name", published_table_names())
def test_a_table_has_a_cell_for_each_of_its_labels_and_claims_of_one_form(name: str) -> None:
    of = table(name)
    for lines in (of.rows, of.columns):
        assert len({line.label for line in lines}) == len(lines)
    assert [len(row) for row in of.cells] == [len(of.columns)] * len(of.rows)
    assert not of.no_study or all(row.published_only for row in of.rows)
    for claim in of.claims:
        assert sum(form is not None for form in (claim.better, claim.increasing, claim.decreasing, claim.best)) == 1
        for trend in filter(None, (claim.increasing, claim.decreasing)):
            assert (trend.row is None) == (trend.columns is None) != (trend.column is None) == (trend.rows is None)
        assert all(of.printed_cell(*place) for place in claim.cell_labels())


def test_an_unknown_table_is_one_message_with_the_nearest_name() -> None:
    with pytest.raises(UserError, match="Did you mean 'fairkl-table12'"):
        load_published_table("fairkl-tabel12")


@pytest.mark.parametrize("name", published_table_names())
def test_a_table_names_itself_its_paper_and_metrics_that_there_are(name: str) -> None:
    of = table(name)
    assert of.name == name
    assert of.paper.key == name.split("-")[0]
    for row, column in places(of):
        assert mode(of.metric_of(row, column)) in ("max", "min")


@pytest.mark.parametrize("name", published_table_names())
def test_no_trial_belongs_to_two_cells_of_one_metric(name: str) -> None:
    of = table(name)
    known = [(place, of.trial_keys_of(*place), of.metric_of(*place)) for place in places(of)]
    known = [(place, where, metric) for place, where, metric in known if where is not None]
    for (place, where, metric), (other_place, other, other_metric) in combinations(known, 2):
        differ = any(where[key] != other[key] for key in where.keys() & other.keys())
        assert metric != other_metric or differ, f"{place} and {other_place}"


@pytest.mark.parametrize("name", published_table_names())
def test_the_printed_numbers_show_what_is_claimed(name: str) -> None:
    of = table(name)
    for claim in of.claims:
        values = [of.printed_cell(*place).value for place in claim.cell_labels()]
        if claim.why_print_contradicts is None and None not in values:
            assert holds(of, claim, [value for value in values if value is not None]), claim.text


def holds(of: PublishedTable, claim: Any, values: list[float]) -> bool:
    sign = 1 if mode(of.metric_of(*claim.cell_labels()[0])) == "max" else -1
    if claim.better:
        return sign * values[0] > sign * values[1]
    if claim.best:
        in_column = claim.best.among == "column"
        others = [place for place in places(of) if place[in_column] == claim.cell_labels()[0][in_column]]
        printed = [of.printed_cell(*place).value for place in others]
        return sign * values[0] == max(sign * value for value in printed if value is not None)
    step = 1 if claim.increasing else -1
    return all(step * first < step * second for first, second in pairwise(values))


@needs_texts
@pytest.mark.parametrize("name", published_table_names())
def test_the_numbers_of_every_row_are_in_the_papers_text_beside_the_caption(name: str) -> None:
    """The rows in their order, each row's numbers and spreads without another number between them."""
    of = table(name)
    regions = [numbers(text) for text in nearby(paper_text(of.paper.key), of.source)]
    lines = [
        [number for place in line for number in numbers(of.printed_cell(*place).printed)] for line in printed_lines(of)
    ]
    lines = [line for line in lines if line]
    assert not lines or any(in_order(region, lines) for region in regions)


def printed_lines(of: PublishedTable) -> list[list[tuple[str, str]]]:
    """Row and column labels of the cells that stand on each line of print."""
    rows = [[(row.label, column.label) for column in of.columns] for row in of.rows]
    if of.name == "cclk-table2":  # baselines on the left, kernels on the right
        info_nce, weak, cosine, rbf, laplacian, linear = rows
        return [info_nce + rbf, weak + laplacian, cosine + linear, cosine]
    if of.name == "cclk-table5":  # fair on the left, hard negatives on the right, each with kernels of its own
        rbf, polynomial, laplacian, cosine, linear = rows
        return [rbf[:2] + linear[2:], polynomial[:2] + rbf[2:], laplacian[:2] + polynomial[2:], cosine[:2]]
    if of.name == "fscl-table1":  # Table 7 has a line per target and sensitive attribute: two columns of this one
        return [[place for row in rows for place in row[at : at + 2]] for at in range(0, len(of.columns), 2)]
    return rows
