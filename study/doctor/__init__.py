"""What `study doctor` does: gather what a bug report needs, and find what usually goes wrong, with remedies.

A library that may be broken, such as torch, is imported only by the check of it.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from study.doctor import health_checks
from study.doctor.health_checks import CHECK_STATES, Finding, run_isolated_check
from study.home import provenance

if TYPE_CHECKING:
    from study.home.folder import Home

__all__ = ["findings_document", "findings_text", "run_checks"]


def run_checks(address: str | None = None) -> list[Finding]:
    """Check everything; a check that fails or hangs is a problem of its own and does not stop the others.

    Args:
        address: of a Ray cluster to check as well: its dashboard, `auto` or HOST:PORT.
    """
    each: dict[str, Callable[[], Iterable[Finding]]] = {
        "python": health_checks.python_findings,
        "libraries": health_checks.library_findings,
        "torch": health_checks.torch_findings,
        "torchvision": health_checks.torchvision_findings,
        "GPUs": health_checks.gpu_findings,
        "CPUs": health_checks.cpu_findings,
        "memory": health_checks.memory_findings,
        "shared memory": health_checks.shared_memory_findings,
        "home": lambda: health_checks.home_findings(_find_home()),
        "disk": lambda: health_checks.disk_findings(_find_home().path),
        "MLflow": lambda: health_checks.mlflow_findings(_find_home()),
        "Ray": lambda: health_checks.ray_findings(_find_home(), address),
    }
    return [finding for name, check in each.items() for finding in run_isolated_check(name, check)]


def _find_home() -> "Home":
    from study.home.folder import Home

    return Home.locate()


def findings_document(findings: list[Finding]) -> dict[str, Any]:
    """Return all findings as plain values; `state` is the worst of theirs."""
    worst = max((CHECK_STATES.index(finding.state) for finding in findings), default=0)
    told = [vars(finding) for finding in findings]
    return {"study": provenance.version_line(), "state": CHECK_STATES[worst], "checks": told}


def findings_text(document: dict[str, Any]) -> str:
    """Return that document as text for people."""
    lines = [f"study {document['study']}"]
    for check in document["checks"]:
        lines.append(f"{check['state']:<8} {check['name']:<16} {check['told']}")
        if check["remedy"]:
            lines.append(f"{'':<25} -> {check['remedy']}")
    counts = {
        state: sum(check["state"] == state for check in document["checks"]) for state in CHECK_STATES if state != "ok"
    }
    summary = ", ".join(f"{count} {state}{'s' if count > 1 else ''}" for state, count in counts.items() if count)
    return "\n".join([*lines, "", summary or "all is well"])
