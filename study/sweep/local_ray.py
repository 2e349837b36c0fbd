"""Ray on this machine, for one study, quiet and private."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from study.errors import UserError
from study.spec.schema import Resources

ENVIRONMENT = {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # else the workers of `uv run` build an environment of their own first
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",  # a trial without GPU must see none
    "RAY_AIR_NEW_OUTPUT": "0",  # its banner is printed whatever the verbosity
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # the ledger is the log
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # stopping is the agenda's
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",  # a failed trial's traceback goes into the study's folder
    "TUNE_GLOBAL_CHECKPOINT_S": "3600",  # nobody reads Tune's snapshots
}

TRIES = 3
"""Ray gives a new node 30 seconds to show itself, which a busy machine may exceed."""


def check_machine(resources: Resources) -> None:
    """Refuse a trial that this machine could never place; Ray would wait for ever.

    Raises:
        UserError: says what a trial takes and what there is.
    """
    there = {"cpu": float(os.cpu_count() or 1), "gpu": float(torch.cuda.device_count())}
    for name, amount in (("cpu", resources.cpu), ("gpu", resources.gpu)):
        if amount > there[name]:
            key = f"resources.{name}"
            raise UserError(f"{key}: {amount:g} given, this machine has {there[name]:g}. Fewer: --set {key}=...")


@contextmanager
def local_ray() -> Iterator[None]:
    """Ray, started and stopped again; its workers inherit this process's environment.

    Raises:
        UserError: it cannot start.
    """
    os.environ.update({name: value for name, value in ENVIRONMENT.items() if name not in os.environ})
    import ray

    for name in ("ray", "ray.tune"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    for left in reversed(range(TRIES)):
        try:
            ray.init(
                address="local",
                include_dashboard=False,
                log_to_driver=False,
                configure_logging=False,
                namespace="study",
            )
            break
        except Exception as error:  # Ray raises what it likes, bare Exception too
            ray.shutdown()
            if not left:
                raise UserError(f"Ray cannot start on this machine: {error}") from None
    token = Path.home() / ".ray" / "auth_token"
    if token.exists():
        token.chmod(0o600)  # Ray leaves it readable by everyone
    try:
        yield
    finally:
        ray.shutdown()
