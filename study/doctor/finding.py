"""The finding of one check."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

State = Literal["ok", "warning", "problem"]
STATES: tuple[State, ...] = get_args(State)

PATIENCE = 60.0
"""Seconds after which a check is given up."""


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's output.

    Attributes:
        name: of what was checked.
        state: `warning`: it works, but not well; `problem`: something will not work.
        told: what was found.
        remedy: what to do about it, None if there is nothing to do.
    """

    name: str
    state: State
    told: str
    remedy: str | None = None


def isolated(name: str, look: Callable[[], Iterable[Finding]], patience: float = PATIENCE) -> list[Finding]:
    """The findings of a check; if it raises or does not end in time, that is a finding, too.

    Args:
        patience: in seconds. A check that is given up goes on in its thread until the process ends.
    """
    findings: list[Finding] = []

    def work() -> None:
        try:
            findings.extend(look())
        except Exception as error:  # whatever a broken library raises
            message = " ".join(f"{type(error).__name__}: {error}".split())[:500]
            findings.append(Finding(name, "problem", message, "if the message does not help, report it as a bug"))

    thread = threading.Thread(target=work, name=f"check {name}", daemon=True)
    thread.start()
    thread.join(patience)
    if thread.is_alive():
        return [*findings, Finding(name, "problem", f"no answer within {patience:.0f} s")]
    return findings
