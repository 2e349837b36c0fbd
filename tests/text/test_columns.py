"""Columns that stand below each other."""

from study.text import align_columns


def test_a_long_cell_widens_its_column_and_the_last_one_is_left_as_it_is() -> None:
    rows = [("a", "b", "c"), ("long", "b", "what follows")]
    assert align_columns(rows, (2, 3)) == ["a    b   c", "long b   what follows"]
    assert align_columns([("a", "b")], (3,)) == ["a   b"]
