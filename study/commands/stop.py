"""Stopping a study that another process on this machine runs."""

import signal
import time
from pathlib import Path

from study.errors import UserError
from study.home import lease, ledger
from study.home.folder import Home
from study.home.lease import Holder, NotThere, Process

PATIENCE = 180.0
"""Seconds: MLflow may need two minutes of them."""


def stop(home: Home, name: str) -> str:
    """Have its driver stop in an orderly way, as Ctrl-C does, and wait for it. Returns which process it was.

    Raises:
        UserError: there is no such study, it does not run on this machine, or what its lease tells of its driver is
            true of no process here: then nothing was stopped. Or it has not stopped in time.
    """
    folder = home.find(name)
    if not ledger.is_open(folder.ledger_file):
        raise UserError(f"{name}: is not running. Its state: study status {name}")
    file = ledger.lease_file(folder.ledger_file)
    holder = _holder(name, file)
    try:
        holder.process.send(signal.SIGTERM)
    except NotThere as problem:
        raise UserError(
            f"{name}: was not stopped: {file} says that {holder} runs it, and {problem}. Its state: study status {name}"
        ) from None
    except PermissionError:
        raise UserError(f"{name}: was not stopped: {holder} is another user's") from None
    deadline = time.monotonic() + PATIENCE
    while ledger.is_open(folder.ledger_file) and lease.holder(file) in (holder, None):
        if time.monotonic() > deadline:
            raise UserError(f"{name}: {holder} has not stopped within {PATIENCE:.0f} s")
        time.sleep(0.2)
    return str(holder)


def _holder(name: str, file: Path) -> Holder:
    """Return who runs a study, if it is a process that can be stopped from here."""
    holder = lease.holder(file)
    if holder is None:
        raise UserError(
            f"{name}: was not stopped: {file}, which says who runs it, is missing or damaged. Its driver writes it "
            f"anew within {lease.RENEWAL:.0f} s: try again"
        )
    if holder.machine != lease.machine():
        raise UserError(
            f"{name}: {holder} runs it, not on this machine. As a job of a cluster: study stop {name} --address URL"
        )
    if holder.namespace != Process.this().namespace:
        raise UserError(
            f"{name}: {holder} runs it in another container of this machine, whose processes have numbers of their "
            f"own. Stop it there: study stop {name}"
        )
    return holder
