"""What is said of configurations whose folds are joined: the error of each value, the interval of a difference.

A sample has a difficulty, which all configurations share, and each its own luck with it: the margin of a network on the
sample is the configuration's skill in that kind of cell, aligned or conflicting, less both.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from study.data.dataset import Dataset, Facts, Folds, Split
from study.home.events import Joined
from study.ranking.difference import Side
from study.spec import StudySpec, load_study
from study.sweep.joined import FoldPredictions, Joiner

from .row import Row

METRICS = ("shrunk_unbiased_log_loss", "shrunk_unbiased_accuracy", "conflicting_accuracy")
SHARED, OWN = 2.0, 1.5
"""Deviations of a sample's difficulty, and of a configuration's luck with it."""

SKILLS = ((5.0, 0.5), (5.0, 1.5))
"""Of two configurations, on aligned and on conflicting samples."""

SAMPLES = 900
CELLS = {"10 classes, 10 groups": (10, 0.05), "2 classes, 2 groups": (2, 0.05), "10 classes, half against": (10, 0.5)}
"""Classes, as many as groups, and the share of samples that conflict with the bias."""


def rows(draws: int) -> Iterator[Row]:
    """At most 200 data sets a row, two configurations each."""
    for title, (classes, share) in CELLS.items():
        yield from intervals(
            f"{title}; {SAMPLES} samples, {100 * share:g}% conflict with the bias", classes, share, min(draws, 200)
        )


def intervals(truth: str, classes: int, share: float, draws: int) -> Iterator[Row]:
    spec = load_study("quickstart_biased")
    true = [worth(skill, classes) for skill in SKILLS]
    generator = np.random.default_rng(classes)
    alone, apart = dict.fromkeys(METRICS, 0), dict.fromkeys(METRICS, 0)
    for _ in range(draws):
        target = np.arange(SAMPLES) % classes
        against = np.arange(SAMPLES) < round(share * SAMPLES)
        bias = np.where(against, (target + generator.integers(1, classes, SAMPLES)) % classes, target)
        joiner = judge(spec, classes, target, bias)
        difficulty = SHARED * generator.standard_normal(SAMPLES)
        sides = []
        for number, skill in enumerate(SKILLS):
            margin = np.where(against, skill[1], skill[0]) - difficulty - OWN * generator.standard_normal(SAMPLES)
            verdict = FoldPredictions(
                np.where(margin > 0, target, (target + 1) % classes), np.log1p(np.exp(-margin)).astype("f4")
            )
            found = Joined(number, (number,), *joiner.judged([verdict]))
            sides.append(Side(f"trial {number}", number, (), spec, joined=found))
        for name in METRICS:
            key = f"val/{name}"
            spread = sides[0].spread(key)
            gain = sides[1].against(sides[0], key)
            assert spread
            assert spread.split_error
            assert gain
            assert gain.interval
            alone[name] += abs(spread.mean - true[0][name]) <= 1.96 * spread.split_error
            apart[name] += gain.interval[0] <= true[1][name] - true[0][name] <= gain.interval[1]
    for name in METRICS:
        said = f"val/{name} of all folds joined ± 1.96 of its standard error"
        yield Row(said, "report, MLflow", truth, "92% to 98%", 0.92, 0.98, alone[name] / draws, draws)
        said = f"95% interval of a difference of val/{name}, all folds joined"
        yield Row(said, "report, status, run", truth, "92% to 98%", 0.92, 0.98, apart[name] / draws, draws)


@cache
def worth(skill: tuple[float, float], classes: int) -> dict[str, float]:
    """What a configuration is worth on samples without end, of all cells alike."""
    off = np.hypot(SHARED, OWN) * np.random.default_rng(0).standard_normal(1_000_000)
    right, lost = (
        np.array([each(at - off).mean() for at in skill]) for each in (lambda m: m > 0, lambda m: np.log1p(np.exp(-m)))
    )
    weights = np.array([1, classes - 1]) / classes
    return dict(zip(METRICS, (float(lost @ weights), float(right @ weights), float(right[1])), strict=True))


def judge(spec: StudySpec, classes: int, target: NDArray[np.int64], bias: NDArray[np.int64]) -> Joiner:
    facts = Facts(classes, classes, (1, 1, 1), aligned=tuple(range(classes)))
    learn = Split(np.zeros((len(target), 1, 1, 1), np.float32), target, bias)
    folds = Folds(5, np.arange(len(target)) % 5, learn)
    return Joiner(spec, Dataset(facts, {"train": learn, "val": learn}, folds=folds))
