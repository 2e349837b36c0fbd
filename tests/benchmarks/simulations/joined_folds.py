"""What is said of configurations whose folds are joined: the error of each value, the interval of a difference.

A sample has a difficulty, which all configurations share, and each its own luck with it: the margin of a network on the
sample is the configuration's skill in that kind of cell, aligned or conflicting, less both.
"""

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from study.data.dataset import Dataset, Facts, FoldAssignment, Split
from study.home.events import FoldsJoined
from study.ranking.arms import Arm
from study.spec import StudySpec, load_study
from study.sweep.joined_folds import FoldJoiner, FoldPredictions

from .row import Row

METRICS = ("shrunk_unbiased_log_loss", "shrunk_unbiased_accuracy", "conflicting_accuracy")
SHARED, OWN = 2.0, 1.5
"""Deviations of a sample's difficulty, and of a configuration's luck with it."""

SKILLS = ((5.0, 0.5), (5.0, 1.5))
"""Of two configurations, on aligned and on conflicting samples."""

SAMPLES = 900
RARE = 0.04, 1.5
"""Share of samples of a rare class, and by how much less the skill is with it. Its small cells are drawn to those of
easier classes, so that less is promised there."""
CELLS = {
    "10 classes, 10 groups": (10, 0.05, False),
    "2 classes, 2 groups": (2, 0.05, False),
    "10 classes, half against": (10, 0.5, False),
    "5 classes, one of them rare and hard": (5, 0.1, True),
}
"""Classes, as many as groups, the share of samples that conflict with the bias, and whether one class is rare."""


def rows(draws: int) -> Iterator[Row]:
    """At most 200 data sets a row, two configurations each."""
    for title, (classes, share, rare) in CELLS.items():
        truth = f"{title}; {SAMPLES} samples, {100 * share:g}% conflict with the bias"
        yield from intervals(truth, classes, share, rare, min(draws, 200))


def intervals(truth: str, classes: int, share: float, rare: bool, draws: int) -> Iterator[Row]:
    spec = load_study("quickstart_biased")
    true = [worth(skill, classes, rare) for skill in SKILLS]
    generator = np.random.default_rng(classes)
    alone, apart = dict.fromkeys(METRICS, 0), dict.fromkeys(METRICS, 0)
    for _ in range(draws):
        target = np.arange(SAMPLES) % classes
        if rare:
            target = np.where(np.arange(SAMPLES) < RARE[0] * SAMPLES, classes - 1, target % (classes - 1))
            generator.shuffle(target)
        against = np.arange(SAMPLES) < round(share * SAMPLES)
        bias = np.where(against, (target + generator.integers(1, classes, SAMPLES)) % classes, target)
        joiner = judge(spec, classes, target, bias)
        difficulty = SHARED * generator.standard_normal(SAMPLES)
        sides = []
        for number, skill in enumerate(SKILLS):
            margin = np.where(against, skill[1], skill[0]) - difficulty - OWN * generator.standard_normal(SAMPLES)
            margin -= rare * RARE[1] * (target == classes - 1)
            verdict = FoldPredictions(
                np.where(margin > 0, target, (target + 1) % classes), np.log1p(np.exp(-margin)).astype("f4")
            )
            found = FoldsJoined(number, (number,), *joiner.metrics_and_draws([verdict]))
            sides.append(Arm(f"trial {number}", number, (), spec, joined_folds=found))
        for name in METRICS:
            key = f"val/{name}"
            spread = sides[0].metric_statistics(key)
            gain = sides[1].difference_to(sides[0], key)
            assert spread
            assert spread.split_error
            assert gain
            assert gain.interval
            alone[name] += abs(spread.mean - true[0][name]) <= 1.96 * spread.split_error
            apart[name] += gain.interval[0] <= true[1][name] - true[0][name] <= gain.interval[1]
    for name in METRICS:
        said = f"val/{name} of all folds joined ± 1.96 of its standard error"
        promised = ("80% and more", 0.8, 1.0) if rare else ("92% to 98%", 0.92, 0.98)
        yield Row(said, "report, MLflow", truth, *promised, alone[name] / draws, draws)
        said = f"95% interval of a difference of val/{name}, all folds joined"
        yield Row(said, "report, status, run", truth, *promised, apart[name] / draws, draws)


@cache
def worth(skill: tuple[float, float], classes: int, rare: bool) -> dict[str, float]:
    """What a configuration is worth on samples without end, of all cells alike."""
    off = np.hypot(SHARED, OWN) * np.random.default_rng(0).standard_normal(1_000_000)
    within, shares = np.array([1, classes - 1]) / classes, ((0.0, 1.0),)
    if rare:
        shares = ((0.0, 1 - 1 / classes), (RARE[1], 1 / classes))
    right, lost = (
        sum(share * np.array([each(at - less - off).mean() for at in skill]) for less, share in shares)
        for each in (lambda m: m > 0, lambda m: np.log1p(np.exp(-m)))
    )
    # the accuracy on conflicting samples has the classes as often as the data
    of_rare = RARE[0] if rare else 0.0
    often = ((0.0, 1 - of_rare), (RARE[1], of_rare))
    conflicting = sum(share * float((skill[1] - less - off > 0).mean()) for less, share in often)
    return dict(zip(METRICS, (float(lost @ within), float(right @ within), conflicting), strict=True))


def judge(spec: StudySpec, classes: int, target: NDArray[np.int64], bias: NDArray[np.int64]) -> FoldJoiner:
    facts = Facts(classes, classes, (1, 1, 1), aligned=tuple(range(classes)))
    learn = Split(np.zeros((len(target), 1, 1, 1), np.float32), target, bias)
    folds = FoldAssignment(5, np.arange(len(target)) % 5, learn)
    return FoldJoiner(spec, Dataset(facts, {"train": learn, "val": learn}, folds=folds))
