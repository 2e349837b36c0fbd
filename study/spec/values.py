"""Values that a study file may write in another way than they are kept."""

import re
from typing import Any

from study.knobs import MOST

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(value: Any) -> Any:
    """A duration such as `90m` or `1h30m` in seconds; anything else as it is."""
    if isinstance(value, str) and re.fullmatch(r"(\d+(\.\d+)?[smhd])+", value):
        return sum(float(number) * UNITS[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)([smhd])", value))
    return float(value) if type(value) is int and abs(value) <= MOST else value


def configurations(value: Any) -> Any:
    """A list of configurations; the word `papers` was replaced before where it is allowed, and is refused here."""
    if isinstance(value, str):
        raise ValueError("allowed is a list of configurations, or papers")
    return value
