"""Checks of this machine within a container's limits, of the home, its MLflow, the data sets and a Ray cluster."""

import fcntl
import os
import platform
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal, get_args

import psutil

from study import data
from study.data.source import data_roots
from study.errors import UserError
from study.home.folder import HOME_FORMAT_VERSION, Home, check_home_format
from study.home.provenance import RECORDED_LIBRARIES, command_output
from study.sweep.own_ray import MAX_RAY_FOLDER_CHARACTERS
from study.text import redact_credentials
from study.tracking.connection import connect_to_mlflow, find_database_damage, format_mlflow_error
from study.tracking.tracking_state import ARTIFACT_REQUEST_TIMEOUT_S
from study.training.gpu_errors import CUDA_TORCH_ADVICE, OLDER_CUDA_TORCH_ADVICE
from study.upstream import ray_token
from study.writable_folders import SHARED_MEMORY_FOLDER, check_shared_memory, ray_socket_folder, why_unwritable

CheckState = Literal["ok", "warning", "problem"]
CHECK_STATES: tuple[CheckState, ...] = get_args(CheckState)

CHECK_TIMEOUT_S = 60.0
"""Seconds after which a check is given up."""


@dataclass(frozen=True)
class Finding:
    """Result of a check: one line of the doctor's output.

    Attributes:
        name: of what was checked.
        state: `warning`: it works, but not well; `problem`: something will not work.
        told: what was found.
        remedy: what to do about it, None if there is nothing to do.
    """

    name: str
    state: CheckState
    told: str
    remedy: str | None = None


def run_isolated_check(
    name: str, run_check: Callable[[], Iterable[Finding]], timeout_s: float = CHECK_TIMEOUT_S
) -> list[Finding]:
    """Return the findings of a check; if it raises or does not end in time, that is a finding, too.

    Args:
        timeout_s: in seconds. A check that is given up goes on in its thread until the process ends.
    """
    findings: list[Finding] = []

    def work() -> None:
        try:
            findings.extend(run_check())
        except Exception as error:  # whatever a broken library raises
            message = " ".join(f"{type(error).__name__}: {error}".split())[:500]
            findings.append(Finding(name, "problem", message, "if the message does not help, report it as a bug"))

    thread = threading.Thread(target=work, name=f"check {name}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        return [*findings, Finding(name, "problem", f"no answer within {timeout_s:.0f} s")]
    return findings


INSTALL_REMEDY = "uv sync, or pip install --upgrade with the versions of this project's pyproject.toml"


def python_findings() -> Iterator[Finding]:
    """Yield version, interpreter and platform, and whether Ray can be loaded in it."""
    told = f"{platform.python_version()} ({sys.executable}) on {platform.platform()}"
    if sys.flags.optimize > 1:
        yield Finding("python", "problem", f"{told}, by -OO", "without -OO and PYTHONOPTIMIZE=2: Ray cannot be loaded")
    else:
        yield Finding("python", "ok", told)


def library_findings() -> Iterator[Finding]:
    """Yield the versions of the main libraries, and which are missing; `pip check` tells whether they fit."""
    found = {name: _installed_version(name) for name in RECORDED_LIBRARIES}
    told = ", ".join(f"{name} {version or 'missing'}" for name, version in found.items())
    are_there = all(found.values())
    yield Finding("libraries", "ok" if are_there else "problem", told, None if are_there else INSTALL_REMEDY)


def torch_findings() -> Iterator[Finding]:
    """Yield what torch was built for; `gpu_findings` checks whether that fits the GPUs."""
    try:
        import torch
    except (ImportError, OSError) as error:
        message = f"cannot be imported: {' '.join(str(error).split())[:300]}"
        yield Finding("torch", "problem", message, f"nothing runs without it: {INSTALL_REMEDY}")
        return
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
    is_cpu_only = not torch.version.cuda and not torch.version.hip
    yield Finding("torch", "ok", f"{torch.__version__}, built for {'the CPU alone' if is_cpu_only else built}")


def torchvision_findings() -> Iterator[Finding]:
    """Yield whether torchvision's own operators work: they fail if it was built for another torch."""
    import torch

    try:
        import torchvision

        torchvision.ops.nms(torch.zeros(0, 4), torch.zeros(0), 0.5)
    except (ImportError, RuntimeError, AttributeError) as error:
        message = f"does not fit this torch: {' '.join(str(error).split())[:200]}"
        yield Finding("torchvision", "problem", message, "install the two together, from one index: " + INSTALL_REMEDY)
        return
    yield Finding("torchvision", "ok", str(torchvision.__version__))


def _installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


GIB = 2**30
LOW_MEMORY_BYTES = 4 * GIB
"""Bytes below which Ray, MLflow and two small trials hardly fit."""

LOW_SHARED_MEMORY_BYTES = GIB
LOW_DISK_BYTES, FULL_DISK_BYTES = 5 * GIB, GIB // 2
MAX_RAY_DISK_SHARE = 0.95
"""Used share of a disk above which Ray no longer stores objects on it."""


def cpu_findings() -> Iterator[Finding]:
    """Yield how many CPUs this machine has and on how many Ray would place trials: a container may have fewer."""
    from study.upstream.cgroup import count_usable_processors

    count, placed = os.cpu_count() or 1, count_usable_processors()
    message = f"{count}, and trials may use {placed}"
    if placed < count:
        remedy = f"resources.cpu above {placed} never fits here: give the container more CPUs, or lower train.threads"
        yield Finding("CPUs", "warning", message, remedy)
    else:
        yield Finding("CPUs", "ok", f"{count}, all of them for trials")


def memory_findings() -> Iterator[Finding]:
    """Yield total and free memory, within the container's limit."""
    from study.driver.head_memory import free_machine_memory
    from study.upstream.cgroup import memory_limit_bytes

    has, free = psutil.virtual_memory().total, free_machine_memory()
    total = min(has, memory_limit_bytes() or has)
    limited = f" (the container's limit; the machine has {has / GIB:.1f} GiB)" if total < has else ""
    message = f"{total / GIB:.1f} GiB, {free / GIB:.1f} GiB of it free{limited}"
    if min(total, free) < LOW_MEMORY_BYTES:
        remedy = "fewer trials at once: search.concurrency, resources.cpu; or a smaller train.batch_size"
        yield Finding("memory", "warning", message, remedy)
    else:
        yield Finding("memory", "ok", message)


def shared_memory_findings() -> Iterator[Finding]:
    """Yield the room in the shared memory, where Ray keeps one copy of the data for all trials; a disk is slow."""
    try:
        check_shared_memory()
    except UserError as error:
        yield Finding("shared memory", "problem", str(error))
        return
    if not os.path.isdir(SHARED_MEMORY_FOLDER):
        message = f"this system has no {SHARED_MEMORY_FOLDER}; Ray uses the temporary folder"
        yield Finding("shared memory", "ok", message)
        return
    usage = shutil.disk_usage(SHARED_MEMORY_FOLDER)
    message = f"{SHARED_MEMORY_FOLDER}: {usage.free / GIB:.1f} of {usage.total / GIB:.1f} GiB free"
    if usage.free < LOW_SHARED_MEMORY_BYTES:
        remedy = "in a container: --shm-size=2g or more; otherwise remove files from it"
        yield Finding("shared memory", "warning", message, remedy)
    else:
        yield Finding("shared memory", "ok", message)


def disk_findings(home: Path) -> Iterator[Finding]:
    """Yield the room for studies, data sets and Ray's temporary files, and whether the last two can be written."""
    yield disk_finding("disk, home", home, "another home: STUDY_HOME=..., or study delete NAME")
    another = "another folder: STUDY_DATA=..."
    reasons = {place: why_unwritable(place) for place in data_roots()}
    if all(reasons.values()):
        told = "; ".join(f"{place}: {why}" for place, why in reasons.items())
        yield Finding("disk, data", "problem", f"no folder for data can be written ({told})", another)
    else:
        yield disk_finding("disk, data", data.data_root(), another)
    try:
        place = Path(ray_socket_folder(MAX_RAY_FOLDER_CHARACTERS))
    except UserError as error:
        yield Finding("disk, temporary", "problem", str(error))
    else:
        yield disk_finding("disk, temporary", place, "another folder: TMPDIR=..., or remove old files")


def disk_finding(name: str, path: Path, remedy: str) -> Finding:
    """Return the room on the disk of a folder, which may not exist yet."""
    usage = shutil.disk_usage(nearest_existing_folder(path))
    message = f"{path}: {usage.free / GIB:.1f} of {usage.total / GIB:.1f} GiB free"
    if usage.free < FULL_DISK_BYTES:
        return Finding(name, "problem", message, remedy)
    if usage.free < LOW_DISK_BYTES or usage.free < (1 - MAX_RAY_DISK_SHARE) * usage.total:
        return Finding(name, "warning", message, remedy)
    return Finding(name, "ok", message)


def nearest_existing_folder(path: Path) -> Path:
    """Return a folder, or its nearest parent that exists."""
    return next(folder for folder in (path, *path.parents) if os.path.isdir(folder))


@dataclass(frozen=True)
class GpuReport:
    """Answers of driver, torch and Ray to which GPUs there are.

    Attributes:
        driver_gpus: name, driver version and memory of each GPU that the NVIDIA driver knows.
        max_cuda_version: the newest CUDA version that the driver supports, as `12.4`; None if it does not say.
        torch_cuda_version: the CUDA (or ROCm) version that torch was built for, None for the CPU alone.
        torch_gpus: name of each GPU that torch can use.
        unsupported_gpus: names of those among them that torch has no code for.
        torch_failure: torch's reason for using none and the remedy, empty if it gives none.
        min_driver_branch: the oldest branch of the driver that torch runs with, as 580; None: not known.
        torch_architectures: the architectures that torch has code for, as `sm_75`.
        hiding_variable: the variable that hides GPUs from processes, with its value, None if none does.
    """

    driver_gpus: tuple[str, ...] = ()
    max_cuda_version: str | None = None
    torch_cuda_version: str | None = None
    torch_gpus: tuple[str, ...] = ()
    unsupported_gpus: tuple[str, ...] = ()
    torch_failure: str = ""
    hiding_variable: str | None = None
    min_driver_branch: int | None = None
    torch_architectures: tuple[str, ...] = ()


def gpu_findings() -> Iterator[Finding]:
    """Ask driver, torch and Ray, and compare."""
    yield from judge_gpu_report(observe_gpus())


def judge_gpu_report(observed: GpuReport) -> Iterator[Finding]:
    """Yield the findings that follow from the answers."""
    cards = "; ".join(observed.driver_gpus)
    torch_cuda, driver_cuda, branch = observed.torch_cuda_version, observed.max_cuda_version, observed.min_driver_branch
    if observed.unsupported_gpus:
        message = f"this torch (CUDA {torch_cuda}) has no code for {', '.join(observed.unsupported_gpus)}"
        message += f"; it has for {', '.join(observed.torch_architectures)}"
        yield Finding("GPUs", "problem", message, f"another card, or {OLDER_CUDA_TORCH_ADVICE}")
    elif observed.torch_gpus:
        names = "; ".join(observed.driver_gpus or observed.torch_gpus)
        yield Finding("GPUs", "ok", f"torch sees {len(observed.torch_gpus)}: {names}")
    elif not observed.driver_gpus:
        message = f"no driver knows one; trials run on the CPU{_torch_requirements_sentence(observed)}"
        yield Finding("GPUs", "ok", message)
    elif observed.hiding_variable:
        message = f"{cards}, hidden from torch: {observed.hiding_variable}"
        yield Finding("GPUs", "warning", message, "unset that variable")
    elif torch_cuda is None:
        message = f"{cards}, which torch cannot use: it was built for the CPU alone"
        yield Finding("GPUs", "warning", message, CUDA_TORCH_ADVICE)
    elif driver_cuda and _parse_version(torch_cuda) > _parse_version(driver_cuda):
        message = f"{cards}; its driver supports CUDA up to {driver_cuda}, torch was built for {torch_cuda}"
        newer = f"a driver of R{branch} or newer" if branch else "a newer driver"
        remedy = f"{newer}, or one built for CUDA {driver_cuda} of {CUDA_TORCH_ADVICE}"
        yield Finding("GPUs", "problem", message, remedy)
    else:
        why, _, remedy = observed.torch_failure.partition(". Remedy: ")
        message = f"{cards}, which torch (CUDA {torch_cuda}) cannot use: {why or 'it gives no reason'}"
        usual = "check that nvidia-smi works; in a container, that it was given the GPUs"
        yield Finding("GPUs", "problem", message, remedy or usual)


def observe_gpus() -> GpuReport:
    """Ask driver and torch which GPUs this machine has."""
    import torch

    from study.training import device

    query = "--query-gpu=name,driver_version,memory.total"
    driver_lines = command_output("nvidia-smi", query, "--format=csv,noheader") or ""
    cuda_version = re.search(r"CUDA (?:UMD )?Version: *(\d+\.\d+)", command_output("nvidia-smi") or "")
    why, name = device.why_no_gpu() or "", "CUDA_VISIBLE_DEVICES"
    usable, cards = not why, driver_lines.splitlines()
    if not cards and (count := torch.cuda.device_count()):  # in a container without nvidia-smi
        cards = [f"{count} with driver {device.nvidia_driver_version() or 'unknown'}"]
    indices = range(torch.cuda.device_count()) if usable else ()
    return GpuReport(
        tuple(cards),
        cuda_version[1] if cuda_version else None,
        torch.version.cuda or torch.version.hip,
        tuple(map(device.gpu_name, indices)),
        tuple(device.gpu_name(index) for index in indices if not device.has_gpu_code_for(index)),
        why,
        f"{name}={os.environ[name]}" if os.environ.get(name, "0") in ("", "-1", "NoDevFiles") else None,
        device.min_nvidia_driver_version(),
        device.built_gpu_architectures(),
    )


def _torch_requirements_sentence(observed: GpuReport) -> str:
    """Return which driver and cards this torch would run with, as a sentence."""
    if not observed.min_driver_branch or not observed.torch_architectures:
        return ""
    needs = f"This torch (CUDA {observed.torch_cuda_version}) needs a driver of R{observed.min_driver_branch} or newer"
    return f". {needs} and has code for {', '.join(observed.torch_architectures)}"


def _parse_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2])


MLFLOW_REMEDY = "studies run without it, and study resume adds what it missed; check MLFLOW_TRACKING_URI"
ANOTHER_HOME_REMEDY = "another home: STUDY_HOME=..."


def home_findings(home: Home) -> Iterator[Finding]:
    """Yield whether studies can be written to the home, its format, and whether its studies can be read."""
    from study.home.record import StudyRecord

    if home.path.exists() and not home.path.is_dir():
        yield Finding("home", "problem", f"{home.path}: is not a folder", ANOTHER_HOME_REMEDY)
        return
    try:
        check_home_format(home.path)
        home.check_writable()
        _check_home_writable(home)
    except UserError as error:
        yield Finding("home", "problem", str(error))
        return
    except OSError as error:
        yield Finding("home", "problem", f"{home.path}: cannot be written: {error.strerror}", ANOTHER_HOME_REMEDY)
        return
    if not home.path.exists():
        yield Finding("home", "ok", f"{home.path}: not there yet, the first study makes it")
        return
    studies = home.list_studies()
    yield Finding("home", "ok", f"{home.path}: writable, form {HOME_FORMAT_VERSION}, {len(studies)} studies")
    for folder in studies:
        try:
            folder.load_checked_spec()
            StudyRecord.load(folder.ledger_file)
        except UserError as error:
            remedy = f"a backup of it, or study delete {folder.name} --yes" if "damaged" in str(error) else None
            yield Finding("study", "problem", f"{folder.name}: {error}", remedy)


def mlflow_findings(home: Home) -> Iterator[Finding]:
    """Yield whether MLflow answers; passwords are not shown."""
    if home.uses_own_mlflow and not home.database_file.exists():
        yield Finding("MLflow", "ok", f"{home.database_file}: not there yet, the first study makes it")
        return
    if home.uses_own_mlflow and (why := find_database_damage(home.database_file)):
        remedy = "study resume of each study makes its runs again, and keeps the damaged file"
        yield Finding("MLflow", "problem", f"{home.database_file}: damaged: {why}", remedy)
        return
    where = str(home.database_file) if home.uses_own_mlflow else redact_credentials(home.tracking_uri)
    try:
        connect_to_mlflow(home.tracking_uri, ARTIFACT_REQUEST_TIMEOUT_S)
    except Exception as error:  # whatever MLflow, its database or the network raise
        why = format_mlflow_error(error, home.tracking_uri)
        told = why if where in why else f"{where}: {why}"
        yield Finding("MLflow", "problem", told, None if home.uses_own_mlflow else MLFLOW_REMEDY)
    else:
        yield Finding("MLflow", "ok", f"{where}: answers")


def ray_findings(home: Home, address: str | None) -> Iterator[Finding]:
    """Yield whether the token's file can be read, and what the cluster at the address answers, if there is one."""
    try:
        ray_token.pass_token_to_ray()
        if address is None:
            message = "no address is given: trials run on this machine, in a Ray of their own"
            yield Finding("Ray", "ok", message)
        elif address.startswith(("http://", "https://")):
            yield _check_job_server(address)
        else:
            yield _check_cluster(address, home)
    except UserError as error:
        remedy = None if address is None else "study cluster status, or ask its keeper"
        yield Finding("Ray", "problem", str(error), remedy)


def _check_job_server(address: str) -> Finding:
    """Check a cluster that studies are submitted to."""
    from study.cluster.dashboard import ClusterDashboard

    head = ClusterDashboard(address)
    resources, studies = head.nodes_and_resources(), {job.study for job in head.driver_jobs()}
    message = f"{address}: answers, token accepted, {resources['nodes']} nodes, {len(studies)} studies"
    if not resources["nodes"]:
        return Finding("Ray", "problem", message, "it needs a node")
    return Finding("Ray", "ok", message)


def _check_cluster(address: str, home: Home) -> Finding:
    """Check a cluster whose network this machine is in."""
    from study.sweep.ray_runtime import cluster_resources

    resources = cluster_resources(address, home.path if home.path.exists() else None)
    sizes = f"{resources['nodes']} nodes, {resources['cpus']:g} CPUs, {resources['gpus']:g} GPUs"
    message = f"{address}: answers, token accepted, {sizes}"
    return Finding("Ray", "ok", f"{message}; all of them see {home.path}" if home.path.exists() else message)


def _check_home_writable(home: Home) -> None:
    """Write, lock and remove a file in the home, or where it would be made.

    Raises:
        OSError: that is not possible.
    """
    folder = nearest_existing_folder(home.path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, "no permission", str(folder))
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file:
        file.write(b"well")
        os.fsync(file.fileno())
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
