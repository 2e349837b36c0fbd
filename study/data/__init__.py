"""Data sets by name: each is one module with a dataclass `Options`, `describe(options)` and `load(options)`, or a row
of such in `sets.listed_images`.

`describe` gives the facts of the data set without reading it; `load` gives its arrays, from `cache.cached` if reading
takes time. `sources(options)`, or a tuple `SOURCES`, lists the files that it needs, `files(options)` those of a user's
own. `labels(options)`, where there is one, gives the labels of each split without its samples. `encoding(options)` and
`encoded(options, encoding)`, of a table, tell how columns become inputs. `FRAME` says how images become square.
`study data list` prints the first line of its docstring, `NAME: what it is`. Other distributions can bring more: see
`study.catalogue`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from study.catalogue import Catalogue, modules
from study.data.dataset import Dataset, Facts, Labelled, Split, joint_fingerprint
from study.data.source import Source, root
from study.data.table_columns import Encoding
from study.errors import UserError
from study.knobs import Knob, knobs

if TYPE_CHECKING:  # brings the library that decodes images
    from study.data.pixels import Frame

__all__ = [
    "CATALOGUE",
    "Dataset",
    "Encoding",
    "Facts",
    "Labelled",
    "Source",
    "Split",
    "data_knobs",
    "describe",
    "encoded",
    "encoding",
    "files",
    "frame",
    "joint_fingerprint",
    "key",
    "labels",
    "load",
    "load_all",
    "module",
    "names",
    "notes",
    "reading",
    "root",
    "sources",
]


def _own() -> Mapping[str, Any]:
    (listed_images,) = modules("study.data.sets", "SETS").values()
    return {**modules("study.data.sets", "Options"), **listed_images.SETS}


CATALOGUE = Catalogue("study.data", ("Options", "describe", "load"), "study.data.sets", _own)


def names() -> list[str]:
    """The names that `data.name` may have."""
    return CATALOGUE.names()


def data_knobs(name: str) -> list[Knob]:
    """The keys of a `data` section with this name, without `name` itself."""
    return list(knobs(module(name).Options))


def module(name: str) -> Any:
    """The module of a data set."""
    return CATALOGUE.find(name)


def key(data: Mapping[str, Any]) -> str:
    """A text that is the same for equal `data` sections."""
    return json.dumps(data, sort_keys=True)


def describe(data: Mapping[str, Any]) -> Facts:
    """The facts of a `data` section's data set."""
    data_module, options = _find(data)
    facts: Facts = data_module.describe(options)
    return facts


def sources(data: Mapping[str, Any]) -> tuple[Source, ...]:
    """The files that the data set of a `data` section is made from."""
    data_module, options = _find(data)
    return tuple(
        data_module.sources(options) if hasattr(data_module, "sources") else getattr(data_module, "SOURCES", ())
    )


def load(data: Mapping[str, Any]) -> Dataset:
    """The data set of a `data` section, as arrays in memory or mapped into it."""
    data_module, options = _find(data)
    dataset: Dataset = data_module.load(options)
    return dataset


def labels(data: Mapping[str, Any]) -> Mapping[str, Labelled] | None:
    """Those of each split, without reading more of the files than that takes; None: its module has no `labels`.

    Raises:
        UserError: a file is missing or damaged.
    """
    data_module, options = _find(data)
    return data_module.labels(options) if hasattr(data_module, "labels") else None


def files(data: Mapping[str, Any]) -> Sequence[Path]:
    """The user's own files that the data set of a `data` section is made from; none where its module does not tell."""
    data_module, options = _find(data)
    return data_module.files(options) if hasattr(data_module, "files") else ()


def notes(data: Mapping[str, Any]) -> list[str]:
    """Sentences about what was decided of the user's files that no key says; none where the module has no `notes`."""
    data_module, options = _find(data)
    return list(data_module.notes(options)) if hasattr(data_module, "notes") else []


def reading(data: Mapping[str, Any]) -> list[str]:
    """Lines that say how the columns of a user's table are read; none where the module has no `reading`."""
    data_module, options = _find(data)
    return list(data_module.reading(options)) if hasattr(data_module, "reading") else []


def encoding(data: Mapping[str, Any]) -> Encoding | None:
    """Return how the columns of a user's table become inputs; None: the data set's module does not tell it.

    Raises:
        UserError: a file is missing or damaged.
    """
    data_module, options = _find(data)
    return data_module.encoding(options) if hasattr(data_module, "encoding") else None


def encoded(data: Mapping[str, Any], encoding: Encoding) -> Dataset:
    """The data set of a `data` section with inputs as an encoding makes them that was fitted to other rows.

    Raises:
        UserError: its module takes no encoding, or its table has no such columns or values.
    """
    data_module, options = _find(data)
    if not hasattr(data_module, "encoded"):
        raise UserError(f"data.name: {data['name']!r} given, a table is needed, as the model was trained on one")
    dataset: Dataset = data_module.encoded(options, encoding)
    return dataset


def frame(data: Mapping[str, Any]) -> "Frame":
    """Return how the data set of a `data` section makes images square."""
    data_module, options = _find(data)
    chosen: Frame = getattr(options, "frame", getattr(data_module, "FRAME", "crop"))
    return chosen


def load_all(sections: Iterable[Mapping[str, Any]]) -> dict[str, Dataset]:
    """The data sets of several `data` sections, by `key`."""
    return {key(data): load(data) for data in sections}


def _find(data: Mapping[str, Any]) -> tuple[Any, Any]:
    data_module = module(data["name"])
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "name"}
    return data_module, data_module.Options(**values)


def inventory(datasets: Mapping[str, Dataset]) -> dict[str, dict[str, Any]]:
    """Of each data set, by `study.data.key` of its section.

    Returns:
        `title`; `digest`, its fingerprint, which is one for all its splits; `shape` of a sample; `rows` by split; and
        `sources`: the addresses of the files that it is made from, the path of a user's own, none where it comes with
        the software.
    """
    return {key: _told(json.loads(key), dataset) for key, dataset in datasets.items()}


def _told(section: Mapping[str, Any], dataset: Dataset) -> dict[str, Any]:
    own = section.get("path")
    return {
        "title": dataset.facts.title or str(section["name"]),
        "digest": dataset.fingerprint,
        "shape": list(dataset.facts.shape),
        "rows": {name: len(split) for name, split in dataset.splits.items()},
        "sources": [own] if isinstance(own, str) else [source.url or source.path for source in sources(section)],
    }
