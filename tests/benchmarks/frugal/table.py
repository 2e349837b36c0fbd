"""Recorded curves as a search meets them: configurations, their epochs on one seed, and their worth on the others."""

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import CategoricalDistribution

from study.spec import StudySpec, load_study
from study.spec.load import spec_of_resolved
from study.spec.optuna_distributions import distributions_of_space, unit_coordinate_of_value
from study.spec.yaml_document import parse_study_yaml
from tests.benchmarks.selection_curves import COLUMNS, FILE, SETS, configurations

Array = NDArray[np.float64]
TRIALS = 24
"""Of the quickstart: so many full runs are the full budget."""


@dataclass(frozen=True)
class Table:
    """Curves of configurations that a study could try.

    Attributes:
        spec: of the study: its space, its seed, its rule.
        params: of each configuration.
        seen: (seeds, configurations, epochs) of what the search looks at, larger is better.
        test: (seeds, configurations) of the same metric on test, after the last epoch.
        seconds: of an epoch, by configuration.
    """

    name: str
    spec: StudySpec
    params: list[dict[str, Any]]
    seen: Array
    test: Array
    seconds: Array

    @property
    def epochs(self) -> int:
        return self.seen.shape[2]

    @property
    def budget(self) -> int:
        """Epochs of `TRIALS` full runs."""
        return TRIALS * self.epochs

    def truth(self, seed: int, by: str = "others") -> Array:
        """What each configuration is worth, by seeds that the search did not see: `others` (by what the search looks
        at), `test`; or by all seeds: `all`."""
        values = {"others": self.seen[:, :, -1], "test": self.test, "all": self.seen[:, :, -1]}[by]
        return values.mean(0) if by == "all" else np.delete(values, seed, axis=0).mean(0)

    @cached_property
    def points(self) -> Array:
        """(configurations, keys): coordinates from 0 to 1, of choices their number, nan where there is no such key."""
        return np.array([self.point(params) for params in self.params])

    def point(self, params: dict[str, Any]) -> Array:
        found = []
        for key, domain in self._distributions.items():
            if key not in params:
                found.append(np.nan)
            elif isinstance(domain, CategoricalDistribution):
                found.append(float(domain.to_internal_repr(params[key])))
            else:
                found.append(unit_coordinate_of_value(domain, params[key]))  # type: ignore[arg-type]
        return np.array(found)

    @cached_property
    def _distributions(self) -> dict[str, Any]:
        return distributions_of_space(self.spec.space)

    @cached_property
    def _choices(self) -> NDArray[np.bool_]:
        return np.array([isinstance(domain, CategoricalDistribution) for domain in self._distributions.values()])

    def nearest(self, params: dict[str, Any], begun: NDArray[np.bool_]) -> int:
        """The configuration nearest to these parameters that was not begun."""
        own = self.point(params)
        apart = np.abs(self.points - own)
        apart = np.where(self._choices, apart != 0, apart)
        one_lacks = np.isnan(self.points) != np.isnan(own)
        apart = np.where(one_lacks, 1.0, np.where(np.isnan(self.points), 0.0, apart)).mean(1)
        return int(np.where(begun, np.inf, apart).argmin())


def recorded(path: Path) -> Table:
    """A table of `tests/benchmarks/curves`."""
    file = np.load(path)
    spec = spec_of_resolved(parse_study_yaml(str(file["study"]), str(path)))
    values, metrics = file["values"].astype(float), [str(name) for name in file["metrics"]]
    sign = 1.0 if spec.mode == "max" else -1.0
    seen = np.nan_to_num(sign * values[..., metrics.index(spec.metric)], nan=min(sign, 0.0))
    test = np.nan_to_num(sign * values[..., -1, metrics.index(spec.test_metric)], nan=min(sign, 0.0))
    texts = file["params"] if file["params"].ndim else str(file["params"]).splitlines()
    params = [json.loads(text) for text in texts]
    seconds = np.broadcast_to(np.nan_to_num(file["seconds"].astype(float), nan=1.0), len(params))
    return Table(path.stem, spec, params, seen, test, np.array(seconds))


def of_selection(name: str, split: str = "val") -> Table:
    """A data set of `selection_curves.npz`; its learning rate and temperature are searched, too."""
    with np.load(FILE) as file:
        curves = np.stack([file[key] for key in file if key.startswith(f"{name}-")]).astype(float)
    params = [
        {("train." if key == "learning_rate" else "method.") + key: value for key, value in one.items()}
        for one in configurations()
    ]
    space = (
        "search.space.method.temperature={low: 0.05, high: 0.5, log: true}",
        "search.space.train.learning_rate={low: 0.0003, high: 0.01, log: true}",
        f"train.epochs={SETS[name].epochs}",
        f"search.early_stopping.grace={max(1, SETS[name].epochs // 5)}",
        "search.baseline=null",
    )
    shown = curves[..., COLUMNS.index(f"{split}/accuracy")]
    test = curves[:, :, -1, COLUMNS.index("test/accuracy")]
    label = name if split == "val" else f"{name}-{split}"
    return Table(label, load_study("fairkl_digits", space), params, np.nan_to_num(shown), test, np.ones(len(params)))


def without_baseline(table: Table) -> Table:
    """The same, searched without a baseline, as all packages can."""
    search = table.spec.search.model_copy(update={"baseline": None, "enqueue": []})
    return replace(table, spec=replace(table.spec, search=search))
