"""A process for each trial of a training function: nothing of one trial is there for the next, whatever it did."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import polluting
import psutil
import pytest
from course import payload

from study.sweep import fresh_process
from study.sweep.failures import TrialFailedError
from study.sweep.fresh_process import run_job_in_fresh_process
from study.sweep.host_memory import MemoryLimit
from study.sweep.job_payload import JobPayload, JobReport, MetricsReport, StartReport
from study.training.config import TrainOptions, TrialConfig
from study.upstream.scratch import TRIAL_FOLDER_PREFIX

HERE = str(Path(polluting.__file__).parent)


class Heard:
    """Keeps what it is told; `stop`: behind this epoch the trial is stopped, as Ray Tune does it."""

    def __init__(self, stop: int = 0) -> None:
        self.epochs: list[dict[str, float]] = []
        self.started: tuple[int, str | None] | None = None
        self.why = ""
        self._stop = stop

    def __call__(self, report: JobReport) -> None:
        if isinstance(report, StartReport):
            self.started = report.last_done_epoch, report.checkpoint_problem
        elif isinstance(report, MetricsReport):
            self.epochs.append({name: value for name, value in report.metrics.items() if name[:4] == "val/"})
            if report.epoch == self._stop:
                sys.exit(0)
        elif report.kind != "predicted":
            self.why = report.text


@pytest.fixture(autouse=True, scope="module")
def _servers_end() -> Iterator[None]:
    yield
    for server in fresh_process._fork_servers.values():
        server.close_server()
    fresh_process._fork_servers.clear()


class Functions:
    """Runs functions of a module in a folder."""

    def __init__(self, folder: Path, where: str, module: str) -> None:
        self.folder, self.where, self.module = folder, where, module
        self.output = folder / "output" / "trial.txt"

    def job(self, name: str, epochs: int = 2, **config: Any) -> JobPayload:
        method = {"name": "own_function", "function": f"{self.module}:{name}", **config}
        document = TrialConfig({"name": "none"}, {"name": "none"}, method, TrainOptions(epochs=epochs)).to_document()
        return payload(
            sections_json=json.dumps(document),
            function=self.where,
            required_metrics=("val/accuracy",),
            checkpoint_file=self.folder / "trial.pt",
            in_fresh_process=True,
            output_file=self.output,
            mlflow_folder=self.folder / "own_runs",
        )

    def run(self, name: str, epochs: int = 2, stop: int = 0, **config: Any) -> Heard:
        heard = Heard(stop)
        try:
            run_job_in_fresh_process(self.job(name, epochs, **config), heard)
        except SystemExit:
            assert stop
        return heard

    def fails(self, name: str, **config: Any) -> TrialFailedError:
        with pytest.raises(TrialFailedError) as told:
            self.run(name, **config)
        return told.value


@pytest.fixture
def functions(tmp_path: Path) -> Any:
    """Makes `Functions` of a module's text."""

    def made(text: str) -> Functions:
        module = f"mine_{abs(hash(text))}"
        (tmp_path / f"{module}.py").write_text(textwrap.dedent(text))
        return Functions(tmp_path, str(tmp_path), module)

    return made


@pytest.fixture(scope="module")
def polluted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Functions, dict[str, Any]]]:
    """Functions that pollute, and what a trial finds before any of them has run."""
    mine = Functions(tmp_path_factory.mktemp("polluted"), HERE, "polluting")
    os.environ["LEFT"] = str(mine.folder / "left")
    mine.run("train", file=str(mine.folder / "before"))
    yield mine, json.loads((mine.folder / "before").read_text())
    del os.environ["LEFT"]


FEW = ("default_dtype", "environ", "folder", "random")
"""The ways that are tried with the fast tests; the others take some seconds each, too."""


@pytest.mark.parametrize(
    "way", [way if way in FEW else pytest.param(way, marks=pytest.mark.slow) for way in polluting.WAYS]
)
def test_a_trial_finds_nothing_of_the_one_before(way: str, polluted: tuple[Functions, dict[str, Any]]) -> None:
    mine, before = polluted
    server = dict(fresh_process._fork_servers)
    assert len(mine.run("train", way=way).epochs) == 2
    mine.run("train", file=str(found := mine.folder / f"{way}.json"))
    assert json.loads(found.read_text()).items() == before.items()
    assert before["loaded"] == [0, 1, 2, 3]
    assert fresh_process._fork_servers == server  # one for all
    if way == "processes":
        assert _is_gone(int((mine.folder / "left").read_text()))
    assert not _left()


def _left() -> list[psutil.Process]:
    """What the servers have started and not ended."""
    servers = [psutil.Process(server._process.pid) for server in fresh_process._fork_servers.values()]
    return [process for server in servers for process in server.children(recursive=True)]


def _is_gone(number: int) -> bool:
    """Return whether a process has ended; nobody need have asked how."""
    try:
        return psutil.Process(number).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


TELLS = """
import os, sys, time

class Odd(Exception):
    def __init__(self, what, where):
        super().__init__(f"odd {what} in {where}")
        self.handle = open(os.devnull)

class Mute(Exception):
    def __str__(self):
        raise SystemExit(3)

class Sly(Exception):
    sqlite_errorcode = "x"
    def __eq__(self, other):
        raise KeyError
    @property
    def cause(self):
        raise RuntimeError

def fails(config):
    print("before", "\\udcfc")
    yield {"val/accuracy": 0.5}
    how = config["how"]
    if how == "surrogate": raise ValueError("cannot read f\\udcfcr.jpg, \\ud800")
    if how == "nul": raise ValueError("a\\0b")
    if how == "long": raise ValueError("x" * 10**7)
    if how == "arguments": raise ValueError(b"f\\xfc", object, 3)
    if how == "odd": raise Odd("value", "row 3")
    if how == "mute": raise Mute()
    if how == "sly": raise Sly("said")
    if how == "interrupt": raise KeyboardInterrupt
    if how == "sys.exit": sys.exit(3)
    if how == "os._exit": os._exit(3)
    if how == "SIGKILL": os.kill(os.getpid(), 9)
    if how == "SIGSEGV": os.kill(os.getpid(), 11)
    if how == "metric": yield {"val/accuracy": 1.0, "val/\\udcfc": 1}
    if how == "object": yield {"val/accuracy": open(os.devnull)}
"""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Functions]:
    """Makes `Functions` of a text, once for each: the process that forks for them takes seconds to start."""

    @cache
    def made(text: str) -> Functions:
        folder = tmp_path_factory.mktemp("shared")
        (folder / "mine_shared.py").write_text(text)
        return Functions(folder, str(folder), "mine_shared")

    return made


@pytest.mark.parametrize(
    ("how", "kind", "reason"),
    [
        ("surrogate", "BUG", r"ValueError: cannot read f\xfcr.jpg, \ud800"),
        ("nul", "BUG", r"ValueError: a\x00b"),
        ("long", "BUG", "ValueError: xxxx"),
        ("arguments", "BUG", "ValueError: (b'f\\xfc', <class 'object'>, 3)"),
        ("odd", "BUG", "Odd: odd value in row 3"),
        ("mute", "BUG", "Mute: its message cannot be had (SystemExit)"),
        ("sly", "BUG", "Sly: said"),
        ("interrupt", "BUG", "KeyboardInterrupt"),
        ("sys.exit", "BUG", "raised SystemExit(3) in epoch 2"),
        ("os._exit", "BUG", "the function ended its process, with status 3"),
        ("SIGKILL", "PREEMPTED", "its process was ended by SIGKILL"),
        ("SIGSEGV", "PREEMPTED", "its process was ended by SIGSEGV"),
        ("metric", "BUG", r"yielded 'val/\udcfc', allowed are"),
        ("object", "BUG", "yielded TextIOWrapper for 'val/accuracy' in epoch 2"),
    ],
)
def test_a_trial_fails_by_its_own_error_once(
    how: str, kind: str, reason: str, shared: Callable[[str], Functions]
) -> None:
    mine = shared(TELLS)
    broken = mine.fails("fails", how=how)
    assert broken.failure.kind == kind
    assert reason in broken.failure.reason
    json.dumps([broken.failure.reason, broken.text], ensure_ascii=False).encode()  # no surrogates
    assert len(broken.failure.reason) <= 400
    assert len(broken.text) <= 2**20
    assert mine.output.read_text().startswith("before \\udcfc\n")
    assert not _left()
    assert mine.run("fails", how="none", epochs=1).epochs == [{"val/accuracy": 0.5}]


HOLDS = """
import os, signal

def killed(config, checkpoint):
    held = bytearray(b"x") * config["held"]
    yield {"val/accuracy": 0.5}
    if config["counter"]:
        with open(config["counter"], "w") as file:
            file.write(f"oom_kill {config['kills']}\\n")
    os.kill(os.getpid(), getattr(signal, config["signal"]))
    yield {"val/accuracy": 0.5}
"""


@pytest.mark.parametrize(
    ("name", "kills", "held", "kind", "reason"),
    [
        ("SIGKILL", 3, 0, "OOM", "the kernel's OOM killer ended its process: memory is limited to 8.0 GiB"),
        ("SIGKILL", 2, 0, "PREEMPTED", "its process was ended by SIGKILL"),
        ("SIGTERM", 3, 0, "PREEMPTED", "its process was ended by SIGTERM"),
        ("SIGKILL", None, 300, "OOM", "of 0.5 GiB of memory"),
        ("SIGKILL", None, 0, "PREEMPTED", "its process was ended by SIGKILL"),
    ],
)
def test_a_process_that_was_killed_for_want_of_memory_says_so(
    name: str,
    kills: int | None,
    held: int,
    kind: str,
    reason: str,
    shared: Callable[[str], Functions],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the kernel's count, 2 before the trial, or by what a trial held: PyTorch alone has it hold some 200 MiB."""
    mine = shared(HOLDS)
    counter = tmp_path / "memory.events"
    counter.write_text("oom_kill 2\n")
    memory = MemoryLimit(2**29) if kills is None else MemoryLimit(2**33, str(counter), 2)
    if not held and kills is None:
        memory = MemoryLimit(2**33)
    monkeypatch.setattr(MemoryLimit, "of_this_process", classmethod(lambda cls: memory))
    given = {"signal": name, "kills": kills, "counter": str(counter), "held": held * 2**20}
    broken = mine.fails("killed", **given)
    assert broken.failure.kind == kind
    assert reason in broken.failure.reason
    assert not _left()


CLEANS = """
import os, time
from pathlib import Path

def cleans(config, epochs, checkpoint):
    try:
        for epoch in range(epochs):
            (checkpoint / "state").write_text(str(epoch))
            yield {"val/accuracy": 0.5}
            time.sleep(config.get("waits", 0))
    finally:
        time.sleep(config.get("cleans_s", 0))
        Path(config["file"]).write_text((checkpoint / "state").read_text() + str(checkpoint.parent))
"""


@pytest.mark.parametrize("stop", [0, 1])
def test_a_function_cleans_up_while_its_folder_is_there(
    stop: int, shared: Callable[[str], Functions], tmp_path: Path
) -> None:
    mine = shared(CLEANS)
    mine.run("cleans", stop=stop, file=str(tmp_path / "said"))
    said = (tmp_path / "said").read_text()
    assert said.startswith("0" if stop else "1")
    assert not Path(said[1:]).exists()


def test_a_function_cleans_up_where_it_is_closed_or_interrupted(tmp_path: Path) -> None:
    """In the process of `study trial`, too."""
    from study.training.function_trial import FunctionTrial

    (tmp_path / "mine_that_cleans.py").write_text(CLEANS)
    mine = Functions(tmp_path, str(tmp_path), "mine_that_cleans")
    config = TrialConfig.from_document(json.loads(mine.job("cleans", file=str(tmp_path / "said")).sections_json))
    trial = FunctionTrial(config, str(tmp_path))
    running = trial.train_epochs()
    next(running)
    with pytest.raises(KeyboardInterrupt):
        running.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
    said = (tmp_path / "said").read_text()
    assert said[0] == "0"
    assert not Path(said[1:]).exists()


WORKER = """
import os, signal, sys
from pathlib import Path
sys.path[:0] = [{tests!r}, {here!r}]
from test_fresh_process import Functions, Heard
from study.sweep.fresh_process import run_job_in_fresh_process
from study.sweep.job_payload import MetricsReport
mine = Functions(Path({folder!r}), {folder!r}, "mine_that_cleans")
class Listener(Heard):
    def __call__(self, report):
        if {killed_on_report} and isinstance(report, MetricsReport):
            os.kill(os.getpid(), signal.SIGKILL)
run_job_in_fresh_process(mine.job("cleans", file={said!r}, **{config}), Listener())
"""


def _worker(folder: Path, killed_on_report: bool = False, **config: float) -> "subprocess.Popen[bytes]":
    (folder / "mine_that_cleans.py").write_text(CLEANS)
    values = {"folder": str(folder), "said": str(folder / "said"), "killed_on_report": killed_on_report}
    script = WORKER.format(tests=str(Path(__file__).parent), here=HERE, config=config, **values)
    return subprocess.Popen([sys.executable, "-c", script])


def test_the_end_of_the_worker_that_waits_does_not_interrupt_what_cleans_up(tmp_path: Path) -> None:
    """The trial learns it from its channel, and from the server's signal a moment later."""
    with _worker(tmp_path, killed_on_report=True, cleans_s=1.0):
        pass
    until = time.monotonic() + 60
    while not (tmp_path / "said").exists() or Path((tmp_path / "said").read_text()[1:] or ".").exists():
        assert time.monotonic() < until
        time.sleep(0.1)


@pytest.mark.slow
def test_a_trial_ends_with_the_process_that_asked_for_it(tmp_path: Path) -> None:
    """It cleans up, and nothing of it is left, though it was in the midst of an epoch."""
    said = tmp_path / "said"
    with _worker(tmp_path, waits=300) as worker:
        (output := tmp_path / "output").mkdir()
        until = time.monotonic() + 120
        while len(found := psutil.Process(worker.pid).children(recursive=True)) < 2 or not _sleeps(found):
            assert time.monotonic() < until
            time.sleep(0.1)
        worker.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(found, timeout=60)
    assert not alive
    assert said.read_text()[0] == "0"
    assert not Path(said.read_text()[1:]).exists()
    assert output.exists()


def _sleeps(found: list[psutil.Process]) -> bool:
    """Return whether the trial has its folder."""
    held = [file.path for process in found for file in process.open_files()]
    return any(TRIAL_FOLDER_PREFIX in path for path in held) and any(
        process.status() == "sleeping" for process in found
    )


IMPORTED = """
{first}
import os
SEEN = [os.getpid()]

def seen(config):
    yield {{"val/accuracy": 0.5, "val/same": float(SEEN[0] != os.getpid())}}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "shared"),
    [
        ("import sklearn.linear_model, pandas", True),
        ("import threading, time; threading.Thread(target=time.sleep, args=(9,), daemon=True).start()", False),
        ("import os; FILE = open(os.devnull)", False),
        ("import os; os.chdir('/')", False),
        (
            "import subprocess, sys; LEFT = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(9)'])",
            False,
        ),
    ],
)
def test_a_module_is_imported_for_each_trial_where_processes_could_share_what_it_makes(
    first: str, shared: bool, functions: Any
) -> None:
    mine = functions(IMPORTED.format(first=first))
    for _ in range(2):
        assert mine.run("seen", epochs=1).epochs == [{"val/accuracy": 0.5, "val/same": float(shared)}]


@pytest.mark.parametrize("imported", ["torch", "torch.nn as layers", "math"])
def test_what_optimizers_import_is_there_where_the_module_names_pytorch(imported: str, functions: Any) -> None:
    """PyTorch's compiler takes seconds to import, and each call of an optimizer asks for it."""
    mine = functions(f"""
        import sys
        import {imported}
        def seen(config):
            yield {{"val/accuracy": float("torch._dynamo" in sys.modules)}}
    """)
    assert mine.run("seen", epochs=1).epochs == [{"val/accuracy": float(imported != "math")}]


def test_a_function_that_yields_nothing_of_the_test_split_costs_no_process(functions: Any, tmp_path: Path) -> None:
    """It is told, not raised: Tune would end the process that waits, and starting another one takes seconds."""
    mine = functions("def valued(config):\n    yield {'val/accuracy': 0.5}\n")
    job = replace(mine.job("valued", 1), model_file=tmp_path / "valued.safetensors")
    run_job_in_fresh_process(job, Heard())
    heard = Heard()
    run_job_in_fresh_process(replace(job, kind="test"), heard)
    assert heard.why.endswith("valued: yielded no test/NAME in the epoch that the trial is taken at")
    assert not heard.epochs


def test_a_module_that_cannot_be_imported_is_told(functions: Any) -> None:
    broken = functions("import no_such_module_of_mine").fails("train")
    assert broken.failure.kind == "BUG"
    assert "cannot be imported (ModuleNotFoundError: No module named 'no_such_module_of_mine')" in broken.text


@pytest.mark.slow
def test_what_a_module_draws_when_it_is_imported_is_the_same_in_every_process(functions: Any) -> None:
    mine = functions("""
        import numpy as np
        DRAWN = float(np.random.rand())
        def draws(config):
            yield {"val/accuracy": DRAWN, "val/order": float(list({"a", "b", "c", "d"}).index("a"))}
    """)
    first = mine.run("draws", epochs=1).epochs
    fresh_process._fork_servers.popitem()[1].close_server()
    assert mine.run("draws", epochs=1).epochs == first


@pytest.mark.slow
def test_only_the_end_of_a_long_output_is_kept(functions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_process, "MAX_OUTPUT_BYTES", 1000)
    mine = functions("""
        def prints(config):
            print("x" * 5000, "end")
            yield {"val/accuracy": 0.5}
        def silent(config):
            yield {"val/accuracy": 0.5}
    """)
    mine.run("silent", epochs=1)
    assert not mine.output.exists()
    mine.run("prints", epochs=1)
    assert mine.output.read_bytes().startswith(fresh_process.OUTPUT_LEFT_OUT_TEXT)
    assert mine.output.read_text().endswith("x end\n")


@pytest.mark.slow
def test_a_process_that_does_not_end_is_ended(functions: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fresh_process, "CLEAN_UP_TIMEOUT_S", 1.0)
    mine = functions("""
        import time
        def stays(config):
            try:
                yield {"val/accuracy": 0.5}
                yield {"val/accuracy": 0.5}
            finally:
                time.sleep(300)
    """)
    mine.run("stays", stop=1)
    assert not _left()


def test_the_folder_of_outputs_may_vanish_before_a_file_is_opened_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another trial, which printed nothing, removes it where it is empty."""
    file, opened = tmp_path / "output" / "trial.txt", Path.open
    left = [True]

    def late(path: Path, *given: Any, **named: Any) -> Any:
        if left.pop() if left else False:
            path.parent.rmdir()
        return opened(path, *given, **named)

    monkeypatch.setattr(Path, "open", late)
    with fresh_process._keep_output_tail(file) as output:
        output.write(b"said")
    assert not left
    assert file.read_bytes() == b"said"
