"""Which value of the validation split a search chooses best by: shares or losses, of one epoch or several, smoothed.

    STUDY_DATA=... python tests/benchmarks/search_values.py record [--tables NAME ...] [--splits 0 1 2] [--tried 34]
    python tests/benchmarks/search_values.py table

`record` cuts tables to 1,000 rows to learn from, of which `study init` drafts a study, and trains on one thread its
baseline, what it tries first and configurations drawn from its space, each whole on one seed. One line a trial is added
to `search_values.jsonl` beside this file: each value at the last five epochs, its standard error, and the mean accuracy
of the cells of the held-back rows. What is there is not trained again.

A temperature is fitted for each configuration on the validation split itself. Smoothed values are the posterior mean
of a Gaussian process (Matern 5/2), or a forest's prediction, over the configurations that were offered, at these.

`table` reads these, and of `overtuning.jsonl` the last epoch on folders of pictures. It prints, by kind of data, the
rank correlation of each value with test over all configurations, and the mean regret in points to the best of those
offered: those known to be good (the papers', or what a draft tries first) and 5, 14, 30 drawn ones (of a smaller pool
all), 200 draws, 3 of what is smoothed; in brackets with a margin of 1.5 standard errors. Then the value that is best on
the other data sets when each is left out in turn. The recorded pictures have no squares
of losses: their standard errors take a loss to spread as widely as it is large.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import overtuning
import references
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel
from torch import Tensor
from torch.nn import functional

from study import data
from study.data.dataset import Dataset, Facts, Split
from study.spec import StudySpec, load_study
from study.sweep.search_stage import UntriedSuggestions
from study.training import metrics
from study.training.cell_statistics import CellStatistics, PredictionCounts, kinds_of_cells
from study.training.diverged import DivergedError
from study.training.trial import Trial

FILE = Path(__file__).with_suffix(".jsonl")
TABLES = ("compas-1000", "adult-1000", "bank-1000")
LAST, OFFERED, MARGIN, DRAWS = 5, (5, 14, 30), 1.5, 200
KNOWN = ("papers", "first")
SHARE, LOSS = "shrunk_unbiased_accuracy", "shrunk_unbiased_log_loss"
BRIER, TEMPERED = "shrunk_unbiased_brier", "shrunk_unbiased_log_loss, tempered"
OF_PRODUCT = (SHARE, "unbiased_accuracy", LOSS, "unbiased_log_loss")
WITHOUT_BIAS = ("worst_class_accuracy", "balanced_accuracy", "balanced_log_loss")

Floats = NDArray[np.float64]

# Recording.


def values(scores: Tensor, split: Split, facts: Facts) -> Iterator[tuple[str, float, float]]:
    """Every value of logits (N, classes) on a split, with its standard error."""
    assert split.bias is not None
    target, bias = torch.from_numpy(split.target), torch.from_numpy(split.bias)
    found = metrics.compute_metrics(scores, scores.argmax(1), target, bias, facts, errors=True)
    for name in (*OF_PRODUCT, *WITHOUT_BIAS):
        yield name, float(found[name]), float(found[f"{name}_standard_error"])

    def losses(temperature: float) -> CellStatistics:
        return PredictionCounts.from_predictions(
            scores.argmax(1), target, bias, facts, scores / temperature
        ).log_loss_statistics

    fitted = minimize_scalar(
        lambda log: float(losses(np.exp(log)).shrunk_values.mean()), bounds=(-3, 4), method="bounded"
    ).x
    yield TEMPERED, *worth(losses(np.exp(fitted)))
    off = scores.double().softmax(1) - functional.one_hot(target, facts.classes)
    counts = PredictionCounts.from_predictions(scores.argmax(1), target, bias, facts)
    at = (
        functional.one_hot(target, facts.classes).double().T,
        functional.one_hot(bias, facts.bias_classes or 1).double(),
    )
    sums, squares = (at[0] @ (at[1] * off.square().sum(1)[:, None] ** power) for power in (1, 2))
    yield BRIER, *worth(CellStatistics(sums, counts.accuracy_statistics.samples, counts.kind_of_cell, squares))


def worth(cells: CellStatistics) -> tuple[float, float]:
    """The mean of the shrunk cells, and its standard error."""
    return float(cells.shrunk_values.mean()), float(cells.variance_of_shrunk_mean.sqrt())


def cell_mean(predicted: Tensor, split: Split, facts: Facts) -> float:
    """Mean accuracy of the cells."""
    assert split.bias is not None
    counts = PredictionCounts.from_predictions(
        predicted, torch.from_numpy(split.target), torch.from_numpy(split.bias), facts
    )
    return round(float(counts.group_accuracy.nanmean()), 6)


def drafted(name: str, seed: int, scratch: Path) -> StudySpec:
    """What `study init` drafts of a table whose other rows are held back, as `references.py`."""
    references.cut(name, seed, scratch / "own.csv")
    target, bias = references.TABLES[name.partition("-")[0]]
    answers = ["--data", str(scratch / "own.csv"), "--target", target, "--bias", bias, "--cpu", "-o", "own.yaml"]
    environment = {**os.environ, "STUDY_HOME": str(scratch / "home")}
    quiet: dict[str, Any] = {"env": environment, "check": True, "cwd": scratch, "stdout": subprocess.DEVNULL}
    subprocess.run([sys.executable, "-m", "study", "init", "own", *answers], stdin=subprocess.DEVNULL, **quiet)
    return load_study(str(scratch / "own.yaml"), ["search.sampler=random"])


def configurations(spec: StudySpec, count: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The baseline, what is tried first, and drawn ones."""
    sampler = UntriedSuggestions(spec)
    assert spec.search.baseline is not None
    given = [("baseline", spec.search.baseline), *(("first", params) for params in spec.search.enqueue)]
    for number, (_, params) in enumerate(given):
        sampler.add_decided_params(number, params)
    yield from given
    for number in range(len(given), count):
        drawn = sampler.suggest_untried_params(number)
        assert drawn is not None
        yield "search", dict(drawn)


def measured(spec: StudySpec, dataset: Dataset, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Train one configuration; its line, without what names it; None: it diverged."""
    trial, found, errors = Trial(spec.trial_config(params, 0), dataset, "cpu"), dict[str, list[float]](), {}
    try:
        for epoch, _ in enumerate(trial.train_epochs()):
            if epoch >= spec.epochs - LAST:
                scores = trial.evaluate.class_scores("encoder", trial.evaluate.compute_features("val")).float()
                for name, value, error in values(scores, dataset.splits["val"], dataset.facts):
                    found.setdefault(name, []).append(round(value, 6))
                    errors[name] = round(error, 6)
    except DivergedError as problem:
        print(problem)
        return None
    of_test = trial.evaluate.class_scores("encoder", trial.evaluate.compute_features("test")).float()
    line = {"params": dict(params), "test": cell_mean(of_test.argmax(1), dataset.splits["test"], dataset.facts)}
    return {**line, "values": found, "errors": errors}


def record(file: Path, tables: Sequence[str], splits: Sequence[int], count: int) -> None:
    """Train what is not there yet."""
    torch.set_num_threads(1)
    have = {(line["of"], line["split"], line["place"]) for line in overtuning.lines(file)}
    for split, name in ((split, name) for split in splits for name in tables):
        with tempfile.TemporaryDirectory() as scratch:
            spec = drafted(name, split, Path(scratch))
            dataset = data.load(dict(spec.base["data"]))
            for place, (source, params) in enumerate(configurations(spec, count)):
                if (name, split, place) in have:
                    continue
                if (one := measured(spec, dataset, params)) is not None:
                    overtuning.add(file, {"of": name, "split": split, "place": place, "source": source, **one})


# What each value chooses.

Smooth = Callable[[Floats, Floats], Floats]
"""Of configurations (N, D) and their values (N,), smoothed values."""


def gaussian_process(at: Floats, seen: Floats) -> Floats:
    """The posterior mean of a Gaussian process."""
    kernel = Matern(2.0, (0.5, 20.0), nu=2.5) + WhiteKernel(0.3, (1e-3, 2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found: Floats = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0).fit(at, seen).predict(at)
    return found


def forest(at: Floats, seen: Floats) -> Floats:
    """The prediction of a forest whose leaves have three configurations at least."""
    found: Floats = RandomForestRegressor(50, min_samples_leaf=3, random_state=0).fit(at, seen).predict(at)
    return found


@dataclass(frozen=True)
class Pool:
    """The configurations of a split, each array (N,); values larger the better, see `VALUES`."""

    kind: str
    of: str
    sources: Sequence[str]
    at: Floats
    test: Floats
    values: Mapping[str, Floats]
    errors: Mapping[str, Floats]

    @property
    def known(self) -> list[int]:
        """The places of those that are known to be good."""
        return [place for place, source in enumerate(self.sources) if source in KNOWN]

    def regret(self, name: str, smooth: Smooth | None, count: int, margin: float) -> float:
        """The mean regret of what a value chooses with so many drawn ones, in points."""
        others = [place for place, source in enumerate(self.sources) if source == "search"]
        generator, found = np.random.default_rng(0), []
        for _ in range(3 if smooth else DRAWS):
            offered = np.array([*self.known, *generator.permutation(others)[:count]])
            seen = self.values[name][offered]
            seen = smooth(self.at[offered], seen) if smooth else seen
            first = int(seen[: len(self.known)].argmax())
            reach = margin * np.hypot(*(self.errors[name][place] for place in (offered, offered[first])))
            clears = (seen > seen[first]) & (seen - seen[first] > reach)
            chosen = int(np.where(clears, seen, -np.inf).argmax()) if clears.any() else first
            found.append(self.test[offered].max() - self.test[offered[chosen]])
        return 100 * float(np.mean(found))


def design(rows: Sequence[Mapping[str, Any]]) -> Floats:
    """Configurations (N, D): numbers on their scale, standardised, of words which it is."""
    columns = []
    for key in sorted({key for row in rows for key in row["params"]}):
        found = [row["params"].get(key) for row in rows]
        if all(value is None or isinstance(value, int | float) for value in found):
            numbers = np.array([np.nan if value is None else float(value) for value in found])
            if np.nanmin(numbers) > 0 and np.nanmax(numbers) > 8 * np.nanmin(numbers):
                numbers = np.log(numbers)
            columns.append(np.nan_to_num((numbers - np.nanmean(numbers)) / (np.nanstd(numbers) or 1.0)))
        else:
            columns += [np.array([value == word for value in found], float) for word in {*map(str, found)}]
    return np.array(columns).T


def turned(name: str) -> float:
    """1 for an accuracy, -1 for a loss."""
    return 1.0 if "accuracy" in name else -1.0


def of_tables(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Values and errors of recorded trials; `NAME, mean of 3` is over the last three epochs."""
    found, errors = {}, {}
    for name in rows[0]["values"]:
        for window in (1, 2, 3, 5) if name in (SHARE, LOSS) else (1,):
            title = name if window == 1 else f"{name}, mean of {window}"
            found[title] = turned(name) * np.array([np.mean(row["values"][name][-window:]) for row in rows])
            errors[title] = np.array([row["errors"][name] for row in rows])
    return found, errors


def of_pictures(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """The same of `overtuning.jsonl`."""
    alike = kinds_of_cells(Facts(10, 10, (1,), aligned=tuple(range(10))), torch.device("cpu"))
    found: dict[str, list[float]] = {}
    errors: dict[str, list[float]] = {}
    for row in rows:
        table = torch.zeros(4, 10, 10, dtype=torch.float64)
        for y, s, *sums in row["cells"]:
            table[:, int(y), int(s)] = torch.tensor(sums, dtype=torch.float64)
        samples, right, log, brier = table
        has, classes = samples > 0, samples.sum(1)
        spread = [2 * lost.square() / samples.clamp(min=1) for lost in (log, brier)]
        shrunk = [CellStatistics(right, samples, alike), CellStatistics(log, samples, alike, spread[0])]
        shrunk.append(CellStatistics(brier, samples, alike, spread[1]))
        for name, cells in zip((SHARE, LOSS, BRIER), shrunk, strict=True):
            value, error = worth(cells)
            found.setdefault(name, []).append(value)
            errors.setdefault(name, []).append(error)
        for name, sums in (("unbiased_accuracy", right), ("unbiased_log_loss", log)):
            found.setdefault(name, []).append(float((sums[has] / samples[has]).mean()))
            errors.setdefault(name, []).append(errors[SHARE if sums is right else LOSS][-1])
        found.setdefault("balanced_log_loss", []).append(float((log.sum(1) / classes).mean()))
        found.setdefault("balanced_accuracy", []).append(float((right.sum(1) / classes).mean()))
        for name in ("balanced_log_loss", "balanced_accuracy"):
            errors.setdefault(name, []).append(errors[LOSS if "loss" in name else SHARE][-1])
    arrays = {name: turned(name) * np.array(numbers) for name, numbers in found.items()}
    return arrays, {name: np.array(numbers) for name, numbers in errors.items()}


def pools(tables: Path) -> Iterator[Pool]:
    """One of each data set and split."""
    for kind, file, read in (("pictures", overtuning.FILE, of_pictures), ("tables", tables, of_tables)):
        by: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for line in overtuning.lines(file):
            if line["source"] != "curves":
                by.setdefault((line["of"], line["split"]), []).append(line)
        for (of, _), rows in by.items():
            test = np.array([row["test"] for row in rows])
            yield Pool(kind, of, [row["source"] for row in rows], design(rows), test, *read(rows))


SMOOTH: Mapping[str, Smooth | None] = {"": None, ", Gaussian process": gaussian_process, ", forest": forest}


def table(file: Path) -> None:
    """Print what each value chooses, and which is best when each data set is left out."""
    every = list(pools(file))
    for kind in dict.fromkeys(pool.kind for pool in every):
        of_kind = [pool for pool in every if pool.kind == kind]
        print(f"\n{kind}, {len(of_kind)} splits of {', '.join(dict.fromkeys(pool.of for pool in of_kind))}:\n")
        print(f"| value | rank correlation | {' | '.join(f'{count} drawn' for count in OFFERED)} |")
        print(f"|{'---|' * (2 + len(OFFERED))}")
        regrets: dict[str, dict[str, float]] = {}
        for name in of_kind[0].values:
            for title, smooth in SMOOTH.items() if name in (SHARE, LOSS) else [("", None)]:
                shown, by_set = [], {pool.of: list[float]() for pool in of_kind}
                for count in OFFERED:
                    margins = (0.0,) if smooth else (0.0, MARGIN)
                    found = [[pool.regret(name, smooth, count, margin) for margin in margins] for pool in of_kind]
                    first, *rest = (f"{mean:.2f}" for mean in np.mean(found, axis=0))
                    shown.append(" ".join([first, *(f"({mean})" for mean in rest)]))
                    for pool, (without, *_) in zip(of_kind, found, strict=True):
                        by_set[pool.of].append(without)
                ordered = [smooth(pool.at, pool.values[name]) if smooth else pool.values[name] for pool in of_kind]
                rho = [spearmanr(one, pool.test).statistic for one, pool in zip(ordered, of_kind, strict=True)]
                print(f"| `{name}`{title} | {np.mean(rho):.2f} | {' | '.join(shown)} |", flush=True)
                regrets[f"{name}{title}"] = {of: float(np.mean(each)) for of, each in by_set.items()}
        print()
        for left_out in regrets[SHARE]:
            means = {
                name: np.mean([regret for of, regret in by.items() if of != left_out]) for name, by in regrets.items()
            }
            best = min(means, key=lambda name: means[name])
            own = ", ".join(f"{name}: {regrets[name][left_out]:.2f}" for name in dict.fromkeys((best, LOSS, SHARE)))
            print(f"- {left_out} left out: best on the others is {best} ({means[best]:.2f}); there {own}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "table"))
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--splits", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--tried", type=int, default=34)
    given = parser.parse_args()
    if given.what == "record":
        record(given.file, given.tables, given.splits, given.tried)
    else:
        table(given.file)


if __name__ == "__main__":
    main()
