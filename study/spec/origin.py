"""Where an exported configuration comes from, as its file says: true for as long as nothing in the file was changed."""

from collections.abc import Iterable
from typing import Any

from study.errors import UserError
from study.files import digest
from study.spec.document import Document
from study.training.config import SECTIONS

FORMAT = 2
"""Version of an exported file."""


def check_origin(document: Document, changes: Iterable[str]) -> None:
    """Look whether an exported file is as it was written, before overrides; note these, so that nobody takes the
    figures of the original for theirs.

    Raises:
        UserError: it is of another version, or was changed by hand.
    """
    origin = document.values.get("origin")
    if not isinstance(origin, dict):
        return
    version = origin.get("format")
    if version != FORMAT:
        raise UserError(
            f"{document.place(('origin', 'format'))}: origin.format: {version!r} given, this version of study reads "
            f"{FORMAT}. Export the configuration again with it, or read this file with the version that wrote it"
        )
    is_changed = "changed" in origin and "digest" not in origin
    if not is_changed and origin.get("digest") != configuration_digest(document.values):
        raise UserError(
            f"{document.place(('origin', 'digest'))}: the configuration is not the one that was exported: it was "
            "changed by hand, or cut short. Changes: --set KEY=VALUE. As a study file of your own: take `origin` out"
        )
    if overrides := list(changes):
        origin.pop("digest", None)
        origin["changed"] = [*origin.get("changed", []), *overrides]


def configuration_digest(values: Any) -> str:
    """Of a study file's sections that say what one trial is."""
    return digest.of_values({section: values.get(section) for section in SECTIONS})
