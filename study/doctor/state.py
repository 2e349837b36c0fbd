"""The home, its MLflow, the data sets and a Ray cluster."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace

from study import address as addresses
from study import data
from study.commands import data as data_commands
from study.doctor.machine import Finding, existing, isolated
from study.errors import UserError
from study.home.folder import FORMAT, Home, check_format
from study.tracking.connection import TIMEOUT, check_answers, load_mlflow, public

REMEDY = "studies run without it, and study resume adds what it missed; check MLFLOW_TRACKING_URI"
ANOTHER_HOME = "another home: STUDY_HOME=..."


def home(home: Home) -> Iterator[Finding]:
    """Yield whether studies can be written to the home, its format, and whether its studies can be read."""
    from study.home.record import StudyRecord

    if home.path.exists() and not home.path.is_dir():
        yield Finding("home", "problem", f"{home.path}: is not a folder", ANOTHER_HOME)
        return
    try:
        check_format(home.path)
        _check_writable(home)
    except UserError as error:
        yield Finding("home", "problem", str(error))
        return
    except OSError as error:
        yield Finding("home", "problem", f"{home.path}: cannot be written: {error.strerror}", ANOTHER_HOME)
        return
    if not home.path.exists():
        yield Finding("home", "ok", f"{home.path}: not there yet, the first study makes it")
        return
    studies = home.studies()
    yield Finding("home", "ok", f"{home.path}: writable, form {FORMAT}, {len(studies)} studies")
    for folder in studies:
        try:
            folder.checked_spec()
            StudyRecord.load(folder.ledger_file)
        except UserError as error:
            remedy = f"a backup of it, or study delete {folder.name} --yes" if "damaged" in str(error) else None
            yield Finding("study", "problem", f"{folder.name}: {error}", remedy)


def data_sets() -> Iterator[Finding]:
    """Yield how many data sets are on disk, of those that need no further options."""
    rows = [row for row in data_commands.overview() if row["there"] is not None]
    count = sum(row["there"] for row in rows)
    yield Finding("data sets", "ok", f"{count} of {len(rows)} in {data.root()}; study data list shows which")


def mlflow(home: Home) -> Iterator[Finding]:
    """Yield whether MLflow answers, and its version; passwords are not shown."""
    from study.tracking.connection import damage

    if home.owns_tracking and not home.database.exists():
        yield Finding("MLflow", "ok", f"{home.database}: not there yet, the first study makes it")
        return
    if home.owns_tracking and (why := damage(home.database)):
        remedy = "study resume of each study makes its runs again, and keeps the damaged file"
        yield Finding("MLflow", "problem", f"{home.database}: damaged: {why}", remedy)
        return
    if home.owns_tracking:
        yield from _answer(home)
        return
    load_mlflow()  # the time that it takes is not the server's
    for found in isolated("MLflow", lambda: _answer(home), TIMEOUT):
        where = public(home.tracking_uri)
        told = found.told if where in found.told else f"{where}: {found.told}"
        yield replace(found, told=told, remedy=REMEDY if found.state == "problem" else found.remedy)


def _answer(home: Home) -> Iterator[Finding]:
    try:
        yield Finding("MLflow", "ok", f"{check_answers(home)}: answers")
    except UserError as error:
        yield Finding("MLflow", "problem", str(error))


def ray(home: Home, address: str | None) -> Iterator[Finding]:
    """The token's file, and the cluster at the address, if there is one."""
    try:
        addresses.give_token()
        if address is None:
            message = "no address is given: trials run on this machine, in a Ray of their own"
            yield Finding("Ray", "ok", message)
        elif address.startswith(("http://", "https://")):
            yield _jobs(address)
        else:
            yield _cluster(address, home)
    except UserError as error:
        yield Finding(
            "Ray", "problem", str(error), None if address is None else "study cluster status, or ask its keeper"
        )


def _jobs(address: str) -> Finding:
    """A cluster that studies are submitted to."""
    from study.cluster.head import Head

    head = Head(address)
    resources, studies = head.resources(), {job.study for job in head.jobs()}
    message = f"{address}: answers, token accepted, {resources['nodes']} nodes, {len(studies)} studies"
    return (
        Finding("Ray", "ok", message) if resources["nodes"] else Finding("Ray", "problem", message, "it needs a node")
    )


def _cluster(address: str, home: Home) -> Finding:
    """A cluster whose network this machine is in."""
    from study.sweep.ray_runtime import cluster_resources

    resources = cluster_resources(address, home.path if home.path.exists() else None)
    sizes = f"{resources['nodes']} nodes, {resources['cpus']:g} CPUs, {resources['gpus']:g} GPUs"
    message = f"{address}: answers, token accepted, {sizes}"
    return Finding("Ray", "ok", f"{message}; all of them see {home.path}" if home.path.exists() else message)


def _check_writable(home: Home) -> None:
    """Write, lock and remove a file in the home, or where it would be made.

    Raises:
        OSError: that is not possible.
    """
    folder = existing(home.path)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(13, "no permission", str(folder))
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as file:
        file.write(b"well")
        os.fsync(file.fileno())
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
