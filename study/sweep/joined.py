"""The folds of a configuration joined: every sample outside test, judged by a network that was not trained on it.

The metric of all samples together is the configuration's value: counts of small groups are pooled, no means of folds'
means are taken. Its error is a bootstrap: samples are drawn anew within each cell of class and bias, groups that stay
together as one, and so are repeats where there are several; the metric is computed anew for each draw. The draws are
the same for all configurations of a study, so that the error of a difference follows from two lists of draws.
"""

import base64
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from study import ranking
from study.data import Dataset, holdout
from study.home.events import Joined
from study.home.record import StudyRecord, TrialRecord
from study.spec import StudySpec
from study.training import metrics

DRAWS = 200

SEED = 20


def packed(predicted: NDArray[np.int64]) -> str:
    """Classes (N,) as text, for a ledger."""
    return base64.b85encode(zlib.compress(predicted.astype("<u2").tobytes())).decode()


def unpacked(text: str) -> NDArray[np.int64]:
    """The classes again."""
    return np.frombuffer(zlib.decompress(base64.b85decode(text)), "<u2").astype(np.int64)


def _is_kept(name: str, draws: Sequence[float]) -> bool:
    """Whether a metric's draws are kept: not those of single groups, of which there may be many."""
    return name.removeprefix("val/") not in metrics.GROUPS and bool(np.isfinite(draws).all())


class Joiner:
    """Joins the folds of configurations that ran again on all of them.

    Args:
        dataset: the study's, with folds.
    """

    def __init__(self, spec: StudySpec, dataset: Dataset) -> None:
        assert dataset.folds is not None
        self._spec, self._facts, self._folds = spec, dataset.facts.on("val"), dataset.folds
        self._target = torch.from_numpy(self._folds.learn.target)
        self._bias = None if self._folds.learn.bias is None else torch.from_numpy(self._folds.learn.bias)

    def new(self, record: StudyRecord) -> Iterator[Joined]:
        """What is to be told of configurations whose runs have all ended since."""
        for leader in ranking.to_confirm(record, self._spec):
            runs = [run for run in record.repeats_of(leader.number) if run.state == "complete" and run.predicted]
            repeats = self._repeats(runs)
            known = record.joined.get(leader.number)
            numbers = tuple(run.number for run in runs)
            if repeats and len(repeats) * self._folds.count == len(runs) and (known is None or known.runs != numbers):
                yield self._joined(leader.number, numbers, repeats)

    def _joined(self, number: int, runs: tuple[int, ...], repeats: Sequence[NDArray[np.int64]]) -> Joined:
        return Joined(number, runs, *self.judged(repeats))

    def judged(self, repeats: Sequence[NDArray[np.int64]]) -> tuple[dict[str, float | None], dict[str, list[float]]]:
        """Return the metrics of all samples together with their standard errors, and some of them for samples drawn
        anew.

        Args:
            repeats: the class that each sample outside test got, (N,), once for each time that all folds ran.
        """
        whole = [np.arange(len(self._target))] * len(repeats)
        values = self._metrics(repeats, whole)
        of_rows, of_repeats = np.random.default_rng(SEED), np.random.default_rng(SEED)  # rows for any number of repeats
        draws: dict[str, list[float]] = {name: [] for name in values}
        for _ in range(DRAWS):
            rows = self._drawn(of_rows)
            which = of_repeats.integers(0, len(repeats), len(repeats))
            for name, value in self._metrics([repeats[place] for place in which], [rows] * len(repeats)).items():
                draws[name].append(value)
        errors = {f"{name}_standard_error": float(np.nanstd(found, ddof=1)) for name, found in draws.items()}
        known = {name: value if np.isfinite(value) else None for name, value in {**values, **errors}.items()}
        finite = {name: found for name, found in draws.items() if _is_kept(name, found)}
        return known, {name: [float(f"{value:.6g}") for value in found] for name, found in finite.items()}

    def _repeats(self, runs: Sequence[TrialRecord]) -> list[NDArray[np.int64]]:
        """The class that each sample got, (N,), once for each time that all folds ran."""
        count, first = self._folds.count, max(self._spec.seeds) + 1
        by_repeat: dict[int, list[TrialRecord]] = {}
        for run in runs:
            by_repeat.setdefault((run.seed - first) // count, []).append(run)
        found = []
        for of_repeat in (some for some in by_repeat.values() if len(some) == count):
            predicted = np.empty(len(self._target), np.int64)
            for run in of_repeat:
                predicted[self._folds.numbers == run.fold] = unpacked(run.predicted or "")
            found.append(predicted)
        return found

    def _metrics(self, repeats: Sequence[NDArray[np.int64]], rows: Sequence[NDArray[np.int64]]) -> dict[str, float]:
        """The mean over repeats of each metric that needs no scores, on these samples; nan where it has no value."""
        found: dict[str, list[float]] = {}
        for predicted, members in zip(repeats, rows, strict=True):
            chosen = torch.from_numpy(members)
            bias = None if self._bias is None else self._bias[chosen]
            given = torch.from_numpy(predicted[members]), self._target[chosen], bias
            for name, value in metrics.compute(None, *given, self._facts).items():
                found.setdefault(f"val/{name}", []).append(float(value))
        return {name: float(np.mean(values)) for name, values in found.items()}

    def _drawn(self, generator: np.random.Generator) -> NDArray[np.int64]:
        """As many units of each cell as there are, drawn with replacement: samples, or groups that stay together."""
        same, cells = self._folds.same, holdout.cells(self._folds.learn)
        unit = np.arange(len(cells)) if same is None else np.unique(same, return_inverse=True)[1]
        first = np.unique(unit, return_index=True)[1]
        of_cells = [np.flatnonzero(cells[first] == cell) for cell in np.unique(cells[first])]
        chosen = np.concatenate([generator.choice(units, len(units)) for units in of_cells])
        if same is None:
            return chosen
        members = np.split(np.argsort(unit, kind="stable"), np.cumsum(np.bincount(unit))[:-1])
        return np.concatenate([members[one] for one in chosen])
