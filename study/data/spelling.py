"""Names of files as the disk spells them: a letter with an accent is one sign in one program, two in another."""

import os
import unicodedata
from pathlib import Path, PurePath


def on_disk(folder: Path, name: str) -> Path:
    """The file of a folder that a list names, though one spells it composed (NFC) and the other taken apart (NFD).

    A file of exactly this name comes first. Where there is none of any spelling the path has the name as it is listed.
    """
    path = folder / name
    if name.isascii() or os.path.exists(path):
        return path
    found = folder
    for part in PurePath(name).parts:  # each may be spelled in its own way
        forms = (part, unicodedata.normalize("NFC", part), unicodedata.normalize("NFD", part))
        there = next((found / form for form in forms if os.path.exists(found / form)), None)
        if there is None:
            return path
        found = there
    return found
