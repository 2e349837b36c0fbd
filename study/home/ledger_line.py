"""A line of the ledger: an event as JSON, numbered, and chained to the line before it by check values.

The last key of each line is `chain`: the number of the event, from 0; the check value of the line before, 0 for the
first; and the line's own, CRC-32 of all that stands before it in the line. So lines that were lost, doubled, moved
or edited are found, and so are lines of two drivers, or of two copies of a ledger, that came into one file.

It protects against accidents: of hands, editors, merges, synchronised folders and disks. It does not show that lines
are gone from the very end, where a ledger just ends earlier, and it is no signature: whoever wants to deceive can
make new check values.
"""

import json
import re
from zlib import crc32

import orjson

from study.knobs import Value
from study.text import quoted

Entry = dict[str, Value]
"""An event as it stands in a line, by the names of its fields; `event` is its kind."""

_CHAIN_PATTERN = re.compile(rb'"chain"\s*:\s*"(\d{1,18})\s+([0-9a-f]{8})\s+([0-9a-f]{8})"\s*}\s*\Z')
"""Allows the spaces of an editor, so that an edited line is recognised as such."""

MAX_CHAIN_BYTES = 64
"""More bytes than the key `chain` takes at the end of a line."""

_CHECKSUM_OFFSET = -len('01234567"}\n')
"""Place of a line's check value, counted from its end; the value is of what stands before it."""
_OWN_CHECKSUM_SLICE = slice(_CHECKSUM_OFFSET, _CHECKSUM_OFFSET + 8)
_PREVIOUS_CHECKSUM_SLICE = slice(_CHECKSUM_OFFSET - 9, _CHECKSUM_OFFSET - 1)


def encode_entry(event: Entry) -> bytes:
    """Return an event as JSON.

    A number that is not finite becomes null, and a single surrogate, from a file's name that is no UTF-8, a question
    mark.

    Raises:
        TypeError: it holds what JSON cannot, or a whole number beyond 64 bits.
    """
    try:
        return orjson.dumps(event)
    except TypeError:  # it takes no such surrogates
        text = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
        return orjson.dumps(json.loads(text))


def decode_entry(line: bytes) -> Entry:
    """Return the event of a line, or of the result of `encode_entry`.

    Raises:
        ValueError: it is no JSON, or no event.
        RecursionError: its JSON is nested deeper than any event's.
    """
    event = orjson.loads(line)
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        raise ValueError("no event")
    event.pop("chain", None)
    return event


def line_end_checksum(line: bytes) -> str:
    """Return the check value of a line, or of its end; empty where no line ends so."""
    told = _CHAIN_PATTERN.search(line)
    return told[3].decode() if told and line.endswith(b"\n") else ""


def last_line(ledger: bytes) -> bytes:
    """Return the last line, with its end, of a ledger of whole lines."""
    return ledger[ledger.rfind(b"\n", 0, -1) + 1 :]


class LineChainState:
    """The place between two lines of a ledger: what the next one has to be.

    Attributes:
        number: of the next event.
        before: the check value of the line before it, as it is written.
    """

    def __init__(self, number: int = 0, before: bytes = b"00000000") -> None:
        self.number, self.before = number, before

    @classmethod
    def before_line(cls, line: bytes) -> "LineChainState":
        """Return the place before a line, as that line gives it; the beginning, where it gives none."""
        told = _CHAIN_PATTERN.search(line)
        return cls(int(told[1]), told[2]) if told else cls()

    def complete_line(self, event: bytes) -> bytes:
        """Return the whole line of an event that `encode_entry` returned."""
        start = b'%b,"chain":"%d %b ' % (event[:-1], self.number, self.before)
        return b'%b%08x"}\n' % (start, crc32(start))

    def advance_if_next(self, line: bytes) -> bool:
        """Return whether a line belongs here; if so, move to the place after it.

        Its number is not compared: its check value covers it, and it is right where that of the line before is.
        """
        own = line[_OWN_CHECKSUM_SLICE]
        try:
            passes = line[_PREVIOUS_CHECKSUM_SLICE] == self.before and int(own, 16) == crc32(line[:_CHECKSUM_OFFSET])
        except ValueError:
            return False
        if passes:
            self.number, self.before = self.number + 1, own
        return passes

    def why_refused(self, line: bytes) -> str:
        """Return why a line does not pass."""
        told = _CHAIN_PATTERN.search(line)
        if told is None:
            return _missing_chain_reason(line)
        if line.endswith(b"\r\n") and LineChainState(self.number, self.before).advance_if_next(line[:-2] + b"\n"):
            return (
                f"the line of event {self.number} ends with CR LF, as an editor or a synchronised folder may have made "
                "it; it is whole once each line ends with LF alone"
            )
        if int(told[3], 16) != crc32(line[:_CHECKSUM_OFFSET]):
            return f"the line of event {self.number} was changed after it was written"
        return (
            f"event {int(told[1])} does not follow the events before it: lines were lost, moved or doubled, or come "
            "from another driver or another copy of this study"
        )


def _missing_chain_reason(line: bytes) -> str:
    """Return what is wrong with a line that has no number and check values."""
    if not line.strip():
        return "a blank line, which was added by hand; the ledger is whole once it is taken out"
    try:
        decode_entry(line)
    except (ValueError, RecursionError):
        return f"no event stands there, but {quoted(line.decode(errors='replace').strip())}"
    return "an event without number and check values, which was added by hand"
