"""The driver's ear for what users ask while a study runs (`study.home.requests`)."""

import time
from pathlib import Path

from study.home.requests import name_of, removed, waiting
from study.sweep.agenda import Agenda

LOOK = 1.0
"""Seconds between two looks; a folder on a network file system may show a new file later."""


class Ear:
    """Has the agenda obey the requests of a folder, each once, in the order in which they were made."""

    def __init__(self, agenda: Agenda, folder: Path) -> None:
        self._agenda, self._folder, self._looked = agenda, folder, -LOOK

    def listen(self) -> None:
        """Obey what has come; does nothing within `LOOK` of the last call.

        Raises:
            CannotGoOn: the ledger cannot be written.
        """
        if time.monotonic() - self._looked < LOOK:
            return
        self.obey()
        self._looked = time.monotonic()

    def obey(self) -> None:
        """Obey what is there, and refuse what is no request; nothing is read once the study stops.

        Raises:
            CannotGoOn: the ledger cannot be written.
        """
        for path, request in waiting(self._folder):
            if self._agenda.stopping:
                return
            if request is None:
                self._agenda.refuse(name_of(path), "its file cannot be read as a request")
            else:
                self._agenda.obey(request)
            removed(path)
