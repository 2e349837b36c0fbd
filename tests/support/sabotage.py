"""The `study` command with faults that really happen, told by the environment variable SABOTAGE as JSON.

`driver`: [owner, method, n, "before" or "after"]: the driver dies of SIGKILL at the n-th call of that method.
`trials`: what the process of a trial does in its first attempt once its second epoch was heard, or with `always` in
each attempt once its first was, before there is a checkpoint.
`slow`: seconds that each trial waits after each epoch, so that a study of short trials is still running when it is
looked at or killed.
Checkpoints are written after each epoch, however short it is.
"""

import importlib
import itertools
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from typing import Any

SABOTAGE = json.loads(os.environ["SABOTAGE"])


def dies_at(owner: str, method: str, count: int, when: str) -> None:
    """Make this process die of SIGKILL at that call; `owner` is a class, as `study.home.ledger.Ledger`."""
    module, _, name = owner.rpartition(".")
    target = getattr(importlib.import_module(module), name)
    plain, calls = getattr(target, method), itertools.count(1)

    def deadly(*given: Any, **named: Any) -> Any:
        now = next(calls) == count
        if now and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = plain(*given, **named)
        if now:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(target, method, deadly)


def happens(fault: str, trial: Any) -> None:
    """A fault, in the process of a trial."""
    import torch

    if fault in ("SIGKILL", "SIGSTOP"):
        os.kill(os.getpid(), getattr(signal, fault))
        time.sleep(1)  # SIGSTOP may reach another thread first: this one goes on for a moment
    elif fault == "exception":
        raise ValueError("on purpose")
    elif fault == "NaN":
        with torch.no_grad():
            for parameter in trial.method.parameters():
                parameter.fill_(float("nan"))
    elif fault == "memory":
        bytearray(2**55)
    elif fault == "GPU":
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
    elif fault == "greed":
        held = []
        while True:
            held.append(b"x" * 2**26)


def sabotaged(config: Mapping[str, Any], **given: Any) -> None:
    """What a worker runs instead of `run_job`."""
    from study.sweep import job_execution, worker
    from study.training.trial import Trial

    job, plain = config["job"], Trial.train_epochs
    fault = SABOTAGE.get("trials", {}).get(str(job.trial)) if job.kind == "train" else None

    def run(self: Trial, *arguments: Any) -> Iterator[dict[str, float]]:
        for count, metrics in enumerate(plain(self, *arguments), start=1):
            yield metrics
            time.sleep(SABOTAGE.get("slow", 0))
            always = str(fault).endswith("always")
            if fault and count == (1 if always else 2) and (always or job.n_earlier_starts == 0):
                happens(fault.removesuffix(" always"), self)

    job_execution.MIN_PAUSE_PER_WRITE_TIME = 0.0
    Trial.train_epochs = run  # type: ignore[method-assign]
    try:
        worker.run_job(config, **given)  # the plain one: only the driver's module was changed
    finally:
        Trial.train_epochs = plain  # type: ignore[method-assign]


if __name__ == "__main__":
    from study import cli
    from study.sweep import own_ray

    own_ray.run_job_in_ray_worker = sabotaged
    if "driver" in SABOTAGE:
        from study.driver import session

        # MLflow from the beginning: a study of seconds is over before it would be opened
        session.MAX_MLFLOW_START_DELAY_S = 0.0
        dies_at(*SABOTAGE["driver"])
    cli.main()
