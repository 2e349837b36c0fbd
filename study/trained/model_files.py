"""The models of a final training as self-contained files."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from study import data, files, models, ranking
from study.data import Dataset, TableEncoding, holdout
from study.data.dataset import fingerprint_of_splits
from study.data.folds import select_fold
from study.errors import UserError
from study.files import write_atomically
from study.home.folder import StudyFolder
from study.home.record import TrialRecord
from study.models import initial_weights
from study.ranking import Results, epochs
from study.spec import StudySpec
from study.trained import model_card
from study.trained.description import ModelDescription, frozen_network_file_name


@dataclass(frozen=True)
class ModelFiles:
    """A trained model's files.

    Attributes:
        description: rebuilds its networks, beside the weights.
        card: the model card, for people.
        frozen_network: the weights of the frozen network, where they are among the files.
    """

    description: Path
    weights: Path
    card: Path
    frozen_network: Path | None = None


def best_model_files(folder: StudyFolder, results: Results) -> ModelFiles | None:
    """Return the model of a final training's best seed, see `best_seed_trial`; None before any is complete."""
    trials = [trial for trial in results.record.trials_of_stages("final") if trial.state == "complete"]
    if not trials:
        return None
    number = best_seed_trial(results.spec, trials).number
    description = folder.description_file(number)
    if not description.exists():
        return None
    network = ModelDescription.read_file(description).frozen_network_file(folder.models_folder)
    return ModelFiles(description, folder.model_file(number), folder.card_file, network)


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
    """Write a description beside each seed's weights, and the card of the model of the best seed.

    Args:
        datasets: of the study, by `data.section_key`.
    """
    from study.trained.classifier import TrainedClassifier  # PyTorch, which reading a study does without

    trials = [trial for trial in results.record.trials_of_stages("final") if trial.state == "complete"]
    if not trials:
        return
    (dataset,) = (select_fold(of, None) for of in datasets.values())
    encoding = _table_encoding(results.spec.base["data"], dataset)
    for trial in trials:
        _make_description(folder, results, trial, dataset, encoding).write_file(folder.description_file(trial.number))
    about = data.find_dataset_module(str(results.spec.base["data"]["name"])).__doc__ or ""
    best = best_seed_trial(results.spec, trials)
    classifier = TrainedClassifier.load_from_description(folder.description_file(best.number), "cpu")
    is_whole = classifier.description.frozen_network_file(folder.models_folder) is not None
    text = model_card.model_card(results, best, dataset, about, classifier.describe_size_and_time(), is_whole)
    write_atomically(folder.card_file, text)


def test_split_fingerprint(dataset: Dataset) -> str | None:
    """Return the fingerprint of the test split alone, which data with other options may share; None without one."""
    return fingerprint_of_splits({"test": dataset.splits["test"]}) if "test" in dataset.splits else None


def best_seed_trial(spec: StudySpec, trials: Sequence[TrialRecord]) -> TrialRecord:
    """Return the trial with the best validation metric, the first of equals; without validation the first trial.

    A trial that misses the study's constraints comes after those that keep them.
    """
    scores = [(trial, ranking.mean_score(spec.objective, [trial])) for trial in trials]
    scored = [(trial, score) for trial, score in scores if score is not None]
    ordered = sorted(scored, key=lambda pair: (*pair[1].first_metric_key, pair[0].number))
    return ordered[0][0] if ordered else trials[0]


def _table_encoding(section: Mapping[str, Any], dataset: Dataset) -> TableEncoding | None:
    """Return how the columns of a user's table became inputs.

    None for other data, and where the table is no longer what was trained on.
    """
    try:
        encoding = data.table_encoding(section)
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


def _make_description(
    folder: StudyFolder, results: Results, trial: TrialRecord, dataset: Dataset, encoding: TableEncoding | None
) -> ModelDescription:
    groups = model_card.group_counts_of_split(results.spec, trial, dataset)
    about = {
        "study": results.spec.name,
        "study_id": results.record.id,
        "trial": trial.number,
        "seed": trial.seed,
        "metrics": {**epochs.chosen_metrics(results.spec.objective, trial), **trial.test_metrics},
        "data_fingerprint": dataset.fingerprint,
        "test_fingerprint": test_split_fingerprint(dataset),
        "groups": asdict(groups) if groups else None,
        "code": results.record.sessions[-1].environment_fields,
        "origin": dict(results.spec.origin or {}),
    }
    path = folder.model_file(trial.number)
    config = results.spec.trial_config(trial.params, trial.seed).to_document()
    frozen = models.describe_weights(config["model"]) if config["model"].get("frozen") else None
    return ModelDescription(config, dataset.facts, path.name, files.sha256_of_file(path), about, encoding, frozen)
