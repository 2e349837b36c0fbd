"""A fresh process for each trial of a user's training function, as the worker of Ray's sees it.

The worker and the server that forks these processes (`study.sweep.fork_server`) tell each other what stands here first.
"""

import json
import os
import pickle
import signal
import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import IO, NamedTuple

from study.sweep.failures import JobError, TrialFailedError, TrialFailure
from study.sweep.host_memory import MemoryLimit
from study.sweep.job_payload import JobPayload, JobReport, ReportListener
from study.upstream.child_process import python_command
from study.upstream.scratch import remove_abandoned_scratch_folders

RUN_TRIAL_COMMAND, END_TRIAL_COMMAND = b"g", b"e"
"""Bytes that tell the server to run a trial, and to end it."""

SERVER_ANSWER_STRUCT = struct.Struct("!ciq")
"""What the server answers: `TRIAL_ENDED_ANSWER`, a status as of waitpid(2) and the most bytes that the process held; or
`UNFIT_FUNCTION_ANSWER`: the function has to be imported for each trial, by another server."""
TRIAL_ENDED_ANSWER, UNFIT_FUNCTION_ANSWER = b"e", b"u"

TrialMessage = JobReport | JobError | None
"""What a trial's process sends: each report, and at its end the error that ended it, or None."""

CONTINUE_ANSWER, STOP_ANSWER = b"on", b"stop"
"""Answers to each report of a trial."""


class ForkTask(NamedTuple):
    """What a trial's process is told first.

    Attributes:
        working_folder: of the worker.
        should_try_gpu: whether no trial has tried the GPU of the worker that asks.
    """

    job: JobPayload
    working_folder: str
    should_try_gpu: bool


CLEAN_UP_TIMEOUT_S = 60.0
"""Seconds that a trial gets to clean up once it is told to stop or has told its end: then its process is killed."""

MAX_OUTPUT_BYTES = 2**20
"""Most bytes that are kept of what a trial printed, the last ones."""

OUTPUT_LEFT_OUT_TEXT = b"[... what was printed before is left out]\n"

FORK_SERVER_PROGRAM = """
from study.sweep.fork_server import run_fork_server
run_fork_server(int(sys.argv[1]), sys.argv[2] == "fresh")
"""


class ForkServerEndedError(Exception):
    """The fork server has ended, and the trial with it."""


class ForkServerClient:
    """The fork server of this worker, see `study.sweep.fork_server`. It ends with this object and with this process.

    Args:
        fresh: whether each trial imports the function anew.
    """

    def __init__(self, fresh: bool) -> None:
        self.fresh, self._tried = fresh, False
        self.control, theirs = socket.socketpair()
        environment = {"PYTHONHASHSEED": "0"} | os.environ  # so that sets of names have the same order in each process
        command = python_command(FORK_SERVER_PROGRAM, str(theirs.fileno()), "fresh" if fresh else "")
        with theirs:
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def begin_trial(self, job: JobPayload, output: IO[bytes]) -> "Connection[bytes, TrialMessage]":
        """Make the server run a trial; return the channel to its process.

        Raises:
            ForkServerEndedError: the server has ended.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            channel: Connection[bytes, TrialMessage] = Connection(ours.detach())
            try:
                socket.send_fds(self.control, [RUN_TRIAL_COMMAND], [theirs.fileno(), output.fileno()])
                channel.send_bytes(pickle.dumps(ForkTask(job, os.getcwd(), not self._tried)))
            except OSError:
                raise ForkServerEndedError from None
        return channel

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def note_gpu_tried(self) -> None:
        """Note that a trial has used the GPU of this process."""
        self._tried = True

    def receive_answer(self, patience: float | None = None) -> tuple[bytes, int, int] | None:
        """Return the server's next answer; None after `patience` seconds.

        Raises:
            ForkServerEndedError: the server has ended.
        """
        self.control.settimeout(patience)
        try:
            told = self.control.recv(SERVER_ANSWER_STRUCT.size)
        except TimeoutError:
            return None
        except OSError:
            told = b""
        if len(told) < SERVER_ANSWER_STRUCT.size:
            raise ForkServerEndedError
        kind, status, held = SERVER_ANSWER_STRUCT.unpack(told)
        return kind, status, held

    def end_trial(self) -> None:
        """Make the server kill the trial's process at once."""
        with suppress(OSError):
            self.control.sendall(END_TRIAL_COMMAND)

    def close_server(self) -> None:
        """Let the server end."""
        self.control.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(CLEAN_UP_TIMEOUT_S)


_fork_servers: dict[tuple[str, str], ForkServerClient] = {}
"""The fork server of this process, by the function that it has loaded."""


def run_job_in_fresh_process(job: JobPayload, listener: ReportListener) -> None:
    """Run a job of a training function in a process of its own, which is gone afterwards with all that it started.

    Raises:
        NoDeviceError, OSError, TrialFailedError: see `study.sweep.job_execution.error_for_driver`.
    """
    with _keep_output_tail(job.output_file) as output:
        try:
            if not _run_on_server(_fork_server_for(job), job, listener, output):
                _fork_server_for(job, fresh=True)
                _run_on_server(_fork_server_for(job), job, listener, output)
        except ForkServerEndedError:
            _fork_servers.clear()
            raise TrialFailedError(TrialFailure("PREEMPTED", "the process that starts its own has ended"), "") from None
        except TrialFailedError:
            remove_abandoned_scratch_folders()  # a process that was ended leaves its folder
            raise


def _fork_server_for(job: JobPayload, fresh: bool = False) -> ForkServerClient:
    """Return the server for a job's function; start one where there is none, or none that suits."""
    key = str(json.loads(job.sections_json)["method"]["function"]), str(job.function)
    if key not in _fork_servers or _fork_servers[key].has_ended or (fresh and not _fork_servers[key].fresh):
        for server in _fork_servers.values():
            server.close_server()
        _fork_servers.clear()
        _fork_servers[key] = ForkServerClient(fresh)
    return _fork_servers[key]


def _run_on_server(server: ForkServerClient, job: JobPayload, listener: ReportListener, output: IO[bytes]) -> bool:
    """Run a job; return False if the server is unfit for the function."""
    memory, channel = MemoryLimit.of_this_process(), server.begin_trial(job, output)
    status = None
    with closing(channel):
        try:
            while True:
                message = _next_message(server, channel)
                if isinstance(message, tuple):
                    kind, status, held = message
                    if kind == UNFIT_FUNCTION_ANSWER:
                        return False
                    raise _process_died_error(status, held, memory)
                if message is None:
                    return True
                if isinstance(message, Exception):
                    raise message
                server.note_gpu_tried()
                listener(message)
                with suppress(OSError):  # its end comes next
                    channel.send_bytes(CONTINUE_ANSWER)
        finally:
            if status is None:
                _end_trial_process(server, channel)


def _next_message(
    server: ForkServerClient, channel: "Connection[bytes, TrialMessage]"
) -> TrialMessage | tuple[bytes, int, int]:
    """Return the trial's next message, or the server's word that it has ended, in the order in which they were sent."""
    wait([channel, server.control])
    with suppress(EOFError, OSError):  # the trial has closed its end: it has ended, or is about to
        if channel.poll():  # what it sent before it ended is there by now
            return channel.recv()
    answer = server.receive_answer()
    assert answer is not None
    return answer


def _end_trial_process(server: ForkServerClient, channel: "Connection[bytes, TrialMessage]") -> None:
    """Make the trial end here, and wait until its process is gone."""
    with suppress(OSError):
        channel.send_bytes(STOP_ANSWER)
    with suppress(ForkServerEndedError):
        if server.receive_answer(CLEAN_UP_TIMEOUT_S) is None:
            server.end_trial()
            server.receive_answer()


def _process_died_error(status: int, held: int, memory: MemoryLimit) -> TrialFailedError:
    """Return the error of a trial's process that ended before it told so.

    Args:
        status: as of waitpid(2).
        held: most bytes that it held.
        memory: of this process when the trial began.
    """
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGKILL and (cause := memory.oom_death_text(memory.kills_since_start() > 0, held)):
            return TrialFailedError(TrialFailure("OOM", cause), cause)
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        why = TrialFailure("PREEMPTED", f"its process was ended by {name}")
    else:
        why = TrialFailure("BUG", f"the function ended its process, with status {os.waitstatus_to_exitcode(status)}")
    return TrialFailedError(why, why.reason)


@contextmanager
def _keep_output_tail(path: Path | None) -> Iterator[IO[bytes]]:
    """Yield the file that a trial prints into; afterwards keep its last part, or remove it where it is empty."""
    if path is None:
        with open(os.devnull, "wb") as nothing:
            yield nothing
        return
    with _open_output(path) as file:
        try:
            yield file
        finally:
            file.flush()
            size = path.stat().st_size
            if size > MAX_OUTPUT_BYTES:
                with path.open("rb") as whole:
                    whole.seek(-MAX_OUTPUT_BYTES, os.SEEK_END)
                    end = whole.read()
                path.write_bytes(OUTPUT_LEFT_OUT_TEXT + end)
            elif not size:
                path.unlink(missing_ok=True)
                with suppress(OSError):  # the folder has output of other trials
                    path.parent.rmdir()


def _open_output(path: Path) -> IO[bytes]:
    while True:
        path.parent.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):  # another trial, which printed nothing, has removed the folder meanwhile
            return path.open("ab")
