"""Data sets by name: each is a module of the form `DatasetModule`, or a row of `SETS` in a module of `sets`."""

import json
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from study.catalogue import Catalogue, find_modules
from study.data import folds, holdout
from study.data.cache import load_or_build_dataset
from study.data.dataset import (
    Dataset,
    DatasetSummary,
    Facts,
    HasLabels,
    Split,
    SplitLabels,
    fingerprint_without_fold,
    joint_fingerprint,
)
from study.data.source import Source, data_root
from study.data.table_columns import FaultsByRow, TableEncoding
from study.data.table_findings import ColumnFinding
from study.errors import UserError
from study.knobs import Knob, Section, read_knobs

if TYPE_CHECKING:  # brings the library that decodes images
    from study.data.image_decoding import SquareMode

__all__ = ["Dataset", "Facts", "HasLabels", "Source", "Split", "TableEncoding", "data_root", "joint_fingerprint"]
"""Names that this package passes on from its modules."""


OptionalResult = TypeVar("OptionalResult")


class DatasetModule(Protocol):
    """A data set's module. Users are shown the first line of its docstring, `NAME: what it is`.

    `describe` returns the facts without reading the data, `load` the arrays. A table has `shape=(columns,)` and rows of
    float32 that are already normalised. A module may also have:

        build(options)                          in the place of `load` where reading is slow: the splits, kept on disk
        sources(options), or a tuple SOURCES    the files that it needs, each a `Source`
        paths_read_by_build(options)            the files and folders that `build` reads, if not the whole sources
        load_labels(options)                    the labels of each split, without its samples
        user_files(options)                     the user's own files that it reads
        user_file_notes(options)                sentences on what was decided about them by no key
        describe_reading(options)               lines on how they are read
        column_findings(options)                findings about the columns of a user's table
        findings_before_study_file(options)     the same, and all that would refuse it
        fit_encoding(options)                   how the columns of a table become inputs
        load_encoded(options, encoding)         the data, encoded as another table is
        load_raw_table(options)                 a table before anything is fitted to its training rows, for folds
        fold_groups(options)                    for folds: a group label of each training and validation sample
        FRAME                                   how images become square

    This file, saved as `study/data/sets/stripes.py`, is all that `data.name: stripes` needs:

        \"\"\"stripes: small images, light or dark, some of them with a brighter first row.\"\"\"

        from dataclasses import dataclass
        from typing import Annotated

        import numpy as np

        from study.data.dataset import Dataset, Facts, Split
        from study.knobs import Range


        @dataclass(frozen=True)
        class Options:
            \"\"\"Keys of the `data` section.

            Attributes:
                samples: of each split.
            \"\"\"

            samples: Annotated[int, Range(low=4)] = 64


        def describe(options: Options) -> Facts:
            return Facts(classes=2, bias_classes=2, shape=(3, 8, 8), aligned=(0, 1))


        def load(options: Options) -> Dataset:
            random = np.random.default_rng(0)
            splits = {name: drawn(options.samples, random) for name in ("train", "val", "test")}
            return Dataset(describe(options), splits)


        def drawn(samples: int, random: np.random.Generator) -> Split:
            target, bias = np.arange(samples) % 2, np.arange(samples) // 2 % 2
            images = random.integers(0, 99, (samples, 3, 8, 8)) + 100 * target[:, None, None, None]
            images[:, :, 0] += 50 * bias[:, None, None]
            return Split(images.astype(np.uint8), target, bias)
    """

    @property
    def Options(self) -> Callable[..., Any]:  # noqa: N802
        """Frozen dataclass whose fields are the keys of the `data` section."""

    def describe(self, options: Any) -> Facts:
        """Return the facts of the data set with these options."""

    def load(self, options: Any) -> Dataset:
        """Load its splits as arrays."""

    def build(self, options: Any) -> Mapping[str, Split]:
        """Read its splits, which are then kept on disk."""


def _builtin_datasets() -> Mapping[str, Any]:
    rows = [module.SETS for module in find_modules("study.data.sets", "SETS").values()]
    return dict(ChainMap(find_modules("study.data.sets", "Options"), *rows))


CATALOGUE = Catalogue("study.data", ("Options", "describe"), "study.data.sets", _builtin_datasets)


def dataset_names() -> list[str]:
    """List the names that `data.name` may have."""
    return CATALOGUE.listed_names()


def data_knobs(name: str) -> list[Knob]:
    """List the keys of a `data` section with this name, without `name` itself."""
    return list(read_knobs(find_dataset_module(name).Options))


def find_dataset_module(name: str) -> DatasetModule:
    """Find the module of a data set."""
    found: DatasetModule = CATALOGUE.find_module(name)
    if not hasattr(found, "load") and not hasattr(found, "build"):
        raise UserError(f"data.name: {name}: its module defines neither load nor build")
    return found


def section_key(data: Section) -> str:
    """Write a `data` section as a text that is equal for equal sections."""
    return json.dumps(data, sort_keys=True)


def describe(data: Section) -> Facts:
    """Return the facts of a `data` section's data set."""
    data_set, options = _module_and_options(data)
    _check_folds(options)
    return data_set.describe(options)


def sources(data: Section) -> tuple[Source, ...]:
    """Return the files that the data set of a `data` section is made from."""
    return tuple(
        _call_optional_function(data, "sources", getattr(find_dataset_module(str(data["name"])), "SOURCES", ()))
    )


def load(data: Section) -> Dataset:
    """Load the data set of a `data` section, as arrays in memory or memory-mapped."""
    data_set, options = _module_and_options(data)
    _check_folds(options)
    if hasattr(data_set, "load"):
        dataset = data_set.load(options)
    else:
        places = _call_optional_function(data, "paths_read_by_build", None) or sources(data)
        build = partial(data_set.build, options)
        dataset = load_or_build_dataset(str(data["name"]), options, data_set.describe(options), build, places)
    if (count := _fold_count(options)) is None or not len(dataset.splits["train"]):
        return dataset  # of a training function, which divides its samples itself
    groups = _call_optional_function(data, "fold_groups", None)
    raw = _call_optional_function(data, "load_raw_table", None)
    return folds.divide_into_folds(dataset, count, _split_seed(options), groups, raw)


def load_labels(data: Section) -> Mapping[str, HasLabels] | None:
    """Read the labels of each split, and no more of the files than that takes; None: its module has no `load_labels`.

    Raises:
        UserError: a file is missing or damaged.
    """
    found: Mapping[str, HasLabels] | None = _call_optional_function(data, "load_labels", None)
    options = _module_and_options(data)[1]
    if found is None or (count := _fold_count(options)) is None or not len(found["train"].target):
        return found
    learn = holdout.concatenate_samples(
        *(SplitLabels(found[name].target, found[name].bias) for name in ("train", "val"))
    )
    numbers = holdout.assign_folds(
        holdout.cell_of_sample(learn), count, _split_seed(options), _call_optional_function(data, "fold_groups", None)
    )
    parts = {"train": holdout.select_samples(learn, numbers != 0), "val": holdout.select_samples(learn, numbers == 0)}
    return {**parts, **{name: of_split for name, of_split in found.items() if name not in parts}}


def user_files(data: Section) -> Sequence[Path]:
    """Return the user's own files from which a data set is made; none where its module has no `user_files`."""
    return _call_optional_function(data, "user_files", ())


def user_file_notes(data: Section) -> list[str]:
    """Return sentences on what was decided about the user's files by no key."""
    return list(_call_optional_function(data, "user_file_notes", []))


def describe_column_reading(data: Section) -> list[str]:
    """Return lines on how the columns of a user's table are read; none where the module has no `describe_reading`."""
    return list(_call_optional_function(data, "describe_reading", []))


def column_findings(data: Section) -> list[ColumnFinding]:
    """Return findings on the columns of a user's table; none where the module has no `column_findings`."""
    return list(_call_optional_function(data, "column_findings", []))


def findings_before_study_file(data: Section) -> list[ColumnFinding]:
    """Return findings on a table before it has a study file, with all that refuses it."""
    return list(_call_optional_function(data, "findings_before_study_file", []))


def fit_table_encoding(data: Section) -> TableEncoding | None:
    """Return how the columns of a user's table become inputs; None: the data set's module does not tell.

    Raises:
        UserError: a file is missing or damaged.
    """
    return _call_optional_function(data, "fit_encoding", None)


def can_read_new_samples(name: str) -> bool:
    """Return whether a model can be given files like those of a data set: images, or rows whose encoding is kept."""
    module = find_dataset_module(name)
    return hasattr(module, "fit_encoding") or not hasattr(module, "load_raw_table")


def load_encoded(data: Section, encoding: TableEncoding) -> tuple[Dataset, FaultsByRow]:
    """Load a `data` section's table with an encoding that was fitted to other rows.

    Returns:
        The data set, and the faults of rows that cannot be inputs, by row of the table from 0.

    Raises:
        UserError: its module takes no encoding, or its table has no such columns or values.
    """
    data_set, options = _module_and_options(data)
    if not hasattr(data_set, "load_encoded"):
        raise UserError(f"data.name: {data['name']!r} given, a table is needed, as the model was trained on one")
    dataset, faults = data_set.load_encoded(options, encoding)
    return dataset, faults


def image_square_mode(data: Section) -> "SquareMode":
    """Return how the data set of a `data` section makes images square."""
    data_set, options = _module_and_options(data)
    chosen: SquareMode = getattr(options, "frame", getattr(data_set, "FRAME", "crop"))
    return chosen


def _fold_count(options: Any) -> int | None:
    found: int | None = getattr(options, "folds", None)
    return found


def _split_seed(options: Any) -> int:
    return int(getattr(options, "split_seed", getattr(options, "seed", 0)))


def _check_folds(options: Any) -> None:
    """Refuse folds where validation is not cut as biased as training."""
    kind = getattr(options, "val", None)
    if _fold_count(options) and kind not in (None, "biased"):
        raise UserError(
            f"data.folds: {_fold_count(options)} given with data.val: {kind}. Folds are as biased as training: allowed "
            "with data.val: biased"
        )


def load_datasets(sections: Iterable[Section]) -> dict[str, Dataset]:
    """Load the data sets of several `data` sections, by `section_key`."""
    return {section_key(data): load(data) for data in sections}


def _module_and_options(data: Section) -> tuple[DatasetModule, Any]:
    data_set = find_dataset_module(str(data["name"]))
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items() if key != "name"}
    return data_set, data_set.Options(**values)


def _call_optional_function(data: Section, name: str, otherwise: OptionalResult) -> OptionalResult:
    """Call an optional function of a data set's module for a `data` section; return `otherwise` where it has none."""
    data_set, options = _module_and_options(data)
    function: Callable[[Any], OptionalResult] = getattr(data_set, name, lambda options: otherwise)
    return function(options)


def is_data_unchanged(fingerprint: str | None, digests: Sequence[str], datasets: Mapping[str, Dataset]) -> bool:
    """Tell whether these are the data that a study ran on.

    Args:
        fingerprint, digests: of all its data together, and of each data set, as its ledger tells.

    Of data with folds it does not matter which fold was told. Several are compared one by one in the order of the
    study's sections, not by their keys: a later version may add options to a section that leave its data as they are.
    """
    joint, now = joint_fingerprint(datasets), [dataset.fingerprint for dataset in datasets.values()]
    is_same = fingerprint is not None and fingerprint_without_fold(fingerprint) == fingerprint_without_fold(joint)
    return is_same or (len(digests) > 1 and list(digests) == now)


def dataset_title(data: Section, facts: Facts) -> str:
    """Return what a data set is called in tables and reports; files of a user's own are called by their name."""
    place = data.get("path")
    return facts.title or (Path(str(place)).resolve().name if place else "") or str(data["name"])


def summarise_datasets(datasets: Mapping[str, Dataset]) -> dict[str, DatasetSummary]:
    """Describe each data set, by `study.data.section_key` of its section."""
    told: dict[str, DatasetSummary] = {}
    for key, dataset in datasets.items():
        section = json.loads(key)
        own = section.get("path")
        told[key] = {
            "title": dataset_title(section, dataset.facts),
            "digest": dataset.fingerprint,
            "shape": list(dataset.facts.shape),
            "rows": {name: len(split) for name, split in dataset.splits.items()},
            "sources": [own] if isinstance(own, str) else [source.url or source.path for source in sources(section)],
        }
        if dataset.facts.is_table:
            told[key]["telling"] = list(dataset.facts.telling)
        if dataset.facts.shortcut:
            column, share = dataset.facts.shortcut
            told[key]["shortcut"] = {"column": column, "share": share}
    return told
