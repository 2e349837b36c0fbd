"""A study goes on with the data that it began with, or says which are others now."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from study import data
from study.data import Dataset
from study.errors import UserError
from study.home.record import StudyRecord
from study.spec import StudySpec

NAMED = 3
"""Files that the message names; it counts the rest."""


def check_same_data(spec: StudySpec, datasets: Mapping[str, Dataset], record: StudyRecord) -> None:
    """Raise a UserError if the data are not those of the study's last session: names data sets and files written since.

    Args:
        datasets: those of `spec.data_sections`, by `data.key`.
    """
    if not record.sessions or record.sessions[-1].get("data") == data.joint_fingerprint(datasets):
        return
    told = " ".join(_differences(spec, datasets, record))
    raise UserError(
        f"{spec.name}: its data have changed since it began; trials on other data do not compare. {told}".rstrip()
        + " Put the earlier files back, or begin a study of another name"
    )


def _differences(spec: StudySpec, datasets: Mapping[str, Dataset], record: StudyRecord) -> Iterator[str]:
    """A sentence on each data set that differs, and one on the files."""
    last, sections = record.sessions[-1], {data.key(section): section for section in spec.data_sections}
    for key, dataset in datasets.items():
        before = last.get("datasets", {}).get(key)
        if before and before["digest"] != dataset.fingerprint:
            place = f" ({', '.join(before['sources'])})" if before["sources"] else ""
            yield f"{before['title']}{place}: fingerprint {dataset.fingerprint}, was {before['digest']}."
            written = _written_since(data.files(sections[key]), last["time"])
            if written:
                more = f" and {len(written) - NAMED} more" if len(written) > NAMED else ""
                yield f"Written since then: {', '.join(str(file) for file in written[:NAMED])}{more}."


def _written_since(files: Sequence[Path], seconds: float) -> list[Path]:
    """Those files that were written, or put there, after a time; by the time of their state, which copying does not
    keep."""
    return [file for file in files if os.path.exists(file) and os.stat(file).st_ctime > seconds]
