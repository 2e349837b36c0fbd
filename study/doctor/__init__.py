"""What `study doctor` does: gather what a bug report needs, and find what usually goes wrong, with remedies.

A library that may be broken, such as torch, is imported only by the check of it.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from study.doctor import health_checks
from study.doctor.health_checks import STATES, Finding, isolated
from study.home import provenance

if TYPE_CHECKING:
    from study.home.folder import Home

__all__ = ["diagnose", "document", "text"]


def diagnose(address: str | None = None) -> list[Finding]:
    """Check everything; a check that fails or hangs is a problem of its own and does not stop the others.

    Args:
        address: of a Ray cluster to check as well: its dashboard, `auto` or HOST:PORT.
    """
    each: dict[str, Callable[[], Iterable[Finding]]] = {
        "python": health_checks.python,
        "libraries": health_checks.libraries,
        "torch": health_checks.torch,
        "torchvision": health_checks.torchvision,
        "GPUs": health_checks.gpus,
        "CPUs": health_checks.cpus,
        "memory": health_checks.memory,
        "shared memory": health_checks.shared_memory,
        "home": lambda: health_checks.home(_home()),
        "disk": lambda: health_checks.disks(_home().path),
        "MLflow": lambda: health_checks.mlflow(_home()),
        "Ray": lambda: health_checks.ray(_home(), address),
    }
    return [finding for name, check in each.items() for finding in isolated(name, check)]


def _home() -> "Home":
    from study.home.folder import Home

    return Home.locate()


def document(findings: list[Finding]) -> dict[str, Any]:
    """Return all findings as plain values; `state` is the worst of theirs."""
    worst = max((STATES.index(finding.state) for finding in findings), default=0)
    told = [vars(finding) for finding in findings]
    return {"study": provenance.version_line(), "state": STATES[worst], "checks": told}


def text(document: dict[str, Any]) -> str:
    """Return that document as text for people."""
    lines = [f"study {document['study']}"]
    for check in document["checks"]:
        lines.append(f"{check['state']:<8} {check['name']:<16} {check['told']}")
        if check["remedy"]:
            lines.append(f"{'':<25} -> {check['remedy']}")
    counts = {state: sum(check["state"] == state for check in document["checks"]) for state in STATES if state != "ok"}
    summary = ", ".join(f"{count} {state}{'s' if count > 1 else ''}" for state, count in counts.items() if count)
    return "\n".join([*lines, "", summary or "all is well"])
