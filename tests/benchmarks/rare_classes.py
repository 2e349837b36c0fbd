"""How should a shrunk metric treat a class with few samples? Simulated tables, of which new unbiased rows are known.

    python tests/benchmarks/rare_classes.py [--draws 6]

Each table has 500 or 1,500 rows of six columns and one-hot bias classes, 2, 3 or 5 classes, of which the rarest is 1, 8
or 25 times as rare as the most frequent, and a bias that goes with the class in all rows but 10 or 3%; or three bias
classes that go with none. Offered are 48 logistic regressions: weights of classes and of cells, penalties, with and
without the bias among the inputs. Each is fitted on four of five folds in turn; its value is that of the samples of all
folds together, or of one fold. Regret is in points of accuracy over all cells, and of recall of the worst class, on
6,000 new rows that have each pair of class and bias class as often.

Printed are the mean regrets by each metric and by each `CLASS_PRIOR_SAMPLES` of `study.training.cell_statistics`, and
what a search loses whose configurations run on one fold each, in turn, and whose best 3 or 5 are judged on all folds.
"""

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from study.data import Facts
from study.training.cell_statistics import CellStatistics, kinds_of_cells

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

FOLDS, COLUMNS, NEW_ROWS = 5, 6, 6_000
SHRINKAGES = (1e9, 30.0, 10.0, 3.0, 1.0, 0.3)
CONFIGURATIONS = [
    *product((0.0, 0.5, 1.0), (0.0, 0.5, 1.0), (0.003, 0.03, 0.3, 3.0), (True,)),
    *product((0.0, 0.5, 1.0), (0.0,), (0.003, 0.03, 0.3, 3.0), (False,)),
]
"""Powers of the weights of classes and of cells, inverse penalty, and whether the bias is among the inputs."""


@dataclass(frozen=True)
class Setting:
    """What a table is drawn by: `conflict` is None where no bias class goes with a class."""

    classes: int
    ratio: float
    rows: int
    conflict: float | None

    @property
    def bias_classes(self) -> int:
        """As many as classes, or three that go with none."""
        return 3 if self.conflict is None else self.classes

    @property
    def facts(self) -> Facts:
        """Of the data."""
        own = None if self.conflict is None else tuple(range(self.classes))
        return Facts(self.classes, self.bias_classes, (COLUMNS,), aligned=own)


SETTINGS = [
    *(Setting(*of) for of in product((2, 3, 5), (1, 8, 25), (500, 1500), (0.1, 0.03))),
    *(Setting(*of, None) for of in product((2, 5), (1, 8, 25), (500, 1500))),
]


@dataclass(frozen=True)
class Fitted:
    """Configurations of one table: log losses of its rows and whether each is right (configurations, rows); on new rows
    the accuracy over cells and the recall of the worst class, (configurations, 2)."""

    setting: Setting
    target: Labels
    bias: Labels
    fold: Labels
    losses: Array
    right: Array
    test: Array

    def cells(self, values: Array, rows: NDArray[np.bool_], is_loss: bool) -> CellStatistics:
        """The cells of some rows."""
        shape = self.setting.classes, self.setting.bias_classes
        cell = (self.target * shape[1] + self.bias)[rows]
        sums, squares, samples = (
            torch.from_numpy(np.bincount(cell, of[rows], shape[0] * shape[1])).view(shape)
            for of in (values, values**2, np.ones(len(values)))
        )
        kinds = kinds_of_cells(self.setting.facts, torch.device("cpu"))
        return CellStatistics(sums, samples, kinds, squares if is_loss else None)


@dataclass(frozen=True)
class Rows:
    """Rows of a drawn table: inputs (rows, `COLUMNS` + bias classes), the last ones one-hot bias classes."""

    inputs: Array
    target: Labels
    bias: Labels


def drawn(setting: Setting, generator: np.random.Generator) -> tuple[Rows, Rows]:
    """Draw a table, and `NEW_ROWS` new rows in which each pair of class and bias class is as frequent."""
    classes, groups = setting.classes, setting.bias_classes
    centres = generator.normal(size=(classes, COLUMNS)) * generator.uniform(0.6, 1.1)
    shifts = generator.normal(size=(groups, COLUMNS)) * 0.7 * (generator.random() < 0.7)
    often = setting.ratio ** (-np.arange(classes) / max(classes - 1, 1))
    often = generator.permutation(often / often.sum())
    tilt = generator.dirichlet(np.full(groups, 1.5), classes)
    scale = np.linspace(0.7, 1.6, COLUMNS)

    def inputs(target: Labels, bias: Labels) -> Array:
        noise = generator.normal(size=(len(target), COLUMNS)) * scale
        return np.c_[centres[target] + shifts[bias] + noise, np.eye(groups)[bias]]

    target = generator.choice(classes, setting.rows, p=often)
    if setting.conflict is None:
        bias = np.array([generator.choice(groups, p=tilt[of]) for of in target])
    else:
        against = generator.random(setting.rows) < setting.conflict
        bias = np.where(against, generator.integers(groups, size=setting.rows), target)
    seen = inputs(target, bias)
    new_target, new_bias = generator.integers(classes, size=NEW_ROWS), generator.integers(groups, size=NEW_ROWS)
    return Rows(seen, target, bias), Rows(inputs(new_target, new_bias), new_target, new_bias)


def fitted(setting: Setting, seed: int) -> Fitted:
    """Draw a table and fit every configuration."""
    generator = np.random.default_rng(seed)
    classes, groups = setting.classes, setting.bias_classes
    table, others = drawn(setting, generator)
    seen, target, bias = table.inputs, table.target, table.bias
    new, new_target, new_bias = others.inputs, others.target, others.bias
    fold = np.empty(setting.rows, np.int64)
    fold[np.lexsort((generator.random(setting.rows), bias, target))] = np.arange(setting.rows) % FOLDS
    scores = np.zeros((len(CONFIGURATIONS), setting.rows, classes))
    test = np.zeros((len(CONFIGURATIONS), 2))
    for place, (of_class, of_cell, inverse_penalty, has_bias) in enumerate(CONFIGURATIONS):
        columns = slice(None) if has_bias else slice(0, COLUMNS)
        for held in range(FOLDS):
            learn = fold != held
            weights = sample_weights(target[learn], bias[learn], groups, of_class, of_cell)
            model = LogisticRegression(C=inverse_penalty, max_iter=150, tol=1e-3)
            model.fit(seen[learn][:, columns], target[learn], sample_weight=weights)
            scores[place][np.ix_(~learn, model.classes_)] = model.predict_proba(seen[~learn][:, columns])
            if held == 0:
                hits = model.predict(new[:, columns]) == new_target
                of_cells = [
                    hits[(new_target == y) & (new_bias == s)].mean() for y in range(classes) for s in range(groups)
                ]
                test[place] = np.mean(of_cells), min(hits[new_target == y].mean() for y in range(classes))
    losses = -np.log(np.take_along_axis(scores, target[None, :, None], 2)[..., 0].clip(1e-6))
    return Fitted(setting, target, bias, fold, losses, (scores.argmax(2) == target).astype(float), test)


def sample_weights(target: Labels, bias: Labels, groups: int, of_class: float, of_cell: float) -> Array:
    """Powers of the inverse frequencies of the class, and of the cell within its class."""
    cell = target * groups + bias
    n_class, n_cell = np.bincount(target)[target], np.bincount(cell)[cell]
    weights: Array = (len(target) / n_class) ** of_class * (n_class / n_cell) ** of_cell
    return weights / weights.mean()


def values(of: Fitted, rows: NDArray[np.bool_]) -> Iterator[tuple[str, Array]]:
    """Yield each metric, smaller is better, (configurations,)."""
    losses = [of.cells(one, rows, is_loss=True) for one in of.losses]
    accuracies = [of.cells(one, rows, is_loss=False) for one in of.right]
    for shrinkage in SHRINKAGES:
        with patch("study.training.cell_statistics.CLASS_PRIOR_SAMPLES", shrinkage):
            name = f"class shrinkage {shrinkage:g}" if shrinkage < 1e9 else "no effect of classes"
            for word, cells in (("log loss", losses), ("accuracy", accuracies)):
                anew = [CellStatistics(one.sums, one.samples, one.kind_of_cell, one.squares) for one in cells]
                sign = 1 if word == "log loss" else -1
                yield f"shrunk {word}, {name}", sign * np.array([float(one.shrunk_values.mean()) for one in anew])
    yield "unbiased log loss", np.array([float((one.sums / one.samples).nanmean()) for one in losses])
    of_class = [one.sums.sum(1) / one.samples.sum(1) for one in losses]
    yield "balanced log loss", np.array([float(one.nanmean()) for one in of_class])
    yield "log loss", np.array([float(one.sums.sum() / one.samples.sum()) for one in losses])


def searched(
    of: Fitted, folds: Sequence[Array], joined: Array, generator: np.random.Generator
) -> Iterator[tuple[str, float]]:
    """Yield the regret of searches that are offered 14 or 30 configurations, by what is known of each in the search."""
    for offered in (14, 30):
        order = generator.permutation(len(CONFIGURATIONS))[:offered]
        turn = np.arange(offered) % FOLDS
        known = np.array(folds)
        for name, value in (
            ("a fold each", known[turn, order]),
            ("a fold each, less the plain one on it", known[turn, order] - known[turn, 0]),
            ("the first fold", known[0, order]),
            ("all folds each", joined[order]),
        ):
            for top in (3, 5):
                kept = order[np.argsort(value, kind="stable")[:top]]
                chosen = kept[joined[kept].argmin()]
                yield (
                    f"{name}, {top} confirmed: {offered} offered",
                    100 * (of.test[order, 0].max() - of.test[chosen, 0]),
                )


def main() -> None:
    """Draw the tables and print what each metric loses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=6, help="tables of each of the 48 settings")
    draws: int = parser.parse_args().draws
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    regrets: dict[str, list[Array]] = defaultdict(list)
    lost: dict[str, list[float]] = defaultdict(list)
    settings: list[Setting] = []
    for seed, (place, setting) in product(range(draws), enumerate(SETTINGS)):
        of = fitted(setting, 1000 * place + seed)
        settings.append(setting)
        joined = dict(values(of, np.ones(setting.rows, bool)))
        folds = [dict(values(of, of.fold == held)) for held in range(FOLDS)]
        best = of.test.max(0)
        for name, value in joined.items():
            alone = np.mean([best[0] - of.test[fold[name].argmin(), 0] for fold in folds])
            regrets[name].append(100 * np.array([*(best - of.test[value.argmin()]), alone]))
        name = "shrunk log loss, class shrinkage 1"
        generator = np.random.default_rng(seed)
        for title, regret in searched(of, [fold[name] for fold in folds], joined[name], generator):
            lost[title].append(regret)
    base = np.array(regrets["shrunk log loss, no effect of classes"])
    parts = {
        "all": np.ones(len(settings), bool),
        **{f"rarest 1 in {ratio}": np.array([one.ratio == ratio for one in settings]) for ratio in (1, 8, 25)},
        "no class of its own": np.array([one.conflict is None for one in settings]),
    }
    print(f"Regret over all cells / of the worst class, all folds, {len(settings)} tables; of all cells on one fold:\n")
    print(f"| metric | {' | '.join(parts)} | one fold | less than without (95%) |\n|---{'|---' * (len(parts) + 2)}|")
    for name, found in regrets.items():
        mean = np.array(found)
        cells = [f"{mean[which, 0].mean():.1f} / {mean[which, 1].mean():.1f}" for which in parts.values()]
        gain = base[:, 0] - mean[:, 0]
        said = f"{gain.mean():.2f} ± {1.96 * gain.std() / len(gain) ** 0.5:.2f}"
        print(f"| {name} | {' | '.join(cells)} | {mean[:, 2].mean():.1f} | {said} |")
    print("\n| searched by the log loss with class shrinkage 1 | regret |\n|---|---|")
    for title, each in lost.items():
        print(f"| {title} | {np.mean(each):.2f} |")


if __name__ == "__main__":
    main()
