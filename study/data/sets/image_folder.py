"""image_folder: your own images, with a CSV that has a row per image: its file, its class and any attributes."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from study.data import cache, file_lists, holdout, label_files, table_columns, table_format, user_data
from study.data.cache import load_or_build_dataset
from study.data.dataset import Dataset, Facts
from study.data.file_lists import FileListing
from study.data.image_decoding import SquareMode
from study.data.image_files import IMAGE_SUFFIXES, ImageSizeKey, median_image_side, reason_not_photographs
from study.data.label_files import path_as_spelled_on_disk
from study.errors import UserError
from study.text import is_utf8, list_few_names, pluralise, quoted

if TYPE_CHECKING:
    import pandas as pd


CLASS_FROM_FOLDERS = "folders"
"""Value of the key `labels` for images in a folder for each class, without a table."""

IGNORED_FILE_SUFFIXES = (".db", ".ini", ".txt", ".json", ".csv", ".md")
"""Endings of files that programs leave beside pictures, or that describe them."""


@dataclass(frozen=True, kw_only=True)
class Options(user_data.UserDataOptions):
    """Keys of the `data` section.

    Attributes:
        path: folder of the images: absolute, or relative to the current folder or to the folder of all data sets.
        target: column of the classes, whole numbers or names.
        labels: the table with the labels, as CSV, Parquet or spreadsheet, relative to `path`; `folders`: there is none,
            the folder that an image lies in is its class.
        file: column of the image files, relative to `path` or to the folders `train`, `val`, `test` in it.
        frame: `crop` an image to the square in its middle, or `squash` it whole.
    """

    path: str
    target: str = "target"
    labels: str = "labels.csv"
    file: str = "file"
    size: ImageSizeKey = 64
    frame: SquareMode = "crop"


def describe(options: Options) -> Facts:
    """Read the facts from the table of labels; images are not read. Pixels are normalised with 0.5."""
    return _read_folder(options).facts


def load(options: Options) -> Dataset:
    """Load the images that the table of labels lists."""
    tables = _annotation_files(options)
    with cache.check_files_unchanged(tables):  # from before their labels are read until their content is known
        found = _read_folder(options)
        if options.labels == CLASS_FROM_FOLDERS:
            tables.append(label_files.find_user_path(options.path))  # with its names, which are the classes
        return load_or_build_dataset(
            "image_folder",
            options,
            found.facts,
            lambda: file_lists.decode_images_of_splits(found.splits, options.size, options.frame),
            [*tables, found.images],
        )


def load_labels(options: Options) -> dict[str, FileListing]:
    """List the files of each split with their labels."""
    return _read_folder(options).splits


def fold_groups(options: Options) -> NDArray[np.int64] | None:
    """Return a group label of each training and validation image, in this order: a group stays in one fold."""
    return _read_folder(options).fold_groups


def user_files(options: Options) -> list[Path]:
    """List the table, the file of conditions and the images."""
    return [*_annotation_files(options), *_read_folder(options).images]


def training_image_count_and_side(options: Options) -> tuple[int, int | None]:
    """Return the number of training images, and the usual shorter side of all in pixels, None if none can be read."""
    found = _read_folder(options)
    return len(found.splits["train"]), median_image_side(found.images)


def reason_images_not_photographs(options: Options) -> str | None:
    """Say why the images are not colour photographs, see `image_files.reason_not_photographs`; None if they are."""
    return reason_not_photographs(_read_folder(options).images)


def labels_table_path(folder: Path, labels: str) -> Path:
    """Return the path of the table that the key `labels` names.

    Raises:
        UserError: it would not be in the folder.
    """
    if label_files.is_outside_folder(labels):
        raise UserError(f"data.labels: {labels!r} given, {label_files.INSIDE_FOLDER_HINT}")
    return path_as_spelled_on_disk(folder, labels)


def _annotation_files(options: Options) -> list[Path]:
    """Return the table of labels, and the file of conditions where there is one."""
    more = [label_files.find_user_path(options.condition_file)] if options.condition_file else []
    if options.labels == CLASS_FROM_FOLDERS:
        return more
    return [labels_table_path(label_files.find_user_path(options.path), options.labels), *more]


def list_images_with_folder_class(folder: Path) -> list[tuple[str, str]]:
    """List the images under a folder, relative to it, each with its class: the name of the first folder on its path.

    Where there is a folder `train`, the first folder is the split and the second the class.

    Raises:
        UserError: there is none, or one is in no such folder.
    """
    in_splits = bool(_find_split_folders(folder))
    found = []
    for file in cache.list_files_at_path(folder):
        name = file.relative_to(folder)
        if file.suffix.lower() not in IMAGE_SUFFIXES:
            continue
        if len(name.parts) < 2 + in_splits:
            raise UserError(
                f"{folder}: {quoted(str(name))} is in no folder of a class. Move it into one, or give a table"
            )
        class_name = name.parts[int(in_splits)]
        if not is_utf8(class_name):
            raise UserError(f"{folder}: {quoted(class_name)}, the name of a class, is not in UTF-8. Rename the folder")
        found.append((name.as_posix(), class_name))
    if not found:
        raise UserError(f"{folder}: holds no images in folders of classes ({', '.join(IMAGE_SUFFIXES)})")
    return found


def _read_table(options: Options, folder: Path, path: Path) -> "pd.DataFrame":
    """Read the table of labels, or build it where folders say the class."""
    import pandas as pd

    if options.labels == CLASS_FROM_FOLDERS:
        if options.bias is not None:
            raise UserError(
                f"data.bias: {options.bias!r} given, but folders of classes say no bias (data.labels: folders)"
            )
        # as objects: pandas' own texts cannot hold a file's name that is not in UTF-8
        return pd.DataFrame(list_images_with_folder_class(folder), columns=[options.file, options.target], dtype=object)
    if options.labels == "labels.csv" and not path.exists():
        raise UserError(f"{path}: not found. Where folders are the classes: data.labels: {CLASS_FROM_FOLDERS}")
    needed = (options.file, *([options.split] if options.split else []))
    known = table_format.format_from_keys(vars(options))
    return label_files.read_label_table(path, needed, options.missing_marks, known)


def describe_reading(options: Options) -> list[str]:
    """Describe how the table of labels is read, where that is not as any CSV."""
    if options.labels == CLASS_FROM_FOLDERS:
        return []
    return table_format.describe_format(_annotation_files(options)[0], table_format.format_from_keys(vars(options)))


def user_file_notes(options: Options) -> list[str]:
    """Say what was decided about the files by no key, and which images are listed but missing, or are none."""
    found = _read_folder(options)
    others = list[Path]()
    if options.labels == CLASS_FROM_FOLDERS:
        folder = label_files.find_user_path(options.path)
        below = (file for file in cache.list_files_at_path(folder) if file.parent != folder)
        others = [file for file in below if file.suffix.lower() not in (*IMAGE_SUFFIXES, *IGNORED_FILE_SUFFIXES)]
    if others:
        endings = ", ".join(sorted({quoted(file.suffix) for file in others}))
        count = f"{pluralise(len(others), 'file')} in folders of classes"
        found.file_notes.append(f"{count}, whose ending ({endings}) is none of an image, left out, as {others[0]}")
    return [*found.file_notes, *file_lists.bad_file_messages(found.splits)]


@dataclass(frozen=True)
class _FolderContents:
    """What the files say; `fold_groups`: see the function of that name."""

    facts: Facts
    splits: dict[str, FileListing]
    file_notes: list[str]
    fold_groups: NDArray[np.int64] | None

    @property
    def images(self) -> list[Path]:
        """The files of all splits."""
        return [file for listing in self.splits.values() for file in listing.files]


def _read_folder(options: Options) -> _FolderContents:
    folder = label_files.find_user_path(options.path)
    path = folder if options.labels == CLASS_FROM_FOLDERS else labels_table_path(folder, options.labels)
    table = _read_table(options, folder, path)
    used = user_data.columns_named_by_keys(options, table.columns, path)
    if path != folder:
        header = label_files.read_header(path, table_format.format_from_keys(vars(options)))
        table_columns.check_header(header, used, path)
    names = table[options.file].tolist()
    if "" in names:
        raise UserError(f"{path}: column {options.file!r}, row {names.index('') + 1}: is empty. Take the row out")
    label_files.check_file_names(names, path, options.file)
    labels = user_data.read_table_labels(table, path, options, names)
    files, by_folder = _image_paths_and_splits(folder, names)
    _check_no_file_listed_twice(files, names, path, options.file)
    copies = cache.group_equal_files(files)
    labels, splits, same = user_data.divide_rows_into_splits(table, path, options, labels, copies, by_folder)
    found = user_data.group_split_notes(options.group, table[options.group].tolist(), splits) if options.group else []
    if copies is not None:
        repeated, across = len(copies) - len(np.unique(copies)), user_data.copies_across_splits_text(splits, copies)
        told = f"some are in several splits, as you divide them: {across}" if across else "they stay in one split"
        found.append(f"{repeated} of {len(copies)} pictures have the bytes of another one: {told}")
    everything = FileListing(files, labels.target, labels.bias, labels.condition)
    facts = user_data.facts_of_labels(labels, (3, options.size, options.size), splits)
    if same is not None:
        same = same[np.concatenate([splits["train"], splits.get("val", splits["train"][:0])])]
    return _FolderContents(
        facts, {name: holdout.select_samples(everything, members) for name, members in splits.items()}, found, same
    )


def _check_no_file_listed_twice(files: list[Path], names: list[str], path: Path, column: str) -> None:
    """Raise a UserError if a file is listed twice, as it might be in two splits."""
    rows: dict[Path, int] = {}
    for row, (file, name) in enumerate(zip(files, names, strict=True), 1):
        if file in rows:
            problem = f"{quoted(name)} is the file of row {rows[file]}"
            problem += "" if name == names[rows[file] - 1] else ", spelled differently"
            raise UserError(f"{path}: column {column!r}, row {row}: {problem}. Take one row out")
        rows[file] = row


def _find_split_folders(folder: Path) -> dict[str, Path]:
    """Return the folders that are named as splits, in capitals or not, by name; none where there is no `train`."""
    named = [path for path in sorted(folder.iterdir()) if path.name.lower() in label_files.SPLIT_ALIASES]
    homes = {path.name: path for path in named if path.is_dir()}
    return homes if "train" in label_files.parse_split_names([*homes]) else {}


def _image_paths_and_splits(folder: Path, names: list[str]) -> tuple[list[Path], list[str] | None]:
    """Return each image's path, and its split where folders say so."""
    homes = _find_split_folders(folder)
    if not homes:
        return [path_as_spelled_on_disk(folder, name) for name in names], None
    files, splits = [], []
    for name in names:
        first = Path(name).parts[0]
        if first in homes:
            found = {first: path_as_spelled_on_disk(folder, name)}
        else:
            found = {alias: path_as_spelled_on_disk(home, name) for alias, home in homes.items()}
            found = {alias: file for alias, file in found.items() if os.path.exists(file)}
        if not found:
            raise UserError(f"{folder}: {quoted(name)} is in none of its folders {', '.join(homes)}")
        if len(found) > 1:
            places, example = list_few_names([*found]), quoted(f"{next(iter(found))}/{name}")
            raise UserError(
                f"{folder}: {quoted(name)} is in several of its folders: {places}. List it with its folder, as "
                f"{example}, or remove all but one"
            )
        ((home, file),) = found.items()
        files.append(file)
        splits.append(home)
    return files, splits
