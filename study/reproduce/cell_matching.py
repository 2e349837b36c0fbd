"""Which configurations of a study are which cells of a published table."""

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
    """The configurations that a study tries whatever comes of them: the given ones and the cells of its grid."""
    search = spec.search
    yield from ([search.baseline] if search.baseline is not None else []) + search.enqueue
    if search.sampler == "grid":
        yield from grid.cells(spec.space)


def belongs(where: Mapping[str, Any], params: Mapping[str, Any], document: Document) -> bool:
    """Whether a configuration has the keys and values of a cell.

    Args:
        where: of the cell; a name may be the label of an alternative of the study file.
        params: of the trial, in which labels stand.
        document: its sections, which have the value of every key.
    """
    return all(_same(params.get(key), value) or _same(_at(document, key), value) for key, value in where.items())


def _at(document: Document, key: str) -> Any:
    section, name = key.split(".")
    return document[section].get(name)


def _same(one: Any, other: Any) -> bool:
    """Equal as numbers, 1 and 1.0; true and 1 are two values."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other
