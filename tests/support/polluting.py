"""A training function that leaves something behind in its process, or tells what it finds there."""

import json
import logging
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

Yields = Iterator[dict[str, float]]
HELD: list[int] = []


def _default_dtype() -> None:
    torch.set_default_dtype(torch.float64)


def _deterministic() -> None:
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = True


def _threads() -> None:
    torch.set_num_threads(3)
    threading.Thread(target=time.sleep, args=(1000,), name="left behind").start()


def _environ() -> None:
    os.environ["OF_A_TRIAL"] = "1"
    os.environ.pop("PATH", None)


def _folder() -> None:
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)


def _umask() -> None:
    os.umask(0o777)


def _path() -> None:
    sys.path.insert(0, "/of/a/trial")
    del sys.modules["json"]


def _logging() -> None:
    logging.disable(logging.CRITICAL)
    logging.getLogger().handlers.append(logging.NullHandler())


def _output() -> None:
    sys.stdout.close()
    os.close(2)


def _random() -> None:
    np.random.seed(1)
    np.seterr(all="raise")
    torch.manual_seed(1)
    random.seed(1)


def _signals() -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
    signal.alarm(1)


def _modules() -> None:
    HELD.append(1)
    functional.relu = functional.gelu  # type: ignore[assignment]


def _warnings() -> None:
    warnings.simplefilter("error")
    sys.setrecursionlimit(100)


def _limits() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
    torch.autograd.set_grad_enabled(False)


def _processes() -> None:
    import subprocess

    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    Path(os.environ["LEFT"]).write_text(str(left.pid))


WAYS = {name.removeprefix("_"): way for name, way in list(globals().items()) if name.startswith("_") and callable(way)}


def train(config: dict[str, Any]) -> Yields:
    """Leaves behind what it is told to, or tells what it finds: one function, as that of a study is."""
    yield from _pollutes(config["way"]) if "way" in config else _finds(config["file"])


def _pollutes(way: str) -> Yields:
    yield {"val/accuracy": 0.0}
    WAYS[way]()
    yield {"val/accuracy": 0.0}


def _finds(file: str) -> Yields:
    """Writes what it finds into a file, and whether its processes can have some of their own."""
    new = Path(tempfile.mkdtemp()) / "new"
    new.touch()
    print("printed")
    loader: Any = torch.utils.data.DataLoader(list(range(4)), num_workers=1)  # type: ignore[arg-type]
    found = {
        "dtype": str(torch.get_default_dtype()),
        "deterministic": [torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark],
        "threads": [torch.get_num_threads(), [thread.name for thread in threading.enumerate()]],
        "environ": {name: value for name, value in os.environ.items() if not name.startswith("MLFLOW")},
        "folder": os.getcwd(),
        "mode": oct(new.stat().st_mode),
        "path": sys.path,
        "json": sys.modules["json"] is json,
        "logging": [logging.root.manager.disable, len(logging.getLogger().handlers)],
        "random": [random.random(), float(np.random.rand()), float(torch.rand(())), np.geterr()],
        "signals": [str(signal.getsignal(number)) for number in (signal.SIGINT, signal.SIGCHLD)] + [signal.alarm(0)],
        "modules": [HELD, functional.relu.__name__],
        "warnings": [warnings.filters[0][:2], sys.getrecursionlimit(), torch.is_grad_enabled()],
        "loaded": [int(batch) for batch in loader],
    }
    Path(file).write_text(json.dumps(found, default=str))
    yield {"val/accuracy": 0.5}
    yield {"val/accuracy": 0.5}
