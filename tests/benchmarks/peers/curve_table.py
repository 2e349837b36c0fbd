"""A table of recorded curves as a search sees it: rows, the space that they are drawn from, and what each is worth."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Params = Mapping[str, Any]

SELECTION = Path(__file__).parents[1] / "selection_curves.npz"
PAPERS = {
    "method.name": "eps_sup_info_nce",
    "method.alpha": 0.03,
    "method.lambda": 0.75,
    "method.epsilon": 0.5,
    "method.tau_plus": 0.1,
    "method.beta": 1.0,
    "method.temperature": 0.1,
    "train.learning_rate": 0.001,
}
"""What `enqueue: papers` gives first, and the quickstart's learning rate: the prior of methods that take one."""


@dataclass(frozen=True)
class Domain:
    """What a key of the space can be: `choices`, or the range from `low` to `high`.

    Attributes:
        when: the key of choices that decides whether a configuration has this key, and its values that do.
    """

    low: float = 0.0
    high: float = 1.0
    log: bool = False
    whole: bool = False
    choices: tuple[Any, ...] = ()
    when: tuple[str, tuple[Any, ...]] | None = None

    def scaled(self, value: Any) -> float:
        """0 at the lower end of the range, 1 at the upper; a choice's place among them."""
        if self.choices:
            return float(self.choices.index(value))
        low, high, at = (math.log(one) if self.log else one for one in (self.low, self.high, value))
        return (at - low) / (high - low)


@dataclass(frozen=True)
class Table:
    """Recorded curves.

    Attributes:
        name: of the table.
        params: one configuration per row.
        val: validation accuracy, (seeds, rows, epochs); 0 in epochs after a trial diverged.
        test: test accuracy, likewise.
        space: what each key can be.
        grace: the epochs that this project's early stopping gives each trial.
    """

    name: str
    params: Sequence[Params]
    val: Array
    test: Array
    space: Mapping[str, Domain]
    grace: int

    @property
    def epochs(self) -> int:
        return self.val.shape[2]

    @cached_property
    def places(self) -> Array:
        """Rows scaled, (rows, keys), nan where a row does not have a key."""
        return np.array([self._place(params) for params in self.params])

    def distances(self, params: Params) -> Array:
        """Of a configuration to each row: the mean over keys of the differences of scaled values; choices and keys that
        only one of the two has count 1 where they differ."""
        place = self._place(params)
        apart = np.abs(self.places - place)
        chosen = np.array([bool(domain.choices) for domain in self.space.values()])
        apart = np.where(chosen, apart > 0, apart)
        lone = np.isnan(self.places) != np.isnan(place)
        return np.where(lone, 1.0, np.where(np.isnan(self.places) | np.isnan(place), 0.0, apart)).mean(1)

    def active(self, params: Params) -> dict[str, Any]:
        """The keys of a flat configuration that a configuration with its choices has."""
        held = {
            key: domain.when is None or params[domain.when[0]] in domain.when[1] for key, domain in self.space.items()
        }
        return {key: params[key] for key in self.space if held[key]}

    def first(self, rows: int) -> "Table":
        """The table of its first rows, `NAME-first-N` where there are more."""
        if rows == len(self.params):
            return self
        name, kept = f"{self.name}-first-{rows}", slice(rows)
        return replace(self, name=name, params=self.params[kept], val=self.val[:, kept], test=self.test[:, kept])

    def others(self, values: Array, seed: int) -> Array:
        """What each row is worth on the seeds that the search does not see: the mean at the last epoch, (rows,)."""
        return np.delete(values[:, :, -1], seed, axis=0).mean(0)

    def _place(self, params: Params) -> Array:
        return np.array([domain.scaled(params[key]) if key in params else np.nan for key, domain in self.space.items()])


def tables(folder: Path | None) -> dict[str, Table]:
    """The tables of `selection_curves.npz`, and those of a folder of .npz files, by name.

    `digits-unbiased` is what a search on an unbiased validation split would see of `digits`.
    """
    found = {name: _selection(name) for name in ("digits", "digits-unbiased", "mnist", "compas", "adult")}
    files = sorted(folder.glob("*.npz")) if folder else []
    return found | {file.stem: recorded(file) for file in files}


def _selection(name: str) -> Table:
    """One of the data sets of `selection_curves.py`, with its splits as seeds."""
    with np.load(SELECTION) as file:
        curves = np.stack([file[key].astype(float) for key in file.files if key.split("-")[0] == name.split("-")[0]])
    generator = np.random.default_rng(18)  # as in selection_curves.configurations, which needs PyTorch

    def log(low: float, high: float) -> float:
        return float(np.exp(generator.uniform(np.log(low), np.log(high))))

    space = {
        "method.alpha": Domain(0.001, 1.0, log=True),
        "method.lambda": Domain(0.0, 2.0),
        "method.epsilon": Domain(choices=(0.0, 0.1, 0.25, 0.5)),
        "method.temperature": Domain(0.05, 0.5, log=True),
        "train.learning_rate": Domain(0.0003, 0.01, log=True),
    }
    rows = [
        (
            log(0.001, 1.0),
            float(generator.uniform(0, 2)),
            float(generator.choice([0.0, 0.1, 0.25, 0.5])),
            log(0.05, 0.5),
            log(0.0003, 0.01),
        )
        for _ in range(curves.shape[1] - 1)
    ]
    params = [dict(zip(space, row, strict=True)) for row in [(1.0, 0.0, 0.0, 0.1, 0.001), *rows]]
    epochs = curves.shape[2]
    # of selection_curves.COLUMNS: val/accuracy is column 0, unbiased/accuracy 12, test/accuracy 16
    seen = _finite(curves[..., 12 if name.endswith("-unbiased") else 0])
    return Table(name, params, seen, _finite(curves[..., 16]), space, max(1, round(epochs / 5)))


def recorded(file: Path) -> Table:
    """A table that `tests/benchmarks/curves` recorded."""
    import yaml

    with np.load(file) as held:
        metrics = [str(name) for name in held["metrics"]]
        values = held["values"].astype(float)
        lines = held["params"]
        texts = str(lines).splitlines() if lines.ndim == 0 else [str(line) for line in lines]
        study = yaml.safe_load(str(held["study"]))
    params = [json.loads(line) for line in texts if line.strip()]
    val, test = (_finite(values[..., metrics.index(f"{split}/accuracy")]) for split in ("val", "test"))
    rule = study["search"].get("early_stopping") or {}
    grace = rule.get("grace") or max(1, round(val.shape[2] / 5))
    return Table(file.stem, params, val, test, _space(study["search"]["space"], params), grace)


def _finite(values: Array) -> Array:
    return np.nan_to_num(values, nan=0.0)


def _space(given: Mapping[str, Mapping[str, Any]], params: Sequence[Params]) -> dict[str, Domain]:
    """The domains of the keys that differ between rows."""
    found = {}
    for key, domain in given.items():
        values = [row[key] for row in params if key in row]
        if len({str(value) for value in values}) < 2:
            continue
        when = None if len(values) == len(params) else _condition(key, given, params)
        choices = tuple(domain.get("choices") or ())
        if choices:
            found[key] = Domain(choices=choices, when=when)
        else:
            whole = all(isinstance(value, int) for value in values)
            low, high = min(domain["low"], *values), max(domain["high"], *values)  # the baseline's may be outside
            found[key] = Domain(low, high, bool(domain.get("log")), whole, when=when)
    return found


def _condition(
    key: str, given: Mapping[str, Mapping[str, Any]], params: Sequence[Params]
) -> tuple[str, tuple[Any, ...]]:
    """The key of choices that decides which rows have a key, with the values that do."""
    for other, domain in given.items():
        if not domain.get("choices") or any(other not in row for row in params):
            continue
        having = {row[other] for row in params if key in row}
        if having.isdisjoint(row[other] for row in params if key not in row):
            return other, tuple(sorted(having))
    raise ValueError(f"no key of choices decides which rows have {key}")
