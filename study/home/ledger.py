"""The events of a study: one line of JSON per event, appended and synced to disk before anyone acts on it.

The ledger is the one truth of a study. Optuna's history, ASHA's rungs, the MLflow runs, progress and report are
all derived from it, so that after a crash they can be derived again (`study.home.record` folds it into objects).

`study.home.ledger_line` numbers and chains the lines, so that damage of any kind is found, with its byte; a last line
without its end is left by a crash in mid-write, and nobody has acted on it. `study.home.events` says what each event
holds.
"""

import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from study.errors import UserError
from study.files import lock_file
from study.home import lease
from study.home.events import Event, StudyCreated, UnknownEventError, entry_to_event, event_to_entry
from study.home.lease import Lease, LeaseLostError
from study.home.ledger_line import MAX_CHAIN_BYTES, Entry, LineChainState, decode_entry, encode_entry, line_end_checksum

__all__ = ["LeaseLostError", "Ledger", "LedgerTail", "is_driver_running", "line_checksum", "read_entries"]

LOCK_TIMEOUT_S = 0.5
"""Seconds that a driver waits for the lock of a ledger, which a process that looks whether it is open holds for a
moment."""


class Ledger:
    """The ledger of one study, open for appending by one driver at a time, on this machine and others.

    Raises:
        UserError: another process holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = open(path, "ab", buffering=0)  # noqa: SIM115 (closed by close())
        try:
            if not lock_file(self._file, LOCK_TIMEOUT_S) or lease.holder_on_other_machine(lease_path(path)):
                raise LeaseLostError
            self._lease = Lease(lease_path(path))
            self._size = path.read_bytes().rfind(b"\n") + 1
            self._file.truncate(self._size)  # a crash in mid-write leaves a part of a line, which nobody has acted on
            self._awake = SleepDetector()
        except LeaseLostError:
            self._file.close()
            raise UserError(_already_running_message(path)) from None
        except BaseException:
            self._file.close()
            raise

    @classmethod
    def create(cls, path: Path) -> None:
        """Begin the ledger of a new study, with an id of its own."""
        path.touch()
        with closing(cls(path)) as ledger:
            ledger.append(StudyCreated(uuid.uuid4().hex))

    def check_lease(self) -> None:
        """Check that this is still the study's driver.

        Raises:
            LeaseLostError: another one has the study now.
        """
        self._lease.check_still_held()

    @property
    def is_taken_over(self) -> bool:
        """Whether another driver has the study now."""
        return self._lease.is_lost

    def append(self, event: Event) -> Event:
        """Write one event, and return it as it is read back. It is on disk when this returns.

        Raises:
            LeaseLostError: another driver has the study now; nothing is written.
            UserError: a line of the ledger is damaged; nothing is written.
            OSError: there is no room, or the disk fails; nothing of the event is left in the file.
            ValueError: the event could not be read back; nothing is written.
        """
        now = replace(event, time=event.time or round(time.time(), 3), asleep=self._awake.seconds_asleep())
        entry = encode_entry(event_to_entry(now))
        read_back = entry_to_event(decode_entry(entry))
        line = self._chain_end.complete_line(entry)
        self.check_lease()
        if os.stat(self.path).st_size != self._size:
            raise LeaseLostError("another driver has written to its ledger")
        try:
            written = self._file.write(line)
            while written < len(line):  # a disk that is nearly full takes a part and refuses the rest
                written += self._file.write(line[written:])
            os.fsync(self._file.fileno())
        except OSError as error:
            error.filename = str(self.path)
            self._file.truncate(self._size)
            raise
        self._size += len(line)
        self._chain_end.advance_if_next(line)
        return read_back

    @cached_property
    def _chain_end(self) -> LineChainState:
        """Place after its last line; found at the first use, so that a damaged ledger can be opened to delete it."""
        tail = LedgerTail(self.path)
        for _ in tail.new_entries():
            pass
        return tail.chain or LineChainState()

    def close(self) -> None:
        """Let go of the study."""
        self._awake.stop()
        self._lease.release()
        self._file.close()


def read_entries(path: Path) -> list[Entry]:
    """Return all events on disk as they stand there, those of other versions too; an unfinished last line is left out.

    Raises:
        UserError: it is damaged, or empty: the first event is there from the beginning; or an event's fields are not
            what they have to be.
    """
    tail, events, begin = LedgerTail(path), [], 0
    for event in tail.new_entries():
        try:
            entry_to_event(event)
        except UnknownEventError:
            pass
        except ValueError as fault:
            kind = event["event"]
            raise UserError(f"{path}: has an event {kind!r} that cannot be read, at byte {begin}: {fault}") from None
        events.append(event)
        begin = tail.offset
    if not events:
        raise UserError(empty_ledger_message(path))
    return events


def empty_ledger_message(path: Path) -> str:
    """Return the message about a ledger without an event."""
    return f"{path}: damaged at byte 0: it is empty, its events are lost"


def is_driver_running(path: Path) -> bool:
    """Return whether a driver holds the ledger at this moment."""
    with open(path, "rb") as file:
        return not lock_file(file) or lease.holder_on_other_machine(lease_path(path)) is not None


class LedgerTail:
    """Reader of a ledger from an offset on, as it grows.

    Args:
        offset: bytes to skip; after each event that `new_entries` yields, the offset after it. Lines before it are not
            checked: whoever gave the offset has read them.

    Attributes:
        chain: the place after the last event that was yielded; None before the first, if bytes are skipped.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path, self.offset = path, offset
        self.chain = None if offset else LineChainState()

    def new_entries(self) -> Iterator[Entry]:
        """Yield the events that were completed since the last call.

        Raises:
            UserError: it is damaged; says at which byte.
        """
        chain = self.chain
        with open(self.path, "rb") as file:
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                chain = self.chain = chain or LineChainState.before_line(line)
                try:
                    if not chain.advance_if_next(line):
                        raise ValueError(chain.why_refused(line))
                    event = decode_entry(line)
                except (ValueError, RecursionError) as error:
                    raise UserError(f"{self.path}: damaged at byte {self.offset}: {error}") from None
                self.offset += len(line)
                yield event


def line_checksum(path: Path, offset: int) -> str:
    """Return the check value of the line that ends at an offset; empty at 0 and where none ends."""
    with open(path, "rb") as file:
        file.seek(max(0, offset - MAX_CHAIN_BYTES))
        return line_end_checksum(file.read(min(offset, MAX_CHAIN_BYTES)))


def lease_path(path: Path) -> Path:
    """Return the lease file of the driver that runs the study of this ledger."""
    return path.with_name("lease.json")


def _already_running_message(path: Path) -> str:
    name, who = path.parent.name, lease.read_holder(lease_path(path))
    by = f", {who}" if who else ""
    message = f"{name}: another process is running this study{by}; its state: study status {name}"
    if who is None or who.machine == lease.machine_id():
        return message
    return f"{message}. Is that machine dead? Then the study is free {lease.EXPIRY_S:.0f} s after its last sign of life"


CLOCK_CHECK_INTERVAL_S, MAX_CLOCK_CHECK_DELAY_S = 1.0, 10.0
"""Seconds between two looks at the clock; and by how much a look is late if this process did not run, as no load delays
a thread for so long."""


class SleepDetector:
    """How long a driver did not run: its machine slept, its virtual machine was paused, or it was stopped.

    A study's times are those of the wall clock, which goes on meanwhile, or leaps when it is set right afterwards. A
    thread looks at it until `end`.
    """

    def __init__(self) -> None:
        self._at, self._asleep = time.time(), 0.0
        self._lock, self._over = threading.Lock(), threading.Event()
        threading.Thread(target=self._watch_clock, name="awake", daemon=True).start()

    def seconds_asleep(self) -> float:
        """Return the seconds since the last call in which this process did not run, 0.0 where it always did."""
        self._check_clock()
        with self._lock:
            asleep, self._asleep = self._asleep, 0.0
        return round(asleep, 3)

    def stop(self) -> None:
        """Stop the thread."""
        self._over.set()

    def _watch_clock(self) -> None:
        while not self._over.wait(CLOCK_CHECK_INTERVAL_S):
            self._check_clock()

    def _check_clock(self) -> None:
        with self._lock:
            now = time.time()
            late = now - self._at - CLOCK_CHECK_INTERVAL_S
            self._asleep += late if late > MAX_CLOCK_CHECK_DELAY_S else 0.0
            self._at = now
