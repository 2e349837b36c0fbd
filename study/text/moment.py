"""Moments as people read them."""

from datetime import datetime, tzinfo
from typing import Any


def moment(seconds: Any, zone: tzinfo | None = None) -> str:
    """`2026-11-22 15:28:37 UTC`, or `-` for what is no number of seconds since the epoch.

    Args:
        zone: for files, which whoever reads them should find the same; None: the one of this machine.
    """
    if not isinstance(seconds, int | float):
        return "-"
    return datetime.fromtimestamp(seconds, zone).astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z")
