"""The folds of a configuration joined: every sample outside test, judged by a network that was not trained on it.

The metric of all samples together is the configuration's value: counts of small groups are pooled, not averaged over
folds. Its standard error is a bootstrap: samples are drawn with replacement within their cell of class and bias class
or, where a cell has few samples, within all such cells of one kind (`study.training.cell_statistics.kinds_of_cells`).
Samples that have to stay in one fold are drawn together, and so are repeats where there are several. The metric is
computed anew for each draw. The draws are the same for all configurations of a study, so that the error of a difference
follows from two lists of draws.
"""

import base64
import math
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from study.data import Dataset, holdout
from study.home.events import FoldsJoined
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Results
from study.spec import StudySpec
from study.training import metrics
from study.training.cell_statistics import kinds_of_cells
from study.training.standard_errors import STANDARD_ERROR_FUNCTIONS

N_BOOTSTRAP_DRAWS = 200

BOOTSTRAP_SPREAD_FACTOR = 1.1
"""How many times as far as the draws themselves values lie from the value of all samples: a sample that is drawn twice
into a small cell weighs less there than two samples, so that draws vary less than samples do. Without this 95%
intervals held in 91% of `tests/benchmarks/simulations/joined_folds.py`."""

BOOTSTRAP_SEED = 20

SMALL_CELL_SAMPLES = 10
"""Number of samples, or groups that stay together, below which a cell is drawn with the other cells of its kind: a
sample that is alone in its cell would be in every draw, and its luck in no error."""

METRICS_NEEDING_ALL_SCORES = ("top5_accuracy", "auc")
"""Metrics that need all scores of a sample; only that of its class is kept."""


@dataclass(frozen=True)
class FoldPredictions:
    """What networks predict for samples.

    Attributes:
        classes: predicted class of each, (N,).
        log_losses: -log p of the true class of each, in nats, (N,) float32; None: the networks rank no classes.
    """

    classes: NDArray[np.int64]
    log_losses: NDArray[np.float32] | None = None

    def to_text(self) -> str:
        """Return this as text, for a ledger."""
        parts = [self.classes.astype("<u2"), *([] if self.log_losses is None else [self.log_losses.astype("<f4")])]
        return " ".join(base64.b85encode(zlib.compress(part.tobytes())).decode() for part in parts)

    @classmethod
    def from_text(cls, text: str) -> "FoldPredictions":
        """Make one of the text of `to_text`."""
        parts = [zlib.decompress(base64.b85decode(part)) for part in text.split(" ")]
        losses = np.frombuffer(parts[1], "<f4") if len(parts) > 1 else None
        return cls(np.frombuffer(parts[0], "<u2").astype(np.int64), losses)

    @classmethod
    def join_parts(cls, parts: Sequence["FoldPredictions"], members: Sequence[NDArray[np.bool_]]) -> "FoldPredictions":
        """Join the predictions of parts; `members`: which of the N samples each part holds, (N,)."""
        classes = np.empty(len(members[0]), np.int64)
        losses = None if any(part.log_losses is None for part in parts) else np.empty(len(members[0]), np.float32)
        for part, held in zip(parts, members, strict=True):
            classes[held] = part.classes
            if losses is not None:
                losses[held] = part.log_losses
        return cls(classes, losses)

    def scores_from_log_losses(self, rows: NDArray[np.int64], target: Tensor, classes: int) -> Tensor | None:
        """Return scores (n, classes) of these samples, equal for all other classes; None if there are no log losses."""
        if self.log_losses is None:
            return None
        own = -torch.from_numpy(self.log_losses[rows]).double()
        others = torch.log1p(-own.exp().clamp(max=1)) - math.log(max(1, classes - 1))
        return others[:, None].repeat(1, classes).scatter(1, target.clamp(min=0)[:, None], own[:, None])


@contextmanager
def limit_torch_to_one_thread() -> Iterator[None]:
    """Make PyTorch compute on one thread in the block, which is fastest for small things beside trials."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _should_keep_draws(name: str, draws: Sequence[float]) -> bool:
    """Return whether a metric's draws are kept: not those of single groups, of which there may be many."""
    return name.removeprefix("val/") not in metrics.CELLS_BY_GROUP_METRIC and bool(np.isfinite(draws).all())


def bootstrap_strata(cells: NDArray[np.int64], alike: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the stratum in which each unit is drawn, (N,): its cell, or one below 0 for small cells of a kind.

    Args:
        cells: label of each unit's cell, (N,).
        alike: kind of each unit's cell, -1 and up, (N,).
    """
    _, cell, counts = np.unique(cells, return_inverse=True, return_counts=True)
    return np.where(counts[cell] < SMALL_CELL_SAMPLES, -2 - alike, cell)


class FoldJoiner:
    """Joins the folds of configurations that ran again on all of them.

    Args:
        dataset: the study's, with folds.
    """

    def __init__(self, spec: StudySpec, dataset: Dataset) -> None:
        assert dataset.folds is not None
        self._spec, self._facts, self._folds = spec, dataset.facts.facts_of_split("val"), dataset.folds
        samples, same = self._folds.non_test_samples, self._folds.group_of_sample
        self._target = torch.from_numpy(samples.target)
        self._bias = None if samples.bias is None else torch.from_numpy(samples.bias)
        cells = holdout.cell_of_sample(samples)
        unit = np.arange(len(cells)) if same is None else np.unique(same, return_inverse=True)[1]
        first = np.unique(unit, return_index=True)[1]
        of_unit = bootstrap_strata(cells[first], self._cell_kinds()[first])
        self._units = [np.flatnonzero(of_unit == stratum) for stratum in np.unique(of_unit)]
        self._members = None
        if same is not None:
            self._members = np.split(np.argsort(unit, kind="stable"), np.cumsum(np.bincount(unit))[:-1])

    def _cell_kinds(self) -> NDArray[np.int64]:
        """Return the kind of each sample's cell, (N,): 0 and up; -1 where its bias class is not known."""
        if self._bias is None or not self._facts.bias_classes:
            return np.zeros(len(self._target), np.int64)
        found = kinds_of_cells(self._facts, torch.device("cpu"))[:, self._target, self._bias.clamp(min=0)].argmax(0)
        return torch.where(self._bias < 0, -1, found).numpy()

    def join_new_configurations(self, record: StudyRecord) -> Iterator[FoldsJoined]:
        """Yield an event for each configuration whose runs on all folds have ended since the last event."""
        for leader in Results(self._spec, record).confirmation.trials_to_confirm():
            complete = [run for run in record.repeat_trials(leader.number) if run.state == "complete"]
            runs = [run for run in complete if run.fold_predictions]
            repeats = self._join_repeats(runs)
            known = record.joined_folds.get(leader.number)
            numbers = tuple(run.number for run in runs)
            is_new = known is None or known.runs != numbers
            if is_new and repeats and len(repeats) * self._folds.fold_count == len(runs):
                yield FoldsJoined(leader.number, numbers, *self.metrics_and_draws(repeats))

    @limit_torch_to_one_thread()
    def metrics_and_draws(
        self, repeats: Sequence[FoldPredictions]
    ) -> tuple[dict[str, float | None], dict[str, list[float]]]:
        """Return the metrics of all samples together with their standard errors, and the draws of some of them.

        Args:
            repeats: predictions for the samples outside test, one for each time that all folds ran.
        """
        values = self._mean_metrics(repeats, np.arange(len(self._target)))
        # two of them, so that rows do not depend on the number of repeats
        of_rows, of_repeats = np.random.default_rng(BOOTSTRAP_SEED), np.random.default_rng(BOOTSTRAP_SEED)
        draws: dict[str, list[float]] = {name: [] for name in values}
        for _ in range(N_BOOTSTRAP_DRAWS):
            rows = self._draw_bootstrap_counts(of_rows)
            which = of_repeats.integers(0, len(repeats), len(repeats))
            for name, value in self._mean_metrics([repeats[place] for place in which], rows).items():
                draws[name].append(values[name] + BOOTSTRAP_SPREAD_FACTOR * (value - values[name]))
        known_draws = {name: [value for value in found if not np.isnan(value)] for name, found in draws.items()}
        unknown = self._metrics_without_interval(repeats[0])
        errors = {
            f"{name}_standard_error": float(np.std(found, ddof=1)) if len(found) > 1 and name not in unknown else np.nan
            for name, found in known_draws.items()
        }
        known = {name: value if np.isfinite(value) else None for name, value in {**values, **errors}.items()}
        finite = {name: found for name, found in draws.items() if _should_keep_draws(name, found)}
        return known, {name: [float(f"{value:.6g}") for value in found] for name, found in finite.items()}

    def _metrics_without_interval(self, verdict: FoldPredictions) -> set[str]:
        """Return the metrics whose values are off by more than chance, as of one split; differences are not."""
        everyone = np.arange(len(self._target))
        scores = verdict.scores_from_log_losses(everyone, self._target, self._facts.classes)
        predicted = torch.from_numpy(verdict.classes)
        values = metrics.compute_metrics(scores, predicted, self._target, self._bias, self._facts, errors=True)
        known = {name for name, value in values.items() if not value.isnan()}
        return {f"val/{name}" for name in STANDARD_ERROR_FUNCTIONS if f"{name}_standard_error" not in known}

    def _join_repeats(self, runs: Sequence[TrialRecord]) -> list[FoldPredictions]:
        """Return the joined predictions, one for each time that all folds ran."""
        count, first = self._folds.fold_count, max(self._spec.seeds) + 1
        by_repeat: dict[int, list[TrialRecord]] = {}
        for run in runs:
            by_repeat.setdefault((run.seed - first) // count, []).append(run)
        return [
            FoldPredictions.join_parts(
                [FoldPredictions.from_text(run.fold_predictions or "") for run in of_repeat],
                [self._folds.fold_of_sample == run.fold for run in of_repeat],
            )
            for of_repeat in by_repeat.values()
            if len(of_repeat) == count
        ]

    def _mean_metrics(self, repeats: Sequence[FoldPredictions], rows: NDArray[np.int64]) -> dict[str, float]:
        """Return the mean over repeats of each metric on these samples, nan where it has no value.

        Metrics of `METRICS_NEEDING_ALL_SCORES` are left out where there are three classes or more.
        """
        found, chosen = dict[str, list[float]](), torch.from_numpy(rows)
        bias, target = None if self._bias is None else self._bias[chosen], self._target[chosen]
        for verdict in repeats:
            scores = verdict.scores_from_log_losses(rows, target, self._facts.classes)
            predicted = torch.from_numpy(verdict.classes[rows])
            values = metrics.compute_metrics(scores, predicted, target, bias, self._facts)
            for name, value in values.items():
                if self._facts.classes == 2 or name not in METRICS_NEEDING_ALL_SCORES:
                    found.setdefault(f"val/{name}", []).append(float(value))
        return {name: float(np.mean(values)) for name, values in found.items()}

    def _draw_bootstrap_counts(self, generator: np.random.Generator) -> NDArray[np.int64]:
        """Draw, with replacement, as many units as each stratum has: samples, or groups that stay together."""
        chosen = np.concatenate([units[generator.integers(0, len(units), len(units))] for units in self._units])
        return chosen if self._members is None else np.concatenate([self._members[one] for one in chosen])
