"""Stopping a study that another process on this machine runs."""

import os
import signal
import time

from study.errors import UserError
from study.home import lease, ledger
from study.home.folder import Home

PATIENCE = 180.0
"""Seconds: MLflow may need two minutes of them."""


def stop(home: Home, name: str) -> str:
    """Have its driver stop in an orderly way, as Ctrl-C does, and wait for it. Returns which process it was.

    Raises:
        UserError: there is no such study, or it does not run on this machine.
    """
    folder = home.find(name)
    if not ledger.is_open(folder.ledger_file):
        raise UserError(f"{name}: is not running. Its state: study status {name}")
    holder = lease.holder(ledger.lease_file(folder.ledger_file))
    if holder is None or holder.machine != lease.machine():
        where = f"{holder} runs it" if holder else "another process runs it"
        raise UserError(f"{name}: {where}, not on this machine. As a job of a cluster: study stop {name} --address URL")
    os.kill(holder.pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while ledger.is_open(folder.ledger_file):
        if time.monotonic() > deadline:
            raise UserError(f"{name}: {holder} has not stopped within {PATIENCE:.0f} s")
        time.sleep(0.2)
    return str(holder)
