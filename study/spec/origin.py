"""Where an exported configuration comes from, as its file says: true for as long as nothing in the file was changed."""

from collections.abc import Iterable
from typing import Any

from study.errors import UserError
from study.files import digest
from study.spec.document import Document
from study.training.config import SECTIONS

FORMAT = 2
"""Version of an exported file. Version 1 had no digest: it is read as one that nobody checks."""


def check_origin(document: Document, changes: Iterable[str]) -> None:
    """Look whether an exported file is as it was written, before overrides; note these, so that nobody takes the
    figures of the original for theirs.

    Raises:
        UserError: it is of a newer version, or was changed by hand.
    """
    origin = document.values.get("origin")
    if not isinstance(origin, dict):
        return
    version = origin.get("format", FORMAT)
    if not isinstance(version, int) or not 1 <= version <= FORMAT:
        place = document.place(("origin", "format"))
        raise UserError(
            f"{place}: origin.format: {version!r} given, this version of study reads 1 to {FORMAT}. Update it"
        )
    if "digest" in origin and origin["digest"] != configuration_digest(document.values):
        raise UserError(
            f"{document.place(('origin', 'digest'))}: the configuration is not the one that was exported: it was "
            "changed by hand, or cut short. Changes: --set KEY=VALUE. As a study file of your own: take `origin` out"
        )
    if given := list(changes):
        origin.pop("digest", None)
        origin["changed"] = [*origin.get("changed", []), *given]


def configuration_digest(values: Any) -> str:
    """Of a study file's sections that say what one trial is."""
    return digest.of_values({section: values.get(section) for section in SECTIONS})
