"""A data set in the form in which trials use it: facts about it, and a few arrays per split."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal, NotRequired, Protocol

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray
from typing_extensions import TypedDict

AlignedClasses = tuple[int | tuple[int, ...], ...]
"""The class that each bias class goes with, -1 for one that goes with none, a tuple where several classes share one."""


def aligned_cells(aligned: Sequence[int | Sequence[int]], classes: int) -> list[list[bool]]:
    """Return for each class whether it goes with each bias class."""
    return [[y in own if isinstance(own, Sequence) else y == own for own in aligned] for y in range(classes)]


@dataclass(frozen=True)
class Facts:
    """Facts about a data set.

    Attributes:
        classes, bias_classes: number of each; `bias_classes` is None without bias labels.
        shape: (channels, height, width) of an image, (columns,) of a table's row.
        condition: width of the continuous attribute of each sample; 0 while its file is missing, None without such an
            attribute.
        bias_splits: names of the splits whose samples have bias labels; None: all of them.
        mean, deviation: of the pixels scaled to [0, 1], as the protocol normalises them: one number or one per channel.
            A table's columns are stored already normalised.
        splits: names of the splits; `train` and `val` are always among them.
        title: the data's name in tables and reports; empty: the name of the data set.
        class_names, bias_names: names of the classes and bias classes, in their order, if the data set has names.
        unlabelled: whether `train` has samples without a class (target -1), which no classifier may be trained on.
        some_bias: whether the bias of some samples is unknown (-1).
        bias_edges: edges of the groups, where the bias is a user's column of numbers divided into groups.
        telling: a sentence on each input of a user's table that predicts the class on its own.
        shortcut: where no bias is named, the input of a user's table that goes with the class far more than any other,
            and the share of the training rows in which it does, see `study.data.leakage`.
        aligned: the class of each bias class; None: none has a class of its own, so that no sample is aligned or
            conflicting.
    """

    classes: int
    bias_classes: int | None
    shape: tuple[int, ...]
    condition: int | None = None
    bias_splits: tuple[str, ...] | None = None
    mean: float | tuple[float, ...] = 0.5
    deviation: float | tuple[float, ...] = 0.5
    splits: tuple[str, ...] = ("train", "val", "test")
    title: str = ""
    unlabelled: bool = False
    class_names: tuple[str, ...] | None = None
    bias_names: tuple[str, ...] | None = None
    some_bias: bool = False
    bias_edges: tuple[float, ...] | None = None
    telling: tuple[str, ...] = ()
    shortcut: tuple[str, float] | None = None
    aligned: AlignedClasses | None = None

    def facts_of_split(self, split: str) -> "Facts":
        """Return the facts of one split: without bias classes if its samples have no bias labels."""
        if self.bias_splits is None or split in self.bias_splits:
            return self
        return replace(self, bias_classes=None)

    @property
    def aligned_cells(self) -> list[list[bool]] | None:
        """Whether each class goes with each bias class; None where no bias class has a class of its own."""
        return None if self.aligned is None else aligned_cells(self.aligned, self.classes)

    @property
    def is_table(self) -> bool:
        """Whether a sample is a row of numbers, not an image."""
        return len(self.shape) == 1


class HasLabels(Protocol):
    """Anything that has a class, and perhaps a bias class, for each of N samples: a split, or a list of files."""

    @property
    def target(self) -> NDArray[np.int64]:
        """Classes (N,), -1 where a sample has none."""

    @property
    def bias(self) -> NDArray[np.int64] | None:
        """Bias classes (N,), or None."""


@dataclass(frozen=True)
class SplitLabels:
    """Labels of a split without its inputs: `target` and `bias` as in `Split`."""

    target: NDArray[np.int64]
    bias: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Split:
    """Samples of one split.

    Attributes:
        inputs: images uint8 (N, C, H, W), a table's rows float32 (N, F), or features float16 (N, F).
        target: classes, int64 (N,).
        bias: bias (sensitive, spurious) classes, int64 (N,), -1 where unknown, or None.
        condition: continuous attributes, float32 (N, K), or None.
        rows: positions of the samples in `inputs`, (N,), where `inputs` also holds other samples; None: it holds these
            alone.
    """

    inputs: NDArray[np.generic]
    target: NDArray[np.int64]
    bias: NDArray[np.int64] | None = None
    condition: NDArray[np.float32] | None = None
    rows: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.target)

    @property
    def sample_inputs(self) -> NDArray[np.generic]:
        """Inputs of the samples alone, (N, ...): a copy where `inputs` also holds other samples."""
        return self.inputs if self.rows is None else self.inputs[self.rows]


ColumnKind = Literal["number", "word", "plain"]
"""What a table's column holds: a number to be standardised, a word as its number, or an input that stays as it is."""


@dataclass(frozen=True)
class RawTable:
    """A table before anything is fitted to it.

    Attributes:
        splits: by name, with rows float64 (N, C): numbers, NaN where one is missing, and words as numbers from 0.
        column_kinds: the kind of each column.
    """

    splits: Mapping[str, Split]
    column_kinds: tuple[ColumnKind, ...]


@dataclass(frozen=True)
class FoldAssignment:
    """Samples outside test, and the fold of each.

    Attributes:
        fold_count: number of folds.
        fold_of_sample: the fold of each sample, (N,).
        non_test_samples: the samples: images as they are stored, a table's raw rows.
        raw_table: the table; None: the data are not a table.
        group_of_sample: group label of samples that must stay in one fold, (N,); None: there are no groups.
    """

    fold_count: int
    fold_of_sample: NDArray[np.int64]
    non_test_samples: Split
    raw_table: RawTable | None = None
    group_of_sample: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Dataset:
    """A data set in memory, or memory-mapped.

    Attributes:
        facts: facts about it.
        splits: by name, those of `facts.splits`.
        stored_fingerprint: the fingerprint of these splits, if it was stored when they were prepared.
        folds: the folds, if there are any (`data.folds`); `study.data.folds.select_fold` makes splits from them.
    """

    facts: Facts
    splits: Mapping[str, Split]
    stored_fingerprint: str | None = None
    folds: FoldAssignment | None = None

    @cached_property
    def fingerprint(self) -> str:
        """Hash of every array: two data sets with one fingerprint hold the same data."""
        return self.stored_fingerprint or fingerprint_of_splits(self.splits)


def derived_fingerprint(original: str, change: str) -> str:
    """Return the fingerprint of data that were made of others by a stated change, as `8 folds of seed 0`."""
    return f"{original}, {change}"


def original_fingerprint(fingerprint: str) -> str:
    """Return the fingerprint of the data as they were read, of which others may have been made."""
    return fingerprint.partition(", ")[0]


def fingerprint_without_fold(fingerprint: str) -> str:
    """Return the fingerprint of all folds, of one of `study.data.folds.select_fold`; any other as it is."""
    return fingerprint.partition(": fold ")[0]


def fingerprint_of_fold(fingerprint: str, fold: int | None, trains_on_all: bool) -> str:
    """Return the fingerprint of one fold's data, of one of data with folds; any other as it is.

    Args:
        fold: that validates; None: all of them, of which `trains_on_all` makes one training split.
    """
    whole = fingerprint_without_fold(fingerprint)
    if whole == fingerprint or (fold is None and not trains_on_all):
        return whole
    return f"{whole}: fold {'none' if fold is None else fold}"


def joint_fingerprint(datasets: Mapping[str, Dataset]) -> str:
    """Return the fingerprint of a single data set, or a hash over those of several, each with its key."""
    if len(datasets) == 1:
        return next(iter(datasets.values())).fingerprint
    each = "".join(f"{key} {dataset.fingerprint}\n" for key, dataset in sorted(datasets.items()))
    return hashlib.sha256(each.encode()).hexdigest()[:16]


def fingerprint_of_splits(splits: Mapping[str, Split]) -> str:
    """Hash every array of these splits, as 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for name, split in sorted(splits.items()):
        digest.update(name.encode())
        for array in (split.sample_inputs, split.target, split.bias, split.condition):
            if array is not None:
                digest.update(str((array.dtype, array.shape)).encode())
                digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


class ShortcutColumn(TypedDict):
    """An input that goes with the class, as a ledger has it.

    Attributes:
        column: its name.
        share: of the training rows in which it does.
    """

    column: str
    share: float


class DatasetSummary(TypedDict):
    """A data set, as a ledger has it.

    Attributes:
        title, digest: its title, and its fingerprint, one for all its splits.
        shape: of a sample.
        rows: by split.
        telling: of a table, sentences on the inputs that predict the class alone.
        shortcut: of a table without a named bias, the input that goes with the class far more than any other.
        sources: the addresses of the files that it is made from, the path of a user's own, none where it comes with the
            software.
    """

    title: str
    digest: str
    shape: NotRequired[list[int]]
    rows: dict[str, Annotated[int, Ge(0)]]
    telling: NotRequired[list[str]]
    shortcut: NotRequired[ShortcutColumn]
    sources: list[str]


class GroupSizes(TypedDict, total=False):
    """Groups of a data set, as a ledger has them.

    Attributes:
        val, test: a list per class with the number of samples of each bias class; with folds, `val` is the first.
        val_by_fold: with folds, such lists of each fold.
        classes, biases: names in the order of their numbers.
        aligned: see `Facts`.
    """

    val: list[list[Annotated[int, Ge(0)]]]
    test: list[list[Annotated[int, Ge(0)]]]
    val_by_fold: list[list[list[Annotated[int, Ge(0)]]]]
    classes: list[str]
    biases: list[str]
    aligned: list[int | list[int]] | None
