"""The metrics of a trained model on a split of its data set, or of other data of the same kind."""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study import data
from study.data import holdout, label_files, table_columns
from study.data.dataset import Dataset, Facts, Split
from study.data.folds import select_fold
from study.data.table_columns import CellFault, FaultsByRow
from study.data.table_format import TABLE_SUFFIXES
from study.errors import UserError
from study.files import safe_path_below
from study.home import events
from study.home.folder import Home
from study.home.ledger import Ledger, read_entries
from study.home.record import StudyRecord, finite_metrics
from study.metrics import group_names
from study.metrics.group_names import OptionalClassNames
from study.metrics.worst_group import GroupCounts, WorstGroup, conflicting_group_sizes, find_worst_group
from study.spec import load_study
from study.spec.key_errors import ProblemCollector, validate_section
from study.spec.search_checks import all_trial_faults
from study.spec.section_models import make_section_model
from study.spec.yaml_document import YamlDocument, apply_overrides, mapping_or_empty
from study.text import list_few_names, quoted
from study.trained import ModelDescription
from study.trained.classifier import load_model_weights
from study.trained.model_files import test_split_fingerprint
from study.training import ensemble_probabilities
from study.training.config import TrialConfig
from study.training.device import resolve_device
from study.training.diverged import DivergedError
from study.training.trial import Trial

ALL_SAMPLES_SPLIT = "all"
"""Split of every sample with a class, of data that are not the model's own."""


@dataclass(frozen=True)
class EvaluationResult:
    """The result of an evaluation.

    Attributes:
        metrics: as `SPLIT/NAME`, None for one that is no number on this split.
        samples: number of the split.
        group_sizes: samples of each group, by the reported name of its accuracy; empty without bias labels.
        worst_group: groups that are served worst; None where that is not known, or all are served alike.
        left_out: rows of the table that the model cannot take.
        unknown_bias_classes: bias classes that the model was not trained on; samples of theirs are in no group.
        class_sentences: sentences on the class with the lowest accuracy, and on a threshold that is off.
        groups_in_words: class and bias class, by name, of each metric that is of one group.
    """

    metrics: Mapping[str, float | None]
    samples: int
    group_sizes: Mapping[str, int]
    worst_group: WorstGroup | None
    left_out: FaultsByRow
    unknown_bias_classes: Sequence[str]
    class_sentences: Sequence[str]
    groups_in_words: Mapping[str, str]


def evaluate_model(
    home: Home,
    model: Path,
    split: str,
    study: str | None = None,
    assignments: Iterable[str] = (),
    device: str | None = None,
    strict: bool = False,
) -> EvaluationResult:
    """Compute every metric of a trained model on a split; on its own data these are the values of its training.

    Classes and bias classes are numbered as the model does, by name; a bias of numbers has the model's groups, unless
    the data's own edges are given.

    A reading of the model's own test split is noted in its study's ledger, if that study is in this home.

    Args:
        model: the description's file.
        split: of the data, or `ALL_SAMPLES_SPLIT`.
        study: a study file whose data are used, or a table or folder that is read as the model's own was; None: the
            model's own.
        assignments: overrides of keys of the data, `data.rho=0.9`.
        device: where it computes: auto, cpu, cuda, cuda:1; None: auto, a GPU if one works.
        strict: whether rows that the model cannot take are refused; else they are left out.

    Raises:
        UserError: the device, the model or the data cannot be used, the data are not of the model's kind, have
            classes that it does not know, no such split, or are the model's own and the split is `ALL_SAMPLES_SPLIT`.
    """
    description = ModelDescription.read_file(model)
    assignments = list(assignments)
    section = _data_section(description, study, assignments)
    is_own_section = data.section_key(section) == data.section_key(description.config["data"])
    if split == ALL_SAMPLES_SPLIT and "path" in section:
        section = {**section, "val": None, "folds": None}  # with which each of a user's samples is in a split
    if description.facts.bias_edges and section.get("bias") and section.get("bias_bins", ()) in (None, "quartiles"):
        section = {**section, "bias_bins": list(description.facts.bias_edges)}  # not the quartiles of other rows
    config = TrialConfig.from_document({**description.config, "data": section})
    encoding = description.encoding
    left_out: FaultsByRow = {}
    if encoding is None:
        dataset = select_fold(data.load(section), None)
    else:
        dataset, left_out = data.load_encoded(section, encoding)
    if strict and left_out:
        faults = table_columns.summarise_faults(left_out)
        raise UserError("\n".join(["--strict: the model cannot take every row", *faults]))
    foreign = unknown_bias_classes(dataset.facts, description.facts)
    _check_classes_of_table(section, dataset.facts, description.facts)
    dataset = renumber_classes_as_model(dataset, description.facts)
    if dataset.facts.bias_classes is None and description.facts.bias_classes:
        dataset = _set_bias_unknown(dataset, description.facts)  # what needed it to train is part of the model
    used = {**description.config, "data": section}
    if unfit := list(all_trial_faults(used, replace(dataset.facts, some_bias=description.facts.some_bias))):
        raise UserError("\n".join(f"the model: {'.'.join(at)}: {why}" for at, why in unfit))
    known = description.told["test_fingerprint"] if split in ("test", ALL_SAMPLES_SPLIT) else None
    is_own = known is not None and test_split_fingerprint(dataset) == known
    if split == ALL_SAMPLES_SPLIT:
        if is_own or is_own_section:
            raise UserError("--split all: these are the model's own data, and it was trained on a part of them")
        dataset = _add_all_samples_split(dataset)
    _check_split_fits_model(description.facts, dataset.facts, split)
    if not len(dataset.splits[split]):
        raise UserError(f"--split {split}: no sample is left for it; --split all takes every sample")
    if config.train.with_val:
        if split == "val":
            better = "" if is_own_section else ", and of new data it has none: --split all takes every sample"
            raise UserError(f"--split val: the model was trained on this split{better}")
        config = replace(config, train=replace(config.train, with_val=False))
    # the network that inferred groups for the training is no part of the model
    config = replace(config, train=replace(config.train, inferred_groups="none"))
    weights = [safe_path_below(model.parent, name) for name in description.digest_by_weights_file]
    for path, digest in zip(weights, description.digest_by_weights_file.values(), strict=True):
        load_model_weights(path, digest)  # refuses what was not written by study
    place = str(resolve_device(device))
    noted = _note_test_reading(home, description) if is_own and split == "test" else nullcontext()
    with description.use_frozen_network(model.parent), noted:
        trial = Trial(config, dataset, place, loads_weights=False)
        try:
            measured = finite_metrics(_split_metrics(trial, split, weights))
            groups, classes = _worst_group(trial, split, measured), _lowest_class_sentences(trial, split, measured)
            sizes = group_names.group_sizes_by_metric(split, _group_sizes(trial, split))
            words = _groups_in_words(dataset.facts, measured)
            size = len(dataset.splits[split])
            return EvaluationResult(measured, size, sizes, groups, left_out, foreign, classes, words)
        except DivergedError as diverged:
            raise UserError(f"{model}: {diverged}: the model cannot be measured on these data") from None


def _split_metrics(trial: Trial, split: str, weights: Sequence[Path]) -> dict[str, float]:
    """Return the metrics of a split, of several networks those of their mean probability; raises `DivergedError`."""
    if len(weights) == 1:
        trial.load_model(weights[0])
        return trial.evaluate(split, final=True)
    told = []
    for path in weights:
        trial.load_model(path)
        told.append(trial.evaluate.log_probabilities(split))
    return trial.evaluate.metrics_of_scores(split, ensemble_probabilities.mean_log_probabilities(told))


def _check_classes_of_table(section: Mapping[str, Any], facts: Facts, model: Facts) -> None:
    """Raise a UserError with file, rows and values of classes in a user's table that the model does not know."""
    foreign, place = _unknown_names(facts.class_names, model.class_names), str(section.get("path") or "")
    path = label_files.find_user_path_or_none(place) if place else None
    if not foreign or path is None or path.suffix.lower() not in TABLE_SUFFIXES:
        return
    column = str(section["target"])
    rows = label_files.read_user_table(path, section, {column: str})
    if column not in rows:
        return  # several columns joined
    known = tuple(map(quoted, model.class_names or ()))
    faults = {
        row: [CellFault(column, quoted(name), "no class of the model", known)]
        for row, name in enumerate(label_files.column_as_text(rows[column]))
        if name in foreign
    }
    if faults:
        (told,) = table_columns.summarise_faults(faults)
        raise UserError(f"{path}: {told}. Take out these rows, or write the model's names if they mean the same")


def _groups_in_words(facts: Facts, metrics: Iterable[str]) -> dict[str, str]:
    told = {name: group_names.group_metric_in_words(name, facts.class_names, facts.bias_names) for name in metrics}
    return {name: words for name, words in told.items() if words}


def is_path_of_user_data(place: str) -> bool:
    """Tell whether a path is that of a table or of a folder, not of a study file."""
    return os.path.isdir(place) or Path(place).suffix.lower() in TABLE_SUFFIXES


def _data_section(description: ModelDescription, study: str | None, assignments: list[str]) -> dict[str, Any]:
    """Return the complete `data` section: the model's own or a study file's, with overrides."""
    for assignment in assignments:
        if not assignment.startswith("data."):
            raise UserError(f"--set {assignment}: only keys of the data can be set, the model is evaluated as it is")
    if study is not None and not is_path_of_user_data(study):
        return dict(load_study(study, assignments).base["data"])
    document = YamlDocument("the model", {"data": dict(description.config["data"])})
    if study is not None:
        own = str(description.config["data"]["name"])
        if all(knob.key != "path" for knob in data.data_knobs(own)):
            raise UserError(f"--data {study}: the model learned {own}, which has no files of yours; give a study file")
        document.override_key("data.path", study, "--data")
    apply_overrides(document, assignments)
    values = dict(mapping_or_empty(document.values["data"]))
    name = str(values.pop("name"))
    problems = ProblemCollector(document)
    checked = validate_section(make_section_model("data", data.data_knobs(name)), values, ("data",), problems)
    problems.raise_if_any()
    return {"name": name, **(checked or {})}


def _add_all_samples_split(dataset: Dataset) -> Dataset:
    """Return the data set with a further split `ALL_SAMPLES_SPLIT`: every sample that has a class."""

    def joined(name: str) -> Any:
        arrays = [getattr(dataset.splits[split], name) for split in dataset.facts.splits]
        return None if any(array is None for array in arrays) else np.concatenate(arrays)

    every = Split(*map(joined, ("inputs", "target", "bias", "condition")))
    whole = holdout.select_samples(every, every.target >= 0)
    known = dataset.facts.bias_splits if whole.bias is None else None
    facts = replace(dataset.facts, splits=(*dataset.facts.splits, ALL_SAMPLES_SPLIT), bias_splits=known)
    return Dataset(facts, {**dataset.splits, ALL_SAMPLES_SPLIT: whole})


def _check_split_fits_model(model: Facts, facts: Facts, split: str) -> None:
    for what, own, other in (("classes", model.classes, facts.classes), ("shape", model.shape, facts.shape)):
        if own != other:
            raise UserError(f"data: {what} {other} given, the model was trained on {own}")
    if model.class_names != facts.class_names:
        raise UserError(f"data: classes {facts.class_names} given, the model was trained on {model.class_names}")
    if split not in facts.splits:
        raise UserError(f"--split {split}: the data have {', '.join(facts.splits)}, and all")


def _group_sizes(trial: Trial, split: str) -> list[list[int]]:
    """Return the samples of each class with each bias class, by the counts of this evaluation."""
    sizes: list[list[int]] = trial.evaluate.counts[split].accuracy_statistics.samples.long().tolist()
    return sizes


def _worst_group(trial: Trial, split: str, measured: Mapping[str, float | None]) -> WorstGroup | None:
    """Return the groups that the model serves worst, by the counts of this evaluation."""
    facts, cells = trial.dataset.facts.facts_of_split(split), trial.evaluate.counts[split]
    right, samples = cells.accuracy_statistics.sums.tolist(), _group_sizes(trial, split)
    unknown = int(cells.output_counts[:, -1].sum()) if facts.bias_classes else None
    against = conflicting_group_sizes(samples, facts.aligned_cells), measured.get(f"{split}/conflicting_accuracy")
    found = GroupCounts(split, samples, right, unknown, measured[f"{split}/accuracy"], None, *against)
    return find_worst_group(found, facts.class_names, facts.bias_names)


def _lowest_class_sentences(trial: Trial, split: str, measured: Mapping[str, float | None]) -> list[str]:
    """Return sentences on the class with the lowest accuracy, and on a threshold that is off."""
    confusion = trial.evaluate.counts[split].counts_by_class.long().tolist()
    names = trial.dataset.facts.class_names or [f"class {number}" for number in range(len(confusion))]
    return class_recall_sentences(names, confusion, measured.get(f"{split}/auc"))


MAX_CLASSES_WITH_RECALL = 20
"""Number of other classes of which a sentence says how many are right."""

MIN_ACCURACY_LOST_BY_THRESHOLD = 0.1
"""Balanced accuracy that a threshold must lose, against the best one for this area under the curve, to be told."""


def class_recall_sentences(names: Sequence[str], confusion: Sequence[Sequence[int]], auc: float | None) -> list[str]:
    """Say which class is recognised least, how many of the others are right, and of two if the threshold is off.

    It is off where far fewer are right, of both classes alike, than the best threshold would get: about Phi(d / 2) for
    an area under the curve of Phi(d / sqrt(2)), if the scores of both classes are normal and as wide.

    Args:
        confusion: samples of each class by what they are called, (classes, classes).
        auc: area under the ROC curve, of two classes.
    """
    there = [number for number, row in enumerate(confusion) if sum(row)]
    recall = {number: confusion[number][number] / sum(confusion[number]) for number in there}
    if len(set(recall.values())) < 2:
        return []
    worst = min(there, key=recall.__getitem__)
    right, samples = confusion[worst][worst], sum(confusion[worst])
    instead = max((number for number in range(len(names)) if number != worst), key=confusion[worst].__getitem__)
    told = f"Of the classes, {quoted(names[worst])} is recognised least: {right} of {samples} right"
    others = [
        f"{quoted(names[number])} {confusion[number][number]} of {sum(confusion[number])}"
        for number in there
        if number != worst
    ]
    called = f"{confusion[worst][instead]} called {quoted(names[instead])}"
    sentences = [f"{told}, {called}. Right of the others: {list_few_names(others, MAX_CLASSES_WITH_RECALL)}."]
    if len(names) == len(there) == 2 and auc is not None and 0.5 < auc < 1:
        normal = NormalDist()
        best = normal.cdf(normal.inv_cdf(auc) / math.sqrt(2))
        if best - sum(recall.values()) / 2 > MIN_ACCURACY_LOST_BY_THRESHOLD:
            sentences.append(
                f"The scores tell the classes apart (area under the curve {auc:.2f}), but the threshold between them "
                f"is off on these data: a better one would get about {best:.0%} of each class. No command sets a "
                "threshold on data of a new place: choose one on labelled samples of it, from the columns p(CLASS) of "
                "study predict."
            )
    return sentences


@contextmanager
def _note_test_reading(home: Home, description: ModelDescription) -> Iterator[None]:
    """Note a successful reading of the test split in the ledger of the model's study, if it is in this home."""
    folder = home.study_or_none(str(description.told["study"]))
    told = [] if folder is None else read_entries(folder.ledger_file)
    created = next((event["id"] for event in told if event["event"] == "created"), None)
    if folder is None or created != description.told["study_id"]:
        yield
        return
    ledger = Ledger(folder.ledger_file)
    try:
        yield
        StudyRecord.load_without_closing(folder.ledger_file).close_dead_session(ledger)
        ledger.append(events.ModelEvaluated(trial=description.told["trial"], split="test", by="study evaluate"))
    finally:
        ledger.close()


def renumber_classes_as_model(dataset: Dataset, model: Facts) -> Dataset:
    """Return the data set with each class and bias class numbered as the model numbers the one of this name.

    Names that the data lack are fine. Where either side has no names its numbers stay as they are, and the data's bias
    stays where the model has none. A sample of a bias class that the model does not know is one of unknown bias (-1).
    Data that are numbered so already are returned as they are.

    Args:
        model: the facts of the data that the model was trained on.

    Raises:
        UserError: the data have a class that the model does not know.
    """
    facts = dataset.facts
    if foreign := _unknown_names(facts.class_names, model.class_names):
        given, known = (list_few_names(list(map(quoted, names))) for names in (foreign, model.class_names or ()))
        raise UserError(
            f"data: {'class' if len(foreign) == 1 else 'classes'} {given} given, the model was trained on the classes "
            f"{known}. Take out these rows, or write the model's names if they mean the same"
        )
    target = _model_numbers_of_names(facts.class_names, model.class_names)
    bias = _model_numbers_of_names(facts.bias_names, model.bias_names)
    if target is not None:
        facts = replace(facts, classes=model.classes, class_names=model.class_names)
    if bias is not None:
        some_bias = facts.some_bias or bool(unknown_bias_classes(facts, model))
        facts = replace(_with_model_bias(facts, model), some_bias=some_bias)
    if facts == dataset.facts:
        return dataset
    splits = {
        name: replace(
            split,
            target=split.target if target is None else target[split.target],
            bias=split.bias if bias is None or split.bias is None else bias[split.bias],
        )
        for name, split in dataset.splits.items()
    }
    return Dataset(facts, splits)


def _set_bias_unknown(dataset: Dataset, model: Facts) -> Dataset:
    """Return the data set with the model's bias classes, of which no sample's is known."""
    splits = {name: replace(split, bias=np.full(len(split), -1)) for name, split in dataset.splits.items()}
    return Dataset(replace(_with_model_bias(dataset.facts, model), bias_splits=None, some_bias=True), splits)


def _with_model_bias(facts: Facts, model: Facts) -> Facts:
    """Return facts with the model's bias classes, whatever other rows say of what goes with which class."""
    return replace(facts, bias_classes=model.bias_classes, bias_names=model.bias_names, aligned=model.aligned)


def unknown_bias_classes(facts: Facts, model: Facts) -> list[str]:
    """Return the bias classes of data that the model does not know."""
    return _unknown_names(facts.bias_names, model.bias_names)


def _unknown_names(given: OptionalClassNames, known: OptionalClassNames) -> list[str]:
    return [name for name in given or () if known and name not in known]


def _model_numbers_of_names(given: OptionalClassNames, known: OptionalClassNames) -> NDArray[np.int64] | None:
    """Return the model's number for each of the data's, with -1 (not known) for -1 and where the model has none.

    None: the numbers stay.
    """
    if not given or not known:
        return None
    numbers = {name: number for number, name in enumerate(known)}
    return np.array([*(numbers.get(name, -1) for name in given), -1], np.int64)
