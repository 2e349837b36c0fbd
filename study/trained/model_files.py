"""The models of a final training as self-contained files: one for each seed, and the ensemble of all of them."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from study import data, files, models
from study.data import Dataset, TableEncoding, holdout
from study.data.dataset import fingerprint_of_splits
from study.data.folds import select_fold
from study.errors import UserError
from study.files import write_atomically
from study.home.folder import StudyFolder
from study.home.record import TrialRecord
from study.models import initial_weights
from study.ranking import Results
from study.ranking.final_model import final_model_trials
from study.spec import StudySpec
from study.trained import model_card
from study.trained.description import ModelDescription, frozen_network_file_name
from study.trained.model_card import DescribedModel, described_model


@dataclass(frozen=True)
class ModelFiles:
    """A trained model's files.

    Attributes:
        description: rebuilds its networks, beside the weights.
        weights: of its network, or of each network of an ensemble.
        card: the model card, for people.
        frozen_network: the weights of the frozen network, where they are among the files.
    """

    description: Path
    weights: Sequence[Path]
    card: Path
    frozen_network: Path | None = None


def find_model(folder: StudyFolder, results: Results) -> ModelFiles | None:
    """Return the model of a final training, see `final_model_trials`; None before a seed is complete, or without files.

    An ensemble's file is of fewer networks until the driver writes it anew, or where that was not fetched.
    """
    members = final_model_trials(results)
    if not members:
        return None
    place = _description_file(folder, members)
    if not place.exists():
        return None
    description = ModelDescription.read_file(place)
    weights = [folder.model_file(trial.number) for trial in members]
    if {path.name for path in weights} != description.digest_by_weights_file.keys():
        return None
    return ModelFiles(place, weights, folder.model_card_file, description.frozen_network_file(folder.models_folder))


def copy_frozen_weights(folder: StudyFolder, spec: StudySpec) -> None:
    """Copy the weights of the frozen network among the models' files of a final training, if it has one.

    Raises:
        UserError: they are not there.
    """
    section = spec.base["model"]
    if not section.get("frozen"):
        return
    place = folder.models_folder / frozen_network_file_name(initial_weights.describe_weights_file(section))
    folder.models_folder.mkdir(exist_ok=True)
    with files.replace_atomically(place) as part:
        shutil.copyfile(initial_weights.find_weights_file(section)[0], part)


def write_descriptions_and_card(folder: StudyFolder, results: Results, datasets: Mapping[str, Dataset]) -> None:
    """Write a description beside each seed's weights and of their ensemble, and the card of the model.

    Args:
        datasets: of the study, by `data.section_key`.
    """
    from study.trained.classifier import TrainedClassifier  # PyTorch, which reading a study does without

    if not results.final_training_trials:
        return
    (dataset,) = (select_fold(of, None) for of in datasets.values())
    encoding = _table_encoding(results.spec.base["data"], dataset)
    of_each = [[trial] for trial in results.final_training_trials]
    if results.record.ensemble is not None:
        of_each.append([results.record.trials[number] for number in results.record.ensemble.trials])
    for members in of_each:
        description = _make_description(folder, results, described_model(results, members), dataset, encoding)
        description.write_file(_description_file(folder, members))
    members = final_model_trials(results)
    model, place = described_model(results, members), _description_file(folder, members)
    about = data.find_dataset_module(str(results.spec.base["data"]["name"])).__doc__ or ""
    classifier = TrainedClassifier.load_from_description(place, "cpu")
    is_whole = classifier.description.frozen_network_file(folder.models_folder) is not None
    columns = [column.name for column in encoding or ()]
    size = classifier.describe_size_and_time()
    text = model_card.model_card(results, model, dataset, about, size, is_whole, columns)
    write_atomically(folder.model_card_file, text)


def test_split_fingerprint(dataset: Dataset) -> str | None:
    """Return the fingerprint of the test split alone, which data with other options may share; None without one."""
    return fingerprint_of_splits({"test": dataset.splits["test"]}) if "test" in dataset.splits else None


def _table_encoding(section: Mapping[str, Any], dataset: Dataset) -> TableEncoding | None:
    """Return how the columns of a user's table became inputs.

    None for other data, and where the table is no longer what was trained on.
    """
    try:
        encoding = data.fit_table_encoding(section)
        if encoding is None:
            return None
        again = data.load_encoded(section, encoding)[0]
        if dataset.folds is not None:
            learn = {"learn": holdout.concatenate_samples(again.splits["train"], again.splits["val"])}
            same = fingerprint_of_splits(learn) == fingerprint_of_splits({"learn": dataset.splits["train"]})
        else:
            same = again.fingerprint == dataset.fingerprint
    except UserError:
        return None
    return encoding if same else None


def _description_file(folder: StudyFolder, members: Sequence[TrialRecord]) -> Path:
    """Return the file of the description of a seed's network, or of the ensemble of several."""
    return folder.ensemble_description_file if len(members) > 1 else folder.model_description_file(members[0].number)


def _make_description(
    folder: StudyFolder, results: Results, model: DescribedModel, dataset: Dataset, encoding: TableEncoding | None
) -> ModelDescription:
    groups, (trial, *others) = model_card.group_counts_of_split(model, dataset), model.trials
    about = {
        "study": results.spec.name,
        "study_id": results.record.id,
        "trial": trial.number,
        "seed": trial.seed,
        **({"seeds": [each.seed for each in model.trials]} if others else {}),
        "metrics": dict(model.metrics),
        "data_fingerprint": dataset.fingerprint,
        "test_fingerprint": test_split_fingerprint(dataset),
        "groups": asdict(groups) if groups else None,
        "code": results.record.sessions[-1].environment_fields,
        "origin": dict(results.spec.origin or {}),
    }
    path, *beside = (folder.model_file(each.number) for each in model.trials)
    other_weights = {other.name: files.sha256_of_file(other) for other in beside}
    config = results.spec.trial_config(trial.params, trial.seed).to_document()
    frozen = models.describe_weights(config["model"]) if config["model"].get("frozen") else None
    own = path.name, files.sha256_of_file(path)
    return ModelDescription(config, dataset.facts, *own, about, encoding, frozen, other_weights)
