"""Each line of a ledger is held to the one before: what was lost, doubled, moved or edited is told with its byte."""

from pathlib import Path

import pytest

from study.errors import UserError
from study.home.events import EpochReported, SessionClosed, TrialEnded
from study.home.ledger import LeaseLostError, Ledger, read_entries
from study.home.ledger_line import LineChainState
from study.home.record import StudyRecord


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def damaged(path: Path, *lines: bytes) -> str:
    """What is told of a ledger that has become these lines; who reads it on and who appends to it hears it too."""
    path.write_bytes(b"".join(lines))
    with pytest.raises(UserError) as refused:
        read_entries(path)
    held = Ledger(path)
    with pytest.raises(UserError) as not_written:
        held.append(SessionClosed(state="complete"))
    held.close()
    assert str(not_written.value) == str(refused.value)
    assert path.read_bytes() == b"".join(lines)
    return str(refused.value)


@pytest.fixture
def five(path: Path) -> list[bytes]:
    """The lines of a ledger of five events."""
    held = Ledger(path)
    held.append(EpochReported(trial=0, epoch=2, metrics={"val/accuracy": 0.75}))
    held.append(TrialEnded(trial=0, state="complete"))
    held.close()
    return lines_of(path)


def at(lines: list[bytes], number: int) -> int:
    """The byte at which a line begins."""
    return sum(map(len, lines[:number]))


OUT_OF_PLACE = "does not follow the events before it: lines were lost, moved or doubled, or come from another driver"


@pytest.mark.parametrize(
    ("order", "found"), [((0, 2, 3, 4), 2), ((3, 4), 3), ((0, 1, 2, 3, 3, 4), 3), ((0, 1, 3, 2, 4), 3)]
)
def test_lines_that_are_lost_doubled_or_moved_are_told(
    path: Path, five: list[bytes], order: tuple[int, ...], found: int
) -> None:
    place = next((count for count, number in enumerate(order) if count != number), 0)
    told = damaged(path, *(five[number] for number in order))
    assert told.startswith(f"{path}: damaged at byte {at(five, place)}: event {found} {OUT_OF_PLACE}")


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize(
    ("before", "after"), [(b'"time":1', b'"time":2'), (b" ", b"  "), (b'"event":"', b'"event":"x')]
)
def test_an_edited_line_is_told_be_it_the_last(
    path: Path, five: list[bytes], number: int, before: bytes, after: bytes
) -> None:
    edited = five[number].replace(before, after, 1)
    assert edited != five[number]
    told = f"{path}: damaged at byte {at(five, number)}: the line of event {number} was changed after it was written"
    assert damaged(path, *five[:number], edited, *five[number + 1 :]) == told


@pytest.mark.parametrize("number", range(5))
def test_ends_of_lines_as_on_windows_are_told(path: Path, five: list[bytes], number: int) -> None:
    told = damaged(path, *five[:number], *(line.replace(b"\n", b"\r\n") for line in five[number:]))
    assert told == (
        f"{path}: damaged at byte {at(five, number)}: the line of event {number} ends with CR LF, as an editor or a "
        "synchronised folder may have made it; it is whole once each line ends with LF alone"
    )


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b" \t\n"])
@pytest.mark.parametrize("number", [0, 3, 5])
def test_a_blank_line_is_told(path: Path, five: list[bytes], number: int, blank: bytes) -> None:
    told = damaged(path, *five[:number], blank, *five[number:])
    assert told == (
        f"{path}: damaged at byte {at(five, number)}: a blank line, which was added by hand; the ledger is whole "
        "once it is taken out"
    )


@pytest.mark.parametrize(
    ("stray", "told"),
    [
        (b"{nonsense}\n", "'{nonsense}'"),
        (b"\0\0\n", r"'\x00\x00'"),
        (b"\xff\n", "'\N{REPLACEMENT CHARACTER}'"),
        (b"<<<<<<< mine\r\n", "'<<<<<<< mine'"),
        (b"[1]\n", "'[1]'"),
        (b'{"no": 1}\n', """'{"no": 1}'"""),
    ],
)
def test_a_line_that_is_no_event_is_told(path: Path, five: list[bytes], stray: bytes, told: str) -> None:
    place = f"{path}: damaged at byte {at(five, 2)}"
    assert damaged(path, *five[:2], stray, *five[2:]) == f"{place}: no event stands there, but {told}"


def test_two_drivers_that_raced_are_told(path: Path, five: list[bytes]) -> None:
    """Where neither locks nor the lease reached: both wrote what follows event 2."""
    theirs = LineChainState(3, five[2][-11:-3]).complete_line(b'{"event":"closed","time":2,"state":"interrupted"}')
    told = f"damaged at byte {at(five, 4)}: event 3 {OUT_OF_PLACE}"
    assert told in damaged(path, *five[:4], theirs)


def test_a_driver_sees_that_another_has_written(path: Path) -> None:
    """On a file system on which locks do not reach it: it writes no more itself."""
    held = Ledger(path)
    held.append(SessionClosed(state="interrupted"))
    with open(path, "ab") as file:
        file.write(
            LineChainState(4, path.read_bytes()[-11:-3]).complete_line(b'{"event":"extended","time":1,"trials":9}')
        )
    before = path.read_bytes()
    with pytest.raises(LeaseLostError, match="another driver has written to its ledger"):
        held.append(SessionClosed(state="complete"))
    held.close()
    assert path.read_bytes() == before


def test_an_empty_ledger_has_lost_its_events(path: Path) -> None:
    for content in (b"", b'{"event":"crea'):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"ledger\.jsonl: damaged at byte 0: it is empty, its events are lost"):
            read_entries(path)
        with pytest.raises(UserError, match=r"ledger\.jsonl: damaged at byte 0: it is empty, its events are lost"):
            StudyRecord.load(path)
