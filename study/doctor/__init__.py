"""`study doctor`: what a bug report needs, and what usually goes wrong, each with its remedy.

Nothing that may be broken is imported before the look at it: not torch, nor what imports it.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from study.doctor import gpus, machine, software, state
from study.doctor.finding import STATES, Finding, isolated
from study.home import provenance

if TYPE_CHECKING:
    from study.home.folder import Home

__all__ = ["diagnose", "document", "text"]


def diagnose(address: str | None = None) -> list[Finding]:
    """Look at everything; a look that fails or hangs is a problem of its own, and the others go on.

    Args:
        address: of a Ray cluster that is to answer: its dashboard, `auto` or HOST:PORT.
    """
    looks: dict[str, Callable[[], Iterable[Finding]]] = {
        "python": software.python,
        "libraries": software.libraries,
        "torch": software.torch,
        "torchvision": software.torchvision,
        "GPUs": gpus.look,
        "CPUs": machine.cpus,
        "memory": machine.memory,
        "shared memory": machine.shared_memory,
        "home": lambda: state.home(_home()),
        "disk": lambda: machine.disks(_home().path),
        "data sets": state.data_sets,
        "MLflow": lambda: state.mlflow(_home()),
        "Ray": lambda: state.ray(_home(), address),
    }
    return [finding for name, look in looks.items() for finding in isolated(name, look)]


def _home() -> "Home":
    from study.home.folder import Home

    return Home.locate()


def document(findings: list[Finding]) -> dict[str, Any]:
    """All of it, as plain values; `state` is that of the worst."""
    worst = max((STATES.index(finding.state) for finding in findings), default=0)
    checks = [vars(finding) for finding in findings]
    return {"study": provenance.version_line(), "state": STATES[worst], "checks": checks}


def text(told: dict[str, Any]) -> str:
    """The same for people."""
    lines = [f"study {told['study']}"]
    for one in told["checks"]:
        lines.append(f"{one['state']:<8} {one['name']:<16} {one['told']}")
        if one["remedy"]:
            lines.append(f"{'':<25} -> {one['remedy']}")
    counts = {state: sum(one["state"] == state for one in told["checks"]) for state in STATES if state != "ok"}
    ended = ", ".join(f"{count} {state}{'s' if count > 1 else ''}" for state, count in counts.items() if count)
    return "\n".join([*lines, "", ended or "all is well"])
