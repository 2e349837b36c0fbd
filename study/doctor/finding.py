"""What a look at one thing found."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

State = Literal["ok", "warning", "problem"]
STATES: tuple[State, ...] = get_args(State)

PATIENCE = 60.0
"""Seconds after which a look that has not come to an end is given up."""


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's.

    Attributes:
        name: of what was looked at.
        state: `warning`: it works, though not as one would like; `problem`: something will not work.
        told: what was found.
        remedy: what to do about it, None where nothing is to be done.
    """

    name: str
    state: State
    told: str
    remedy: str | None = None


def isolated(name: str, look: Callable[[], Iterable[Finding]], patience: float = PATIENCE) -> list[Finding]:
    """What a look finds; one that raises or does not end in time is a problem and harms no other.

    Args:
        patience: in seconds. A look that is given up ends with the process.
    """
    found: list[Finding] = []

    def work() -> None:
        try:
            found.extend(look())
        except Exception as error:  # whatever a broken library raises
            told = " ".join(f"{type(error).__name__}: {error}".split())[:500]
            found.append(Finding(name, "problem", told, "see what this says; a bug report should have it"))

    thread = threading.Thread(target=work, name=f"look at {name}", daemon=True)
    thread.start()
    thread.join(patience)
    if thread.is_alive():
        return [*found, Finding(name, "problem", f"no answer within {patience:.0f} s")]
    return found
