"""The seed as a factor of a table, against numbers by hand."""

import pytest

from study.analysis import ablation, to_markdown, trials_frame
from study.analysis.statistics.cell_tables import Cell, seed_factor


def cell(*values: float, seeds: tuple[int, ...] = (0, 1, 2)) -> Cell:
    return Cell("val/accuracy", values, seeds=seeds)


def test_what_a_seed_does_to_every_cell_is_taken_out() -> None:
    # seed means of (1, 2, 6) about 3: -2, -1, 3; residuals of the first cell 0.5, -0.5, 0, of the second the opposite
    found = seed_factor([cell(1.5, 1.5, 6.0), cell(10.5, 12.5, 16.0)])
    assert (found.cells, found.seeds, found.freedom) == (2, (0, 1, 2), 2)
    assert found.residual == pytest.approx((4 * 0.25 / 2) ** 0.5)
    assert found.within == pytest.approx(((2 * (4 + 1 + 9) + 4 * 0.25) / 4) ** 0.5)


def test_only_seeds_that_all_cells_have_count() -> None:
    found = seed_factor([cell(1.0, 2.0, 9.0, seeds=(0, 1, 7)), cell(3.0, 4.5, seeds=(0, 1)), Cell("val/accuracy")])
    assert (found.cells, found.seeds) == (2, (0, 1))
    assert found.residual == pytest.approx(0.25)


@pytest.mark.parametrize(
    "cells",
    [
        [],
        [cell(1.0, 2.0, 3.0)],
        [cell(1.0, 2.0, 3.0), cell(1.0, seeds=(0,))],
        [cell(1.0, 2.0, 3.0), cell(1.0, 2.0, 3.0, seeds=(3, 4, 5))],
        [cell(1.0, 2.0, 3.0), Cell("val/accuracy", (1.0, 2.0), "configurations", (0, 1, 2))],
    ],
)
def test_where_it_is_not_defined(cells: list[Cell]) -> None:
    assert seed_factor(cells) is None


def test_a_table_says_it(spec, frozen) -> None:
    text = to_markdown(ablation(trials_frame(spec, frozen), "method.alpha", "val/accuracy"))
    assert (
        "Seed as a factor (val/accuracy, 3 seeds (1, 2, 3), 3 cells): the standard deviation within cells is " in text
    )
    assert " 6.3 points, and 4.2 points once what each seed does to all cells is taken out." in text
