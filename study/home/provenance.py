"""The provenance of a result: code, libraries, machine, and owner."""

import getpass
import os
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple, NotRequired, TypedDict

from study import __version__
from study.catalogue import plugin_distributions
from study.home.record import StudyRecord

DEVICE_KEY_LABELS = {"driver": "driver", "cuda": "CUDA", "rocm": "ROCm", "capability": "compute capability"}


class CheckoutCommit(TypedDict, total=False):
    """Commit of a checkout, and whether files have changed since."""

    commit: str
    dirty: bool


class Provenance(CheckoutCommit):
    """What `collect_provenance` returns."""

    version: str
    python: str
    libraries: dict[str, str]
    node: str
    gpus: NotRequired[list[str]]


class DeviceTrialCount(NamedTuple):
    """A device, what is known of it (as of `training.device.describe_device`), and how many trials ran on one last."""

    facts: Mapping[str, str]
    trials: int


def used_devices(record: StudyRecord) -> list[DeviceTrialCount]:
    """Return the kinds of device that trials ran on, in the order of their first use.

    A trial counts where it ran last; one whose device is not known does not count.
    """
    counts: dict[tuple[tuple[str, str], ...], int] = {}
    for trial in list(record.trials.values()):
        if trial.device:
            key = tuple(trial.device.items())
            counts[key] = counts.get(key, 0) + 1
    return [DeviceTrialCount(dict(key), count) for key, count in counts.items()]


def device_text(facts: Mapping[str, str]) -> str:
    """Return a device as one phrase: `NVIDIA H100 80GB HBM3 (driver 580.65.06, CUDA 13.2, compute capability 9.0)`."""
    if facts["name"] == "cpu":
        return "CPU"
    known = ", ".join(f"{word} {facts[key]}" for key, word in DEVICE_KEY_LABELS.items() if key in facts)
    return f"{facts['name']} ({known})" if known else facts["name"]


RECORDED_LIBRARIES = ("ray", "optuna", "mlflow", "torch", "numpy", "scikit-learn")


@cache
def collect_provenance() -> Provenance:
    """Return versions of this package (commit, `dirty` if changed since), Python and libraries, and the machine.

    Libraries include the distributions that bring data sets, networks or methods of their own.
    """
    # asking CUDA would take GPU memory
    gpus = command_output("nvidia-smi", "--query-gpu=name", "--format=csv,noheader")
    found: Provenance = {
        "version": __version__,
        **_checkout_commit(Path(__file__).parents[1]),
        "python": platform.python_version(),
        "libraries": {name: version(name) for name in RECORDED_LIBRARIES} | plugin_distributions(),
        "node": platform.node(),
    }
    if gpus:
        found["gpus"] = gpus.splitlines()
    return found


def version_line() -> str:
    """Return the version of this package, and a checkout's commit: `0.1.0 (commit 0123456789ab, changed since)`."""
    git = _checkout_commit(Path(__file__).parents[1])
    changed = ", changed since" if git.get("dirty") else ""
    return f"{__version__} (commit {git['commit'][:12]}{changed})" if git else __version__


def study_owner() -> str:
    """Return the owner of a study that begins now: `STUDY_OWNER`, else the login name, else the user's number."""
    if name := os.environ.get("STUDY_OWNER", "").strip():
        return name
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user without a name: one or the other, by Python's version
        return f"uid {os.getuid()}"


def _checkout_commit(folder: Path) -> CheckoutCommit:
    """Return the commit of the checkout that holds the package; nothing for an installed one."""
    commit = command_output("git", "-C", str(folder), "rev-parse", "HEAD")
    tracked = command_output("git", "-C", str(folder), "ls-files", "--error-unmatch", str(folder / "__init__.py"))
    if not commit or not tracked:
        return {}
    return {
        "commit": commit,
        "dirty": bool(command_output("git", "-C", str(folder), "status", "--porcelain", "--", ".")),
    }


def command_output(*command: str) -> str | None:
    """Return what a command prints, None if it fails or takes more than 10 s."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
