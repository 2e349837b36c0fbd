"""A recorded table of learning curves: every configuration ran to its end, on the same seeds."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from study.errors import UserError
from study.simulation.curves import Curve
from study.spec import StudySpec
from study.spec.document import Document, override
from study.spec.load import resolve

KEYS = ("params", "metrics", "values", "seeds", "seconds", "study")


@dataclass(frozen=True)
class Table:
    """Recorded curves.

    Attributes:
        rows: the configurations, keys as in the study file.
        metrics: names of what was recorded, as `val/accuracy`.
        values: (seeds, configurations, epochs, metrics), NaN where there is no number.
        seeds: `train.seed` of each.
        seconds: that an epoch took, (configurations,).
        study: the resolved study file as text.
    """

    rows: Sequence[Mapping[str, Any]]
    metrics: Sequence[str]
    values: NDArray[np.float64]
    seeds: Sequence[int]
    seconds: NDArray[np.float64]
    study: str

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file of recorded curves.

        Raises:
            UserError: it is no such file; says what is missing.
        """
        try:
            with np.load(path) as file:
                missing = [key for key in KEYS if key not in file.files]
                if missing:
                    raise UserError(f"{path}: is no table of curves: {', '.join(missing)} missing")
                arrays = {key: file[key] for key in KEYS}
        except (OSError, ValueError, EOFError) as error:
            raise UserError(f"{path}: is no table of curves: {error}") from None
        try:
            lines = _text(arrays["params"]).splitlines() if arrays["params"].ndim == 0 else arrays["params"].tolist()
            rows = [json.loads(line) for line in lines]
            metrics = [str(name) for name in arrays["metrics"].tolist()]
        except (ValueError, TypeError) as error:
            raise UserError(f"{path}: its params or metrics cannot be read: {error}") from None
        values, seeds = arrays["values"].astype(np.float64), [int(seed) for seed in arrays["seeds"].tolist()]
        seconds = arrays["seconds"].astype(np.float64)
        seconds = seconds.mean(tuple(range(seconds.ndim - 1))) if seconds.ndim > 1 else seconds
        wanted = (len(seeds), len(rows), values.shape[2] if values.ndim == 4 else 0, len(metrics))
        if values.shape != wanted or seconds.shape != (len(rows),) or not rows or not seeds:
            raise UserError(
                f"{path}: its parts do not fit: values {values.shape}, {len(seeds)} seeds, {len(rows)} configurations, "
                f"{len(metrics)} metrics, seconds {seconds.shape}"
            )
        return cls(rows, metrics, values, seeds, seconds, _text(arrays["study"]))

    @property
    def epochs(self) -> int:
        """Of each curve."""
        return int(self.values.shape[2])

    def spec(self, assignments: Iterable[str] = ()) -> StudySpec:
        """The study that was recorded, with overrides.

        Raises:
            UserError: see `study.spec.load.load_study`.
        """
        document = Document("the table's study", {})
        override(document, [f"all={self.study}"])
        document = Document("the table's study", document.values["all"])
        override(document, list(assignments))
        return resolve(document)

    def within(self, spec: StudySpec) -> Self:
        """The configurations that a study could try, of which `trials` are tried at most.

        Raises:
            UserError: there are none, or trials are longer than what was recorded, or a metric was not.
        """
        missing = [name for name in spec.objective.needed if name not in self.metrics]
        if missing:
            raise UserError(f"search.metric: {missing[0]} was not recorded; recorded are {', '.join(self.metrics)}")
        if spec.epochs > self.epochs:
            raise UserError(f"train.epochs: {spec.epochs} given, {self.epochs} were recorded")
        kept = [place for place, row in enumerate(self.rows) if spec.space.contains(row)]
        if not kept:
            raise UserError("search.space: none of the recorded configurations is in it")
        if len(kept) == len(self.rows):
            return self
        rows = [self.rows[place] for place in kept]
        return replace(self, rows=rows, values=self.values[:, kept], seconds=self.seconds[kept])

    def course(self, number: int = 0) -> "TableCurves":
        """The curves of the course of this number: each of the seeds is the search's in turn, the others are fresh."""
        return TableCurves(self, number % len(self.seeds))

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each configuration stands, by `key`."""
        return {key(row): place for place, row in enumerate(self.rows)}


def key(params: Mapping[str, Any]) -> str:
    """The same for equal configurations."""
    return json.dumps(params, sort_keys=True)


@dataclass(frozen=True)
class TableCurves:
    """The curves of one course over a table, see `study.simulation.curves.Curves`.

    Attributes:
        own: which of the table's seeds is the search's. With one seed there are no fresh ones: it is all seeds.
    """

    table: Table
    own: int

    @property
    def metrics(self) -> Sequence[str]:
        """Names of what was recorded."""
        return self.table.metrics

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The recorded configurations."""
        return self.table.rows

    def curve(self, params: Mapping[str, Any], seed: int) -> Curve:
        """The recorded curve.

        Raises:
            UserError: the configuration was not recorded.
        """
        place = self.place(params)
        others = self._others
        which = self.own if seed == 0 else others[(seed - 1) % len(others)]
        return Curve(self.table.values[which, place], float(self.table.seconds[place]))

    def place(self, params: Mapping[str, Any]) -> int:
        """Where a configuration stands in the table.

        Raises:
            UserError: it was not recorded.
        """
        place = self.table.places.get(key(params))
        if place is None:
            raise UserError(f"{key(params)}: this configuration was not recorded")
        return place

    def fresh(self, params: Mapping[str, Any], metric: str) -> float | None:
        """The mean over the other seeds, of the test split where it was recorded."""
        test = f"test/{metric.partition('/')[2]}"
        column = self.metrics.index(test if test in self.metrics else metric)
        value = self.table.values[self._others, self.place(params), -1, column].mean()
        return float(value) if np.isfinite(value) else None

    @cached_property
    def _others(self) -> list[int]:
        return [seed for seed in range(len(self.table.seeds)) if seed != self.own] or [self.own]


def _text(array: NDArray[Any]) -> str:
    """The text in an array of one string or of bytes."""
    value = array.item() if array.ndim == 0 else "\n".join(map(str, array.tolist()))
    return value.decode() if isinstance(value, bytes) else str(value)
