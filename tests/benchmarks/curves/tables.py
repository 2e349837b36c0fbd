"""Recorded curves as tables: one `.npz` per study, in half precision, read without loading PyTorch.

A file holds `params` (one JSON text per configuration), `metrics` (names), `values` (seeds, configurations, epochs,
metrics), `seeds`, `seconds` (per configuration), `study` (the resolved study file) and `command`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Table:
    """The curves of a study's configurations, trained in full on each seed; the baseline first, then what the study is
    given. The first metric is the study's own, the second the same on the test split.

    Attributes:
        rows: the configurations, keys as in the study file.
        metrics: names of what was recorded, as `val/accuracy`.
        values: (seeds, configurations, epochs, metrics), NaN from the epoch on in which a trial diverged.
        seeds: of training; the data and their split are the same for all.
        seconds: CPU time of an epoch with its evaluation on one thread; where `command` says that trials were one
            program, a trial's share of it, about half of its time alone.
        command: what recorded it, and how.
    """

    rows: Sequence[Mapping[str, Any]]
    metrics: Sequence[str]
    values: NDArray[np.float64]
    seeds: Sequence[int]
    seconds: NDArray[np.float64]
    study: str
    command: str

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file. Raises KeyError where a part is missing."""
        with np.load(path) as file:
            rows = file["params"]
            lines = str(rows).splitlines() if rows.ndim == 0 else rows.tolist()
            values, seconds = file["values"].astype(np.float64), file["seconds"].astype(np.float64)
            return cls(
                [json.loads(line) for line in lines],
                [str(name) for name in file["metrics"].tolist()],
                values,
                [int(seed) for seed in file["seeds"].tolist()],
                seconds.mean(tuple(range(seconds.ndim - 1))) if seconds.ndim > 1 else seconds,
                str(file["study"]),
                str(file["command"]),
            )

    def of(self, metric: str) -> NDArray[np.float64]:
        """The curves of a metric, (seeds, configurations, epochs).

        Raises:
            KeyError: the table does not have it.
        """
        if metric not in self.metrics:
            raise KeyError(f"{metric!r} is not recorded, but {', '.join(self.metrics)}")
        return self.values[..., list(self.metrics).index(metric)]

    def write(self, path: Path) -> None:
        """Write it as a compressed file."""
        np.savez_compressed(
            path,
            params=np.array([json.dumps(params) for params in self.rows]),
            metrics=np.array(self.metrics),
            values=self.values.astype(np.float16),
            seeds=np.array(self.seeds),
            seconds=self.seconds.astype(np.float16),
            study=np.array(self.study),
            command=np.array(self.command),
        )


def recorded() -> dict[str, Path]:
    """The tables beside this file, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.npz"))}
