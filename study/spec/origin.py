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
    """Check that an exported file is unchanged apart from overrides, and note these in it: the original's figures are
    not theirs.

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
            "changed by hand, or cut short. Change it by --set KEY=VALUE; for a study file of your own remove `origin`"
        )
    if overrides := list(changes):
        origin.pop("digest", None)
        origin["changed"] = [*origin.get("changed", []), *overrides]


def configuration_digest(values: Any) -> str:
    """A digest of a study file's sections that define a trial."""
    return digest.of_values({section: values.get(section) for section in SECTIONS})
