"""The networks of a final training's seeds as one model, measured by what each of them said of every sample."""

from pathlib import Path

import torch

from study.data import Dataset
from study.home.events import EnsembleMeasured
from study.home.folder import StudyFolder
from study.home.record import StudyRecord, finite_metrics
from study.spec import StudySpec
from study.training import ensemble_probabilities, metrics


def measure_ensemble(
    folder: StudyFolder, spec: StudySpec, dataset: Dataset, record: StudyRecord
) -> EnsembleMeasured | None:
    """Measure the mean of the probabilities that the networks of the complete seeds give, on validation and test.

    A split of which one of them said nothing is left out, and test unless each reading of it is recorded. So are
    metrics of inferred groups where not all of them were judged by the same ones, as on other kinds of machines.

    Args:
        spec: of a final training whose networks can be one model (`makes_ensemble`).
        dataset: as the networks were trained on it; of data with folds `select_fold(dataset, None)`.

    Returns:
        Without metrics where no split is left, and none was to validate. None: fewer than two seeds are complete, what
        validates is not left, or the record has these very values.
    """
    trials = [trial for trial in record.trials_of_stages("final") if trial.state == "complete"]
    numbers = tuple(trial.number for trial in trials)
    if len(trials) < 2:
        return None
    measured, models = dict[str, float](), [folder.model_file(number) for number in numbers]
    for split in ("val", "test"):
        if split in dataset.splits and (split == "val" or all(trial.test_metrics for trial in trials)):
            measured |= _split_metrics(dataset, split, models)
    event = EnsembleMeasured(numbers, finite_metrics(measured))
    is_model = measured or spec.train.with_val
    return event if is_model and event != record.ensemble else None


def _split_metrics(dataset: Dataset, split: str, models: list[Path]) -> dict[str, float]:
    """Return the metrics of a split, with standard errors; none where a model said nothing of it."""
    found = [
        ensemble_probabilities.read_log_probabilities(ensemble_probabilities.log_probabilities_file(model, split))
        for model in models
    ]
    told, samples = [each for each in found if each is not None], dataset.splits[split]
    if len(told) < len(found) or any(len(each.log_probabilities) != len(samples) for each in told):
        return {}
    scores = ensemble_probabilities.mean_log_probabilities([each.log_probabilities for each in told])
    groups = [each.inferred_groups for each in told if each.inferred_groups is not None]
    is_judged_alike = len(groups) == len(told) and all(torch.equal(each, groups[0]) for each in groups)
    inferred = groups[0] if is_judged_alike and len(groups[0]) == len(samples) else None
    target, bias = torch.from_numpy(samples.target), None if samples.bias is None else torch.from_numpy(samples.bias)
    facts = dataset.facts.facts_of_split(split)
    values = metrics.compute_metrics(scores, scores.argmax(1), target, bias, facts, inferred, errors=True)
    return {f"{split}/{name}": float(value) for name, value in values.items()}
