"""Intervals of metrics over classes and cells, small, empty and many ones too, of one split and of all folds joined.

The samples are those of `joined_folds`: a sample's margin is the model's skill in its cell less its difficulty. Cells
are alike, so that the smallest of them is the lowest of as many noisy values, or differ by class and by cell. Rows are
of metrics that have an interval. Differences of `worst_group_accuracy` are left out: where cells have few samples it is
0 of any model.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from study.data.dataset import Facts
from study.home.events import FoldsJoined
from study.ranking import SeedStatistics
from study.ranking.arms import Arm
from study.ranking.trial_statistics import statistics_of_single_evaluation
from study.spec import load_study
from study.sweep.joined_folds import FoldPredictions
from study.training.metrics import compute_metrics

from .joined_folds import OWN, SHARED, SKILLS, judge
from .row import Row

Floats = NDArray[np.float64]

SMALLEST = ("worst_class_accuracy", "worst_group_accuracy", "shrunk_worst_group_accuracy")
MEANS = ("unbiased_accuracy", "unbiased_log_loss", "shrunk_unbiased_accuracy", "shrunk_unbiased_log_loss")

GAINS = ("worst_class_accuracy", "shrunk_worst_group_accuracy")
"""Of which differences are told: they have an interval, though the values themselves may have none."""

CLASS_SPREAD, CELL_SPREAD = 0.7, 0.5
"""Deviations of the skill over classes, and over cells, where these differ."""

OWN_CELL_SPREAD = 0.3
"""Deviation over cells of the second configuration's skill from the first's, where cells differ."""


class Cells(NamedTuple):
    """A split: classes, as many groups, samples, share that conflicts with the bias, and whether cells are alike."""

    classes: int
    samples: int
    share: float
    alike: bool

    def __str__(self) -> str:
        smallest = self.samples * self.share / (self.classes * (self.classes - 1))
        kind = "alike" if self.alike else "that differ"
        return f"{self.classes**2} cells {kind}, of {self.samples} samples, {smallest:.3g} in a conflicting cell"


SPLITS = (
    Cells(2, 200, 0.05, True),
    Cells(2, 900, 0.05, False),
    Cells(5, 900, 0.2, True),
    Cells(10, 900, 0.05, False),
    Cells(10, 900, 0.5, False),
    Cells(10, 6000, 0.5, True),
)
ODDS = np.hypot(SHARED, OWN) * np.random.default_rng(0).standard_normal(200_000)
MARGINS = np.linspace(-6.0, 16.0, 441)
RIGHT = np.array([(at > ODDS).mean() for at in MARGINS])
LOST = np.array([np.log1p(np.exp(ODDS - at)).mean() for at in MARGINS])

FEW_CONFLICTING = 20
"""Number of conflicting samples below which less is promised: losses are skewed, and errors of few known badly."""

MIN_SHARE_TOLD = 0.2
"""Share of draws with an interval from which on it is told how many of these hold."""


def rows(draws: int) -> Iterator[Row]:
    """At most 200 data sets a row, two configurations each."""
    for cells in SPLITS:
        yield from intervals(cells, min(draws, 200))


def worth(skill: Floats, share: float) -> dict[str, float]:
    """What a model of this skill in each cell, (Y, S), is worth on samples without end, of all cells."""
    right, lost, own = np.interp(skill, MARGINS, RIGHT), np.interp(skill, MARGINS, LOST), np.eye(len(skill), dtype=bool)
    often = np.where(own, 1 - share, share / (len(skill) - 1))
    found = {name: float(right.min()) for name in SMALLEST}
    found["worst_class_accuracy"] = float((right * often).sum(1).min())
    return found | {name: float((lost if name.endswith("loss") else right).mean()) for name in MEANS}


def intervals(cells: Cells, draws: int) -> Iterator[Row]:
    spec, (classes, samples, share, alike) = load_study("quickstart_biased"), cells
    generator = np.random.default_rng(classes * samples + alike)
    known = {(of, name): [0, 0] for of in ("split", "folds", "gain") for name in (*SMALLEST, *MEANS)}
    for _ in range(draws):
        target = np.arange(samples) % classes
        bias = np.where(
            generator.random(samples) < share, (target + generator.integers(1, classes, samples)) % classes, target
        )
        shift = CLASS_SPREAD * generator.standard_normal((classes, 1))
        shift = shift + CELL_SPREAD * generator.standard_normal((classes, classes))
        difficulty, joiner = SHARED * generator.standard_normal(samples), judge(spec, classes, target, bias)
        arms, truths = [], []
        for number, (aligned, conflicting) in enumerate(SKILLS):
            skill = np.where(np.eye(classes, dtype=bool), aligned, conflicting)
            if not alike:
                skill = skill + shift + number * OWN_CELL_SPREAD * generator.standard_normal((classes, classes))
            margin = skill[target, bias] - difficulty - OWN * generator.standard_normal(samples)
            losses = np.log1p(np.exp(-margin)).astype("f4")
            verdict = FoldPredictions(np.where(margin > 0, target, (target + 1) % classes), losses)
            found = FoldsJoined(number, (number,), *joiner.metrics_and_draws([verdict]))
            arms.append(Arm(f"trial {number}", number, (), spec, joined_folds=found))
            truths.append(worth(skill, share))
        single = split_metrics(verdict, target, bias)
        for name, true in truths[1].items():
            key = f"val/{name}"
            count(known["split", name], statistics_of_single_evaluation(single, key, 1), true)
            count(known["folds", name], arms[1].metric_statistics(key), true)
            gain = arms[1].difference_to(arms[0], key)
            if gain and gain.interval and not gain.has_zero_width:
                known["gain", name][0] += gain.interval[0] <= true - truths[0][name] <= gain.interval[1]
                known["gain", name][1] += 1
    said = {
        "split": "95% interval of val/{}, one split",
        "folds": "95% interval of val/{}, all folds joined",
        "gain": "95% interval of a difference of val/{}, all folds joined",
    }
    for (of, name), (held, told) in known.items():
        if told >= MIN_SHARE_TOLD * draws and (of != "gain" or name in GAINS):
            low = 0.75 if samples * share < FEW_CONFLICTING else 0.85
            yield Row(
                said[of].format(name), "report, card", str(cells), f"{low:.0%} and more", low, 1.0, held / told, told
            )


def split_metrics(verdict: FoldPredictions, target: NDArray[np.int64], bias: NDArray[np.int64]) -> Mapping[str, float]:
    """What a trial reports of a split, with standard errors."""
    classes, of = int(target.max()) + 1, torch.from_numpy(target)
    facts = Facts(classes, classes, (1, 1, 1), aligned=tuple(range(classes)))
    scores = verdict.scores_from_log_losses(np.arange(len(target)), of, classes)
    values = compute_metrics(scores, torch.from_numpy(verdict.classes), of, torch.from_numpy(bias), facts, errors=True)
    known = {f"val/{name}": float(value) for name, value in values.items()}
    return {name: value for name, value in known.items() if np.isfinite(value)}


def count(known: list[int], found: SeedStatistics | None, true: float) -> None:
    """Count whether an interval, if there is one, holds the truth."""
    ends = found.confidence_interval() if found else None
    if ends:
        known[0] += ends[0] <= true <= ends[1]
        known[1] += 1
