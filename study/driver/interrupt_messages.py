"""What a stop by Ctrl-C, or by a full disk, tells the user: how the study goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from study.errors import DISK_FULL_ERRNOS, StartInterruptedError, StudyStoppedError, find_disk_error
from study.home.folder import StudyFolder

STOPPED_RESUMABLE_MESSAGE = "stopped. Nothing is lost; go on with it: study resume {}"

STOPPED_BEFORE_BEGIN_MESSAGE = "stopped before the study began; nothing is left behind"


@contextmanager
def message_on_interrupt(message: str = STOPPED_BEFORE_BEGIN_MESSAGE, made: Path | None = None) -> Iterator[None]:
    """Raise a KeyboardInterrupt of the block as a StartInterruptedError with this message.

    Args:
        made: folder of the study that the block makes; once it is there, the message is how that study goes on.
    """
    try:
        yield
    except KeyboardInterrupt:
        if made and made.exists():
            message = STOPPED_RESUMABLE_MESSAGE.format(made.name)
        raise StartInterruptedError(message) from None


@contextmanager
def explain_resume_on_disk_error(folder: StudyFolder) -> Iterator[None]:
    """Say how the study goes on where the disk is full or fails.

    Raises:
        StudyStoppedError: it is full or fails.
    """
    try:
        yield
    except Exception as error:
        if (problem := find_disk_error(error)) is None:
            raise
        place = problem.filename or folder.path  # what Arrow writes fails without a file's name
        once = "there is room" if problem.errno in DISK_FULL_ERRNOS else "it can be written again"
        how = f"Nothing is lost; once {once}: study resume {folder.name}"
        raise StudyStoppedError(f"{place}: {problem.strerror}. {how}") from error
