"""Stopping a study that another process of this machine runs."""

import os
import signal
import time

from study.errors import UserError
from study.home import lease, ledger
from study.home.folder import Home

PATIENCE = 180.0
"""Seconds: MLflow may need two minutes of them."""


def stop(home: Home, name: str) -> str:
    """Have its driver stop in good order, as Ctrl-C does, and wait until it has. Says which process it was.

    Raises:
        UserError: there is no such study, it does not run, or not on this machine.
    """
    folder = home.find(name)
    if not ledger.is_open(folder.ledger_file):
        raise UserError(f"{name}: does not run. Its state: study status {name}")
    who = lease.holder(ledger.lease_file(folder.ledger_file))
    if who is None or who.machine != lease.machine():
        where = f"{who} runs it" if who else "another process runs it"
        raise UserError(f"{name}: {where}, not on this machine. As a job of a cluster: study stop {name} --address URL")
    os.kill(who.pid, signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while ledger.is_open(folder.ledger_file):
        if time.monotonic() > deadline:
            raise UserError(f"{name}: {who} has not stopped within {PATIENCE:.0f} s")
        time.sleep(0.2)
    return str(who)
