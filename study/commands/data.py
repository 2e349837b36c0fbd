"""What `study data` does: list the data sets, get one onto disk, and write one out as files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from study import data
from study.data import cells
from study.data.cells import DatasetCounts
from study.data.dataset import Facts, fingerprint_of_splits
from study.data.download import ProgressCallback, find_or_download, ignore_progress
from study.errors import UserError, suggest_or_list
from study.files import as_user_error_if_unwritable, write_atomically
from study.knobs import Section, Value, read_knobs


@dataclass(frozen=True)
class SourceFile:
    """A file of a data set, and whether it is there."""

    path: str
    there: bool
    url: str | None


@dataclass(frozen=True)
class DataRow:
    """A data set.

    Attributes:
        origin: the distribution that provides it, None for this package.
        problem: why it cannot be used.
        keys, required: of its `data` section.
        facts: None where they, and its files, depend on what the user gives, or on files that are missing.
        there: whether all files are; None: not known.
    """

    name: str
    about: str
    origin: str | None
    problem: str | None = None
    keys: Sequence[str] = ()
    required: Sequence[str] = ()
    facts: Facts | None = None
    files: Sequence[SourceFile] = ()
    there: bool | None = None


@dataclass(frozen=True)
class PreparedData:
    """A data set whose files are there: its options, and the contents of its splits."""

    name: str
    options: Section
    fingerprint: str
    facts: Facts = field(metadata={"document": "inner"})  # see `study.ranking.json_documents`, slow to import
    splits: Mapping[str, cells.SplitCounts]


def list_data_sets() -> list[DataRow]:
    """Return one row per data set."""
    return [_data_row(name) for name in data.dataset_names()]


def data_sets_table(rows: Iterable[DataRow]) -> str:
    """Format the rows of `list_data_sets` as a table for people."""
    lines = [f"{'data set':<18} {'classes':>7} {'bias':>5}  {'sample':<12} {'files':<8} what"]
    for row in rows:
        facts = row.facts
        classes, bias = (facts.classes, facts.bias_classes or "-") if facts else ("-", "-")
        on_disk = {True: "there", False: "missing", None: "-"}[row.there]
        about = row.about.removeprefix(f"{row.name}: ")
        about += f" (of {row.origin})" if row.origin else ""
        about = f"cannot be used: {row.problem}" if row.problem else about
        lines.append(f"{row.name:<18} {classes:>7} {bias:>5}  {_shape_text(facts):<12} {on_disk:<8} {about}")
    return "\n".join([*lines, f"files are looked for in {data.data_root()}; get one: study data prepare NAME"])


def _shape_text(facts: Facts | None) -> str:
    return (" x ".join(map(str, facts.shape)) if facts else "") or "-"


def prepare_data_set(
    name: str, assignments: Iterable[str] = (), progress: ProgressCallback = ignore_progress
) -> PreparedData:
    """Get the files of a data set, check them, build what trials read, and return its facts and the size of its splits.

    Args:
        assignments: keys of the data section, as `rho=0.95`.
        progress: called during downloads.

    Raises:
        UserError: a name or key is unknown, a file cannot be got or is wrong, or the prepared data are damaged.
    """
    section = load_data_section(name, assignments, "prepare")
    for source in data.sources(section):
        find_or_download(source, progress)
    dataset = data.load(section)
    if dataset.folds is None and fingerprint_of_splits(dataset.splits) != dataset.fingerprint:
        raise UserError(
            f"{name}: its prepared files in {data.data_root()} are damaged: they have changed since they were written. "
            "Remove them (prepared/ there) and prepare it again"
        )
    splits = {split: cells.count_cells_of_split(part, dataset.facts) for split, part in dataset.splits.items()}
    options = {key: value for key, value in section.items() if key != "name"}
    facts = replace(dataset.facts, title=dataset.facts.title or name)
    return PreparedData(name, options, dataset.fingerprint, facts, splits)


def prepared_data_text(prepared: PreparedData) -> str:
    """Return what `prepare_data_set` returns as text for people."""
    from study.commands.plan import cell_count_lines  # imports more than a list of data sets needs

    facts, options = prepared.facts, ", ".join(f"{key}={value}" for key, value in prepared.options.items())
    bias = f", {facts.bias_classes} bias classes" if facts.bias_classes else ""
    lines = [
        f"{facts.title} ({options})" if options else facts.title,
        f"{facts.classes} classes{bias}, samples {_shape_text(facts)}, fingerprint {prepared.fingerprint}",
    ]
    counts = DatasetCounts.from_facts(prepared.splits, facts)
    warnings = cells.warnings_from_counts(counts, has_folds=bool(prepared.options.get("folds")))
    return "\n".join([*lines, *cell_count_lines(counts), *(f"warning: {warning}" for warning in warnings)])


@contextmanager
def download_progress_bars(quiet: bool = False) -> Iterator[ProgressCallback]:
    """Show the progress of downloads as bars on standard error, or not at all."""
    if quiet:
        yield ignore_progress
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def show(name: str, done: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done, total=total)

        yield show


def _data_row(name: str) -> DataRow:
    origin = data.CATALOGUE.declaring_distributions(name)
    if problem := data.CATALOGUE.why_unusable(name):
        return DataRow(name, "", origin, problem)
    module = data.find_dataset_module(name)
    own, about = read_knobs(module.Options), (module.__doc__ or "").partition("\n")[0].rstrip(".")
    keys, required = [knob.key for knob in own], [knob.key for knob in own if knob.required]
    if required:  # its files depend on what the user gives
        return DataRow(name, about, origin, None, keys, required)
    section = {"name": name}
    files = [SourceFile(one.path, one.path_or_none() is not None, one.url) for one in data.sources(section)]
    try:
        facts, there = data.describe(section), all(file.there for file in files)
    except UserError:  # its facts depend on files that are missing
        facts, there = None, False
    return DataRow(name, about, origin, None, keys, required, facts, files, there)


def load_data_section(name: str, assignments: Iterable[str], verb: str) -> dict[str, Value]:
    """Return the checked data section of a name and `key=value` overrides, every default filled in.

    Args:
        verb: of the command, for messages.

    Raises:
        UserError: a name or key is not known, or a key cannot have its value.
    """
    from study.spec.key_errors import ProblemCollector, validate_section
    from study.spec.section_models import make_section_model
    from study.spec.yaml_document import YamlDocument, apply_overrides

    if name not in data.dataset_names():
        known = suggest_or_list(name, data.dataset_names(), "Known", "study data list")
        raise UserError(f"{name!r}: no such data set. {known}")
    document = YamlDocument(f"study data {verb} {name}", {})
    apply_overrides(document, assignments)
    problems = ProblemCollector(document)
    model = make_section_model("data", read_knobs(data.find_dataset_module(name).Options))
    values = validate_section(model, document.values, (), problems)
    problems.raise_if_any()
    return {"name": name, **(values or {})}


LABELS_FILE_NAME = "labels.csv"
"""The table of labels that `export_images` writes beside the images, as users have with images of their own."""

LABELS_COLUMNS = ("file", "class", "bias", "split")
"""Columns of that table; `bias` is left out where the data have no bias labels."""


def export_images(name: str, folder: Path, assignments: Iterable[str] = ()) -> Path:
    """Write every labelled image of a data set as PNG, and a table of their labels; return the table's path.

    Args:
        folder: a new or an empty one.
        assignments: keys of the data section, as `rho=0.95`.

    Raises:
        UserError: a name or key is not known, the data set holds no images of one or three channels, its files are
            missing, or the folder is not empty.
    """
    section = load_data_section(name, assignments, "export")
    facts = data.describe(section)
    if facts.is_table or facts.shape[0] not in (1, 3):
        raise UserError(f"{name}: holds no images that a file can have: samples of shape {facts.shape}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: is there already and not empty. Give a new folder")
    dataset = data.load(section)
    import pandas as pd  # slow to import, and a list of data sets needs neither
    from PIL import Image

    columns = LABELS_COLUMNS if facts.bias_classes else tuple(column for column in LABELS_COLUMNS if column != "bias")
    rows: list[dict[str, str]] = []
    samples = sum(len(split) for split in dataset.splits.values())
    digits = len(str(max(0, samples - 1)))
    with as_user_error_if_unwritable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for split_name, split in dataset.splits.items():
            images = split.sample_inputs
            for index in np.flatnonzero(split.target >= 0):
                file = f"{len(rows):0{digits}}.png"
                pixels = np.ascontiguousarray(images[index].transpose(1, 2, 0)).squeeze()
                Image.fromarray(pixels).save(folder / file)
                target = _class_name_or_code(facts.class_names, int(split.target[index]))
                bias = "" if split.bias is None else _class_name_or_code(facts.bias_names, int(split.bias[index]))
                rows.append({"file": file, "class": target, "bias": bias, "split": split_name})
        write_atomically(folder / LABELS_FILE_NAME, pd.DataFrame(rows, columns=columns).to_csv(index=False), 0o666)
    return folder / LABELS_FILE_NAME


def _class_name_or_code(names: Sequence[str] | None, code: int) -> str:
    return "" if code < 0 else names[code] if names else str(code)
