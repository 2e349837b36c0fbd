"""Columns that stand below each other."""

from study.text.columns import columns


def test_a_long_cell_widens_its_column_and_the_last_one_is_left_as_it_is() -> None:
    assert columns([("a", "b", "c"), ("long", "b", "what follows")], (2, 3)) == ["a    b   c", "long b   what follows"]
    assert columns([("a", "b")], (3,)) == ["a   b"]
