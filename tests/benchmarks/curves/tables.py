"""Recorded curves as tables: one `.npz` per study, in half precision, read without loading PyTorch.

A file holds `params` (one JSON text per configuration), `metrics` (names), `values` (seeds, configurations, epochs,
metrics), `seeds`, `seconds` (per configuration), `study` (the resolved study file) and `command`.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from study import simulation

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Table(simulation.Table):
    """The curves of a study's configurations, trained in full on each seed; the baseline first, then what the study is
    given. The first metric is the study's own, the second the same on the test split.

    Attributes:
        values: NaN from the epoch on in which a trial diverged.
        seeds: of training; the data and their split are the same for all.
        seconds: CPU time of an epoch with its evaluation on one thread; where `command` says that trials were one
            program, a trial's share of it, about half of its time alone.
        command: what recorded it, and how.
    """

    command: str = ""

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


def read(path: Path) -> Table:
    """The table of a file.

    Raises:
        UserError: it is none.
        KeyError: it does not say what recorded it.
    """
    table = Table.load(path)
    with np.load(path) as file:
        return replace(table, command=str(file["command"]))


def recorded() -> dict[str, Path]:
    """The tables beside this file, by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.npz"))}
