"""Run a driver in a separate process: its task goes there by a pipe, and the study's ledger is followed from here.

The process that starts a driver keeps its variables and signal handlers: Ray, MLflow and what they change are in the
driver's process alone, which has a session of its own. If the process that started it dies, the driver stops cleanly,
unless it was detached.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from study.driver.interrupt_messages import STOPPED_BEFORE_BEGIN_MESSAGE
from study.driver.session import RunEnd, StudyView, run_end_lines
from study.errors import StartInterruptedError, StudyStoppedError, UserError
from study.home import ledger
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.sweep import STARTING_TRIALS_STEP
from study.text import print_text, study_command
from study.upstream import interrupt
from study.upstream.child_process import python_command


@dataclass(frozen=True)
class DriverTask:
    """Task of a driver.

    Attributes:
        run: the task, bound to all that it takes but its `view`.
        parent_pid: number of the process that started the driver.
        is_detached: whether the driver goes on when that process ends.
    """

    run: partial[Any]
    home: Home
    parent_pid: int
    is_detached: bool


class DriverEvent(Enum):
    """Messages of a driver that say nothing more."""

    SIGNALS_HANDLED = "from now on a signal stops it cleanly"
    STUDY_HIDDEN = "it shows the study no more"
    PIPE_CLOSED = "its end of the pipe is closed: there are no more messages"


@dataclass(frozen=True)
class StudyShownMessage:
    """Message of a driver: it shows a study from now on, which is in its home where `is_in_home`."""

    spec: StudySpec
    is_in_home: bool


@dataclass(frozen=True)
class ResultMessage:
    """Message of a driver: what its task returned; for a run, the study's folder."""

    result: Any


DriverMessage = DriverEvent | StudyShownMessage | str | ResultMessage | Exception
"""A text is a line, or a step of `study.sweep.DRIVER_STEPS`; an exception is what the task raised."""

DRIVER_PROGRAM = "import runpy; runpy.run_module('study.driver', run_name='__main__', alter_sys=True)"
"""What a driver's process runs. It finds a study's function where this process does."""

LEDGER_POLL_INTERVAL_S = 0.25
"""Seconds between two looks at the ledger."""

EXIT_TIMEOUT_S = 30.0
"""Seconds that a driver has to end once it has answered; a library may wait for ever for one of its own threads."""


class LedgerFollower:
    """Record of a study, read on from its ledger while a driver appends to it; first read when this is made.

    Attributes:
        record: what the ledger said at the last look.
    """

    def __init__(self, folder: StudyFolder) -> None:
        self.record = StudyRecord()
        self._tail = ledger.LedgerTail(folder.ledger_file)
        self.read_new_events()

    def read_new_events(self) -> None:
        """Read what is new. Errors of the ledger are left to its driver to report."""
        with suppress(UserError, OSError):
            for line in self._tail.new_entries():
                self.record.apply_entry(line)


class DriverProcess:
    """Process of a driver, from its start on.

    A KeyboardInterrupt may come between any two instructions of the main thread. So a thread receives the messages and
    reads the ledger, and the main thread handles a message again if an interrupt came before it was done.

    Args:
        work: task that the driver is given.

    Raises:
        StartInterruptedError: Ctrl-C came while it started.
    """

    def __init__(self, work: DriverTask) -> None:
        self._home = work.home
        self._messages: list[tuple[DriverMessage, StudyRecord]] = []
        self._taken = self._stops = 0
        self._news, self._left = threading.Event(), threading.Event()
        self._followed: LedgerFollower | None = None
        self._spec: StudySpec | None = None
        ours, theirs = Pipe()
        given = (ours, pickle.dumps(work))
        try:
            with theirs:
                self._process = subprocess.Popen(
                    python_command(DRIVER_PROGRAM, "drive", str(theirs.fileno())),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL if work.is_detached else None,
                    stderr=subprocess.DEVNULL if work.is_detached else None,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            threading.Thread(target=self._exchange_messages, args=given, name="driver", daemon=True).start()
        except KeyboardInterrupt:
            self.close_pipe()  # the closed pipe stops it; it has begun nothing
            raise StartInterruptedError(STOPPED_BEFORE_BEGIN_MESSAGE) from None

    def follow_until_result(self, view: StudyView, until: Callable[[DriverMessage], bool] = lambda _: False) -> Any:
        """Show what the driver does until it has answered, and return what its task returned.

        Ctrl-C stops the driver cleanly, a second one at once, and a third one kills it.

        Args:
            until: whether a message is the last one to wait for.

        Raises:
            Exception: what its task raised.
            StartInterruptedError: it was stopped before it had begun.
            StudyStoppedError: it was ended by something else.
        """
        with ExitStack() as shown:
            say: Callable[[str], object] = print_text  # until there is a view
            while True:
                try:
                    if (next_one := self._next_message()) is None:
                        continue
                    message, record = next_one
                    is_last = isinstance(message, ResultMessage | Exception) or message is DriverEvent.PIPE_CLOSED
                    if is_last or isinstance(message, StudyShownMessage) or message is DriverEvent.STUDY_HIDDEN:
                        shown.close()
                    if isinstance(message, StudyShownMessage):
                        say = shown.enter_context(view(message.spec, record))
                    elif isinstance(message, str):
                        say(message)
                    if is_last or until(message):
                        break
                    self._taken += 1
                except KeyboardInterrupt:
                    self._forward_interrupt()
        if is_last:
            self._wait_for_exit()
        if isinstance(message, Exception):
            raise message
        if message is DriverEvent.PIPE_CLOSED:
            raise self._driver_ended_error()
        return message.result if isinstance(message, ResultMessage) else None

    def close_pipe(self) -> None:
        """Close the pipe: a driver that is not detached and has not ended then stops cleanly."""
        self._left.set()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def _next_message(self) -> tuple[DriverMessage, StudyRecord] | None:
        """Return the first message that was not handled, and the record of its study; None: there is none yet."""
        if self._taken == len(self._messages):
            self._news.wait(1.0)
        self._news.clear()
        return self._messages[self._taken] if self._taken < len(self._messages) else None

    def _exchange_messages(self, pipe: Connection, work: bytes) -> None:
        """Send the driver its task, get its messages and read its study's ledger, until `close_pipe`, in a thread."""
        with pipe:
            try:
                pipe.send_bytes(work)
                while not self._left.is_set():
                    there = pipe.poll(LEDGER_POLL_INTERVAL_S)
                    if self._followed:
                        self._followed.read_new_events()
                    if there:
                        self._handle_message(pipe.recv())
            except Exception:  # the pipe is closed, or an answer cannot be unpickled: the driver stops then
                self._handle_message(DriverEvent.PIPE_CLOSED)

    def _handle_message(self, message: DriverMessage) -> None:
        if isinstance(message, StudyShownMessage):
            self._spec = message.spec
            self._followed = None
            if message.is_in_home:
                self._followed = LedgerFollower(StudyFolder(self._home.path / message.spec.name))
        self._messages.append((message, self._followed.record if self._followed else StudyRecord()))
        self._news.set()

    def _forward_interrupt(self) -> None:
        """Pass on a Ctrl-C. A driver that hears no signals yet has begun nothing, and is killed."""
        self._stops += 1
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT if self._messages and self._stops < 3 else signal.SIGKILL)

    def _wait_for_exit(self) -> None:
        """Wait until the driver has ended; nothing that it does after its answer is needed."""
        try:
            self._process.wait(EXIT_TIMEOUT_S)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            self._process.kill()
            self._process.wait()

    def _driver_ended_error(self) -> StartInterruptedError | StudyStoppedError:
        """Return the error for a driver that has ended without an answer."""
        is_there = self._spec is not None and (self._home.path / self._spec.name).exists()
        if self._stops and not is_there:
            return StartInterruptedError(STOPPED_BEFORE_BEGIN_MESSAGE)
        status = self._process.returncode
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
        told = f"the driver, process {self.pid}, {how}"
        if self._spec is None or not is_there:
            return StudyStoppedError(f"{told}, before its study began")
        again = study_command("resume", self._spec.name)
        return StudyStoppedError(f"{told}. Nothing is lost; go on with it: {again}")


def run_in_driver_process(view: StudyView, home: Home, task: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """Do something that runs trials in a separate driver, and wait for it.

    Args:
        task: a module's function that takes a home, what is `given`, and a `view`; it returns a `RunEnd`, of which the
            folder comes back, or something else that can be pickled.

    Raises:
        Exception: what the task raised; and as `DriverProcess.follow_until_result`.
    """
    driver = DriverProcess(DriverTask(partial(task, home, *given, **named), home, os.getpid(), is_detached=False))
    try:
        return driver.follow_until_result(view)
    finally:
        driver.close_pipe()


def start_detached_driver(
    view: StudyView, home: Home, task: Callable[..., Any], *given: Any, **named: Any
) -> tuple[StudyFolder, int | None]:
    """Do something that runs trials in a driver that goes on by itself, and wait until its first trials are to start.

    Args:
        task: see `run_in_driver_process`.

    Returns:
        Its study, and the number of its process; None where it has ended because there was nothing to run.

    Raises:
        Exception: see `run_in_driver_process`; what happened until then.
    """
    driver = DriverProcess(DriverTask(partial(task, home, *given, **named), home, os.getpid(), is_detached=True))
    names: list[str] = []

    def is_starting_trials(message: DriverMessage) -> bool:
        if isinstance(message, StudyShownMessage):
            names.append(message.spec.name)
        return message == STARTING_TRIALS_STEP

    try:
        ended = driver.follow_until_result(view, is_starting_trials)
    finally:
        driver.close_pipe()
    return (ended, None) if ended else (StudyFolder(home.path / names[-1]), driver.pid)


def follow_running_study(view: StudyView, folder: StudyFolder) -> RunEnd:
    """Show a study that a driver runs, until it has ended.

    Raises:
        UserError: no driver runs it.
        StartInterruptedError: Ctrl-C, which does not reach the study.
    """
    name, file = folder.name, folder.ledger_file
    if not ledger.is_driver_running(file):
        raise UserError(f"{name}: is not running. Its state: {study_command('status', name)}")
    spec, followed = folder.load_checked_spec(), LedgerFollower(folder)
    try:
        with view(spec.replace_placement(followed.record.placement), followed.record):
            while ledger.is_driver_running(file):
                time.sleep(LEDGER_POLL_INTERVAL_S)
                followed.read_new_events()
    except KeyboardInterrupt:
        raise StartInterruptedError(f"{name} goes on; to stop it: {study_command('stop', name)}") from None
    return RunEnd(folder, spec, StudyRecord.load(file), None)


DETACHED_DRIVER_LOG = "driver.log"
"""File in a study's folder with what a detached driver printed."""


class ParentChannel:
    """A driver's end of the pipe; once the other end is closed, messages are dropped."""

    def __init__(self, number: int) -> None:
        os.set_inheritable(number, False)  # else processes that it starts would keep the pipe open
        self._pipe, self._lock = Connection(number), threading.Lock()
        self._home = Home(Path())
        self._own: StudyView | None = None

    def send_message(self, message: DriverMessage) -> None:
        """Send a message to the parent, if it still listens."""
        with suppress(OSError), self._lock:
            self._pipe.send(message)

    def receive_task(self) -> DriverTask:
        """Receive the driver's task, once."""
        work: DriverTask = self._pipe.recv()
        self._home = work.home
        if work.is_detached:
            from rich.console import Console

            from study.commands.progress_view import ProgressView

            self._own = ProgressView(Console())
        else:
            wait = partial(self._stop_when_parent_ends, work.parent_pid)
            threading.Thread(target=wait, name="parent", daemon=True).start()
        return work

    def _stop_when_parent_ends(self, parent: int) -> None:
        """Stop this process cleanly, from a thread, once nobody waits for it.

        The parent is looked for as well as the pipe: a fork of the parent may hold its end of the pipe open.
        """
        with suppress(OSError, EOFError):
            while not self._pipe.poll(1.0) and os.getppid() == parent:
                pass
        os.kill(os.getpid(), signal.SIGINT)

    @contextmanager
    def __call__(self, spec: StudySpec, record: StudyRecord) -> Iterator[Callable[[str], None]]:
        """Show a run at the parent and, where the driver is detached, in a file of the study's folder."""
        with ExitStack() as shown:
            self.send_message(StudyShownMessage(spec, is_in_home=bool(record.id)))
            says: list[Callable[[str], None]] = [self.send_message]
            if self._own and record.id:
                self._redirect_output(self._home.path / spec.name / DETACHED_DRIVER_LOG)
                says.append(shown.enter_context(self._own(spec, record)))

            def tell_all(text: str) -> None:
                for say in says:
                    say(text)

            try:
                yield tell_all
            finally:
                self.send_message(DriverEvent.STUDY_HIDDEN)

    def _redirect_output(self, file: Path) -> None:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for number in (1, 2):
            os.dup2(descriptor, number)
        os.close(descriptor)


def run_piped_task(number: int) -> int:
    """Do the task that comes through a pipe, in this process, and answer; return the exit status.

    Args:
        number: file descriptor of this end of the pipe.

    Raises:
        Exception: what the task raised, if nobody waits for the answer any more.
    """
    channel = ParentChannel(number)
    channel.send_message(DriverEvent.SIGNALS_HANDLED)
    is_alone = False
    try:
        work = channel.receive_task()
        is_alone = work.is_detached
        result = work.run(view=channel)
    except (Exception, KeyboardInterrupt) as error:
        channel.send_message(told := _picklable_error(error))
        if is_alone:
            raise told from error
        return int(getattr(told, "exit_status", StudyStoppedError.exit_status))
    if isinstance(result, RunEnd):
        if is_alone:
            print_text("\n".join(run_end_lines(result)))
        elif result.untracked_reason:
            channel.send_message(f"not everything is in MLflow: {result.untracked_reason}")
        result = result.folder
    channel.send_message(ResultMessage(result))
    return 0


def _picklable_error(error: BaseException) -> Exception:
    """Return an error as another process can raise it, with its traceback as a note unless it is shown as a message."""
    if isinstance(error, UserError | StudyStoppedError | StartInterruptedError):
        return error
    # a library may turn an interrupt into its own error
    if not isinstance(error, Exception) or interrupt.has_stop_signal_come():
        return StartInterruptedError("stopped")
    copied: Exception = StudyStoppedError(f"{type(error).__name__}: {error}")
    if type(error).__module__.split(".")[0] in ("study", *sys.stdlib_module_names):  # others would import their library
        with suppress(Exception):
            copied = pickle.loads(pickle.dumps(error))
    copied.add_note("".join(traceback.format_exception(error)))
    return copied
