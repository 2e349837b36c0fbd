"""Moments as people read them."""

import time
from datetime import UTC

import pytest

from study.text import format_time


def test_a_moment_names_its_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """In files the same for all who read them, else that of this machine, in summer and in winter."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        winter, summer = 1_800_000_000.25, 1_784_000_000
        assert (format_time(winter, UTC), format_time(winter)) == ("2027-01-15 08:00:00 UTC", "2027-01-15 09:00:00 CET")
        assert (format_time(summer, UTC), format_time(summer)) == (
            "2026-07-14 03:33:20 UTC",
            "2026-07-14 05:33:20 CEST",
        )
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("given", [None, "", "yesterday", {}])
def test_what_is_no_moment_is_a_dash(given: object) -> None:
    assert format_time(given) == "-"
