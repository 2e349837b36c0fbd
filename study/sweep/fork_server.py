"""A server that forks one process for each trial of a user's training function, for a worker of Ray's that asks for it.

A fork of Ray's own process would inherit threads that hold locks, those of gRPC and OpenMP among them. This process
has no Ray. It has imported PyTorch, and the function too where its import leaves nothing behind that two processes
could share: no thread, no open file, no card in use, no other working folder, no run of MLflow. Where it does, each
trial imports the function anew. What a trial does then is gone with its process.

It is told over a socket: a byte and two files for a trial, its channel and what it prints into; `END_TRIAL_COMMAND` to
end it. It answers how a trial's process ended. It ends when the other end of the socket is closed, or by SIGTERM, and
the trial with it, which gets `CLEAN_UP_GRACE_S` seconds to clean up.
"""

import atexit
import ctypes  # noqa: F401 (each trial uses it, and the import takes a hundredth of a second)
import faulthandler
import gc
import inspect
import json
import os
import pickle
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple, NoReturn

import psutil
import safetensors.numpy  # noqa: F401 (as it is imported for each trial)
import torch

from study.sweep import job_execution
from study.sweep.failures import JobError
from study.sweep.fresh_process import (
    CONTINUE_ANSWER,
    END_TRIAL_COMMAND,
    RUN_TRIAL_COMMAND,
    SERVER_ANSWER_STRUCT,
    TRIAL_ENDED_ANSWER,
    UNFIT_FUNCTION_ANSWER,
    ForkTask,
    TrialMessage,
)
from study.sweep.host_memory import MemoryLimit
from study.sweep.job_payload import JobPayload, JobReport
from study.training.config import TrialConfig
from study.training.function_loading import TrainingFunction
from study.training.function_trial import FunctionTrial, load_function_with_seed
from study.upstream.child_process import end_with_parent
from study.upstream.scratch import remove_abandoned_scratch_folders

MAXRSS_UNIT_BYTES = 1 if sys.platform == "darwin" else 1024
"""Bytes in the unit of getrusage(2)."""

CLEAN_UP_GRACE_S = 5.0
"""Seconds that a trial gets to clean up when this process ends."""

FORK_SAFE_THREADS = {"jemalloc_bg_thd"}
"""Threads, by the system's names, that their library (PyArrow's memory pool) ends and restarts around a fork."""


class TrialStopped(BaseException):
    """The trial is to end here. Not an `Exception`, as a function may catch those."""


class TrialFiles(NamedTuple):
    """The two files of a trial, in its process or the server's: its channel, and the file that it prints into."""

    channel_fd: int
    output_fd: int


def run_fork_server(control: int, fresh: bool) -> NoReturn:
    """Run the server.

    Args:
        control: file descriptor of the socket.
        fresh: whether each trial imports the function.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.collect()
    gc.freeze()  # a garbage collection in a trial must not write to shared memory
    server = ForkServerLoop(socket.socket(fileno=control), fresh)
    files = server.serve_trials()
    if files is None:
        os._exit(0)
    _run_trial(files, server.task, server.function)


class ForkServerLoop:
    """The server, which goes on as a trial's process after a fork.

    Attributes:
        task: what is to be done next.
        function: the one that is loaded; None: each trial loads it.
    """

    def __init__(self, control: socket.socket, fresh: bool) -> None:
        self._control, self._fresh = control, fresh
        self._child: int | None = None
        self._ended, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)
        self._stops = False
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._request_stop)
        signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        self.task: ForkTask
        self.function: TrainingFunction | None = None

    def serve_trials(self) -> TrialFiles | None:
        """Fork a process for each trial; return its files in each of them, and None here once nobody asks any more."""
        while True:
            if self._wait_for_child_end(None):
                self._reap_trial_process()
                if self._stops:
                    self._end_trial_process()
                    return None
                continue
            told, files, *_ = socket.recv_fds(self._control, 1, 2)
            if told == END_TRIAL_COMMAND:
                self._kill_trial_process()
            elif told != RUN_TRIAL_COMMAND:
                self._end_trial_process()
                return None
            elif self._fork_into_trial(TrialFiles(*files)):
                return TrialFiles(*files)

    def _request_stop(self, *_: object) -> None:
        self._stops = True

    def _fork_into_trial(self, files: TrialFiles) -> bool:
        """Begin a trial; return whether this is its process."""
        self.task = pickle.loads(Connection(os.dup(files.channel_fd)).recv_bytes())  # sent by who started this process
        if self.function is None and not self._fresh and not self._load_function(files.output_fd):
            self._control.sendall(SERVER_ANSWER_STRUCT.pack(UNFIT_FUNCTION_ANSWER, 0, 0))
            os._exit(0)
        server = os.getpid()
        self._child = os.fork()
        if self._child:
            with suppress(OSError):
                os.setpgid(self._child, self._child)  # done by both processes, as either may be first
            os.close(files.channel_fd)
            os.close(files.output_fd)
            return False
        os.setpgid(0, 0)
        end_with_parent()
        if os.getppid() != server:  # the server ended before that call
            os._exit(1)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in (self._ended, self._wakes):
            os.close(descriptor)
        self._control.close()
        return True

    def _load_function(self, output: int) -> bool:
        """Load the function, printing into a file; return whether trials may share what that has made.

        An error of the import is left to the trial, which imports the function again and reports it.
        """
        _redirect_output(output)
        job = self.task.job
        assert job.function is not None
        job_execution.log_mlflow_into_trial_folder(job)
        before = _state_shared_by_forks(job)
        try:
            function = load_function_with_seed(str(json.loads(job.sections_json)["method"]["function"]), job.function)
            if _function_module_uses_torch(function):
                torch.compiler.disable(lambda: None)  # imports what each call of an optimizer would import in a trial
        except BaseException:
            return False
        if _state_shared_by_forks(job) != before or _threads_lost_by_fork() or psutil.Process().children():
            return False
        self.function = function
        gc.collect()
        gc.freeze()
        return True

    def _wait_for_child_end(self, seconds: float | None) -> bool:
        """Wait until a child has ended or, without `seconds`, something is told; return whether a child has ended."""
        told = [self._control.fileno()] if seconds is None else []
        ready, _, _ = select.select([self._ended, *told], [], [], seconds)
        if self._ended in ready:
            os.read(self._ended, 1024)
        return self._ended in ready

    def _reap_trial_process(self) -> None:
        """Report how the trial's process ended, if it has, and end what it left."""
        if self._child and os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self._kill_trial_process()  # what it started: until it is waited for, no other process group has its number
            _, status, used = os.wait4(self._child, 0)
            self._child = None
            with suppress(OSError):  # the worker no longer listens
                held = used.ru_maxrss * MAXRSS_UNIT_BYTES
                self._control.sendall(SERVER_ANSWER_STRUCT.pack(TRIAL_ENDED_ANSWER, status, held))

    def _kill_trial_process(self) -> None:
        """Kill the trial's process and all that it started."""
        if self._child:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child, signal.SIGKILL)

    def _end_trial_process(self) -> None:
        """End the trial with time to clean up; kill it where it does not end by itself."""
        if self._child:
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGTERM)
        until = time.monotonic() + CLEAN_UP_GRACE_S
        while self._child and (left := until - time.monotonic()) > 0:
            self._wait_for_child_end(left)
            self._reap_trial_process()
        self._kill_trial_process()


def _threads_lost_by_fork() -> list[str]:
    """Return the names of the threads that a fork of this process would lose.

    Those of OpenBLAS end before a fork and restart with the next product, so a fork is tried first.
    """
    if not (pid := os.fork()):
        os._exit(0)
    os.waitpid(pid, 0)
    if sys.platform != "linux":
        return ["?"] * (psutil.Process().num_threads() - 1)
    threads = [path for path in Path("/proc/self/task").iterdir() if path.name != str(os.getpid())]
    return [name for path in threads if (name := (path / "comm").read_text().strip()) not in FORK_SAFE_THREADS]


def _function_module_uses_torch(function: TrainingFunction) -> bool:
    """Return whether a function's module names PyTorch, or a part of it."""
    used = getattr(inspect.unwrap(function), "__globals__", {}).values()
    return any(getattr(value, "__name__", "").partition(".")[0] == "torch" for value in used if inspect.ismodule(value))


def _state_shared_by_forks(job: JobPayload) -> tuple[str, int, list[Path]]:
    """Return what forks of this process would share: working folder, number of open files, runs of MLflow."""
    runs = sorted(job.mlflow_folder.rglob("*")) if job.mlflow_folder is not None else []
    return os.getcwd(), psutil.Process().num_fds(), runs


def _redirect_output(output: int) -> None:
    """Make this process, C libraries included, print into a file and read nothing; no character fails."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    for name, number in (("stdout", 1), ("stderr", 2)):
        file = os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
        setattr(sys, name, file)
        setattr(sys, f"__{name}__", file)


class WorkerChannelListener:
    """Listener in the trial's process: tells the worker that asked for the trial, and waits until it may go on."""

    def __init__(self, channel: "Connection[TrialMessage, bytes]") -> None:
        self._channel = channel

    def __call__(self, report: JobReport) -> None:
        self.send_message(report)
        try:
            goes_on = self._channel.recv_bytes() == CONTINUE_ANSWER
        except (EOFError, OSError):
            goes_on = False
        if not goes_on:
            _stop_trial_cleanly()

    def send_message(self, message: TrialMessage) -> None:
        """Send a report or the end, and do not wait."""
        try:
            self._channel.send(message)
        except OSError:
            _stop_trial_cleanly()


def _stop_trial_cleanly() -> NoReturn:
    """Stop the trial; the signal that the server sends where the worker has died does not interrupt its clean-up."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise TrialStopped


def _run_trial(files: TrialFiles, task: ForkTask, function: TrainingFunction | None) -> NoReturn:
    """Run a trial in this process, which ends with it."""
    ended_by: list[int] = []

    def stop(number: int, _: object) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)  # the clean-up ends by itself, or is killed after `CLEAN_UP_GRACE_S`
        ended_by.append(number)
        raise TrialStopped

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for descriptor in files:
        os.set_inheritable(descriptor, False)
    listener, job = WorkerChannelListener(Connection(files.channel_fd)), task.job
    error: JobError | None = None
    is_told = True
    memory = MemoryLimit.of_this_process()
    try:
        _redirect_output(files.output_fd)
        faulthandler.enable()
        os.chdir(task.working_folder)
        config = TrialConfig.from_document(json.loads(job.sections_json))
        job_execution.log_mlflow_into_trial_folder(job)
        job_execution.prepare_process(job, config, task.should_try_gpu)
        assert job.function is not None
        trial = FunctionTrial(config, job.function, job.required_metrics, job.device, function, job.fold)
        job_execution.run_trial_job(lambda: trial, job, listener)
    except TrialStopped:
        is_told = False
    except BaseException as raised:
        is_told = not ended_by  # the function may have turned `TrialStopped` into another error
        error = job_execution.error_for_driver(raised, job.device, memory) if is_told else None
    if ended_by:
        remove_abandoned_scratch_folders()  # the signal may have come while the folder of this trial was removed
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(TrialStopped):
        if is_told:
            listener.send_message(error)
    with suppress(BaseException):
        atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        with suppress(BaseException):
            file.flush()
    for number in ended_by:  # so that its exit status names the signal
        os.kill(os.getpid(), number)
    os._exit(0)
