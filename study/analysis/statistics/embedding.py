"""Features that trained models compute from the data; the figures of representations are drawn from them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from study import data
from study.analysis.statistics.frame import param
from study.data import Facts
from study.errors import UserError
from study.home.record import TrialRecord
from study.ranking import Results
from study.ranking.difference import side_of
from study.spec import StudySpec

if TYPE_CHECKING:
    from study.training import Trial

MAX_SAMPLES = 5000
"""Largest number of samples of a split; of a larger one a random sample, as the number of pairs grows as the square."""


@dataclass(frozen=True)
class Embedding:
    """A trained model's features of a split.

    Attributes:
        label: of the model: `baseline`, `trial 7`, `seed 0`; with the epoch where it is not the last.
        is_main: whether the model is the baseline's, the best configuration's or a final training's, at the last epoch.
        split: `test` where the data have one, else `val`.
        facts: of the split.
        features: unit vectors, float32 (N, F).
        target, bias: classes, int64 (N,); `bias` is None where the split has none.
    """

    label: str
    split: str
    facts: Facts
    features: np.ndarray
    target: np.ndarray
    bias: np.ndarray | None
    is_main: bool = True


def embeddings(results: Results, model_file: Callable[..., Path]) -> list[Embedding]:
    """Compute embeddings of the baseline and each confirmed configuration, the best last, or of a final training.

    Each is that of the first kept model, at the epochs of `train.keep_epochs` and at the last one.

    Args:
        model_file: returns where a trial's model is, by its number, or by that and an epoch.

    Raises:
        UserError: no model was kept, one cannot be read, or the data have changed since the training.
    """
    from study.training import Trial

    if results.spec.function:
        raise UserError(f"{results.spec.name}: its trials run a function of one's own, whose features only it knows")
    kept_models = list(_kept(results, model_file))
    if not kept_models:
        raise UserError(
            f"{results.spec.name}: it has no kept models. Models are kept of the confirm trials of the baseline and "
            "the best (search.confirm.top), and of final trainings (study train)"
        )
    datasets = data.load_all(results.spec.data_sections)
    last = results.record.sessions[-1]
    if not data.unchanged(last.data, last.digests, datasets):
        raise UserError(
            f"{results.spec.name}: its data have changed since it ran; its models were trained on other data"
        )
    found = []
    main_trials = [trial for side in (*results.sides, results.final_side) if side for trial in side.trials]
    for label, trial in kept_models:
        config = results.spec.trial_config(trial.params, trial.seed)
        model = Trial(config, datasets[data.key(config.data)], begins=False)
        epochs = [epoch for epoch in config.train.keep_epochs if model_file(trial.number, epoch).is_file()]
        for epoch in epochs:
            _load(model, model_file(trial.number, epoch), results.spec)
            found.append(_embedding(f"{label}, epoch {epoch}", model, is_main=False))
        _load(model, model_file(trial.number), results.spec)
        found.append(_embedding(label, model, is_main=trial in main_trials))
    return found


def _kept(results: Results, model_file: Callable[..., Path]) -> Iterator[tuple[str, TrialRecord]]:
    """Yield label and trial of the first kept model of each configuration; a searched epsilon is in the label."""
    reference, best = results.sides
    others = [side_of(results.spec, candidate) for candidate in results.candidates if candidate.confirmed]
    others = [side for side in others if not best or side.number != best.number]
    for side in (reference, *reversed(others), best, results.final_side):
        kept = [trial for trial in side.trials if model_file(trial.number).is_file()] if side else []
        if side and kept:
            label = f"seed {kept[0].seed}" if kept[0].stage == "final" else side.label
            searched = "method.epsilon" in results.spec.search.space
            epsilon = param(results.spec, kept[0], "method.epsilon") if searched else None
            yield label if epsilon is None else f"{label}, epsilon {epsilon:g}", kept[0]


def _load(model: "Trial", weights: Path, spec: StudySpec) -> None:
    try:
        model.load(weights)
    except UserError as error:
        raise UserError(f"{error}. The report without its models: study report {spec.name}") from None


def _embedding(label: str, model: "Trial", is_main: bool) -> Embedding:
    from torch.nn import functional

    dataset = model.dataset
    split = "test" if "test" in dataset.splits else "val"
    samples = dataset.splits[split]
    drawn = np.sort(np.random.default_rng(0).permutation(len(samples))[:MAX_SAMPLES])
    features = functional.normalize(model.evaluate.features(split), dim=1).cpu().numpy()[drawn]
    bias = None if samples.bias is None else samples.bias[drawn]
    return Embedding(label, split, dataset.facts.on(split), features, samples.target[drawn], bias, is_main)
