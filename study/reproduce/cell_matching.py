"""Which configurations of a study belong to which cell of a published table."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from study.published import PublishedTable
from study.spec import StudySpec, grid

Labels = tuple[str, str]
"""Of a cell's row and column."""

Document = Mapping[str, Mapping[str, Any]]
"""The sections of a trial."""


def places(table: PublishedTable) -> list[Labels]:
    """Every cell of a table, row by row."""
    return list(product((row.label for row in table.rows), (column.label for column in table.columns)))


def planned(spec: StudySpec) -> Iterator[dict[str, Any]]:
    """The configurations that a study tries in any case: its baseline, the enqueued ones and the cells of its grid."""
    search = spec.search
    yield from ([search.baseline] if search.baseline is not None else []) + search.enqueue
    if search.sampler == "grid":
        yield from grid.cells(spec.space)


def belongs(where: Mapping[str, Any], params: Mapping[str, Any], document: Document) -> bool:
    """Whether a configuration has the keys and values of a cell.

    Args:
        where: keys and values of the cell; a name may be the label of an alternative in the study file.
        params: of the trial, with labels.
        document: the trial's sections, with the value of every key.
    """
    return all(_equal(params.get(key), value) or _equal(_value(document, key), value) for key, value in where.items())


def _value(document: Document, key: str) -> Any:
    section, name = key.split(".")
    return document[section].get(name)


def _equal(value: Any, other: Any) -> bool:
    """Whether two values are equal: 1 equals 1.0, but not true."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other
