"""What is said of a split because it is a sample, and of a best one because it was chosen.

Standard errors of metrics, Wilson's interval, why a search gained nothing, what a plan says of small cells; by how much
the smallest group, the best configuration and the best epoch look worse or better than they are.
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from study.analysis.report.conclusions import DebiasingNotNeeded, conclusion_statements
from study.analysis.statistics.debiasing_metrics import find_no_better_than_chance
from study.commands.plan import FEW_CELL_SAMPLES
from study.home.events import GroupSampleCounts
from study.home.record import EpochMetrics, TrialRecord
from study.metrics.intervals import wilson_interval
from study.ranking import Results
from study.ranking.study_summary import BEST_ON_TEST_TEXT, metrics_at_other_epochs
from study.training.cell_statistics import PredictionCounts
from study.training.metrics import METRIC_FUNCTIONS, ScoredPredictions
from study.training.standard_errors import STANDARD_ERROR_FUNCTIONS

from .row import Row

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from helpers import Told, quickstart, record

Floats = NDArray[np.float64]

BIASED = ((340, 20), (20, 340))
"""Samples of the (class, bias class) cells of a split whose conflicting samples are few."""

EVEN = ((100, 100), (100, 100))
LARGEST = 1.0
"""More than any accuracy can be off."""


def rows(draws: int) -> Iterator[Row]:
    """At most 2,000 splits a row."""
    draws = min(draws, 2000)
    yield from reported_errors(draws)
    yield smallest_group(draws)
    yield from cards(draws)
    yield from guessing(draws)
    yield from level(draws)
    yield blind(draws)
    yield from plans(draws)
    yield from chosen(draws)


def counted(generator: np.random.Generator, cells: Any, accuracy: Any) -> PredictionCounts:
    """A model with these accuracies in the cells of a split of two classes, both (2, 2)."""
    right = generator.binomial(np.array(cells), np.array(accuracy)).astype(float)
    table = np.zeros((2, 3, 2))
    for y in range(2):
        table[y, :2, y], table[y, :2, 1 - y] = right[y], np.array(cells)[y] - right[y]
    own = torch.eye(2, dtype=torch.float64)
    return PredictionCounts(torch.from_numpy(table), torch.stack([1 - own, own]))


def value(counts: PredictionCounts, name: str) -> float:
    return float(METRIC_FUNCTIONS[name](ScoredPredictions(counts, None, torch.empty(0))))


def reported_errors(draws: int) -> Iterator[Row]:
    """The value ± 1.96 of the error that trials report with it."""
    own = np.array([[0.95, 0.5], [0.7, 0.9]])
    conflicting = 0.6  # of 20 and 20 samples
    truths = {
        "accuracy": float((own * np.array(BIASED)).sum() / np.array(BIASED).sum()),
        "balanced_accuracy": float((own * np.array(BIASED)).sum(1).mean() / 360),
        "conflicting_accuracy": conflicting,
        "unbiased_accuracy": float(own.mean()),
    }
    for name, true in truths.items():
        generator, inside = np.random.default_rng(len(name)), 0
        for _ in range(draws):
            counts = counted(generator, BIASED, own)
            inside += abs(value(counts, name) - true) <= 1.96 * float(STANDARD_ERROR_FUNCTIONS[name](counts))
        said, cells = f"val/{name} ± 1.96 of its standard error", "cells of 340, 20, 20, 340 samples"
        yield Row(said, "report, MLflow", cells, "92% to 97%", 0.92, 0.97, inside / draws, draws)


def smallest_group(draws: int) -> Row:
    """By how much it is too low if all groups are equally good."""
    generator = np.random.default_rng(4)
    off = [value(counted(generator, EVEN, np.full((2, 2), 0.8)), "worst_group_accuracy") - 0.8 for _ in range(draws)]
    said = "the smallest of several groups is too low on average (mean difference)"
    return Row(
        said, "report", "4 groups of 100 samples, accuracy 80%", "below 0", -LARGEST, 0.0, float(np.mean(off)), 0
    )


def cards(draws: int) -> Iterator[Row]:
    for true, count in ((0.5, 10), (0.8, 30), (0.95, 100)):
        right = np.random.default_rng(count).binomial(count, true, draws)
        inside = [low <= true <= high for low, high in (wilson_interval(one / count, count) for one in right.tolist())]
        truth = f"{count} samples of a group, accuracy {100 * true:.0f}%"
        yield Row(
            "95% interval of a group's accuracy",
            "card",
            truth,
            "at least 92%",
            0.92,
            1.0,
            float(np.mean(inside)),
            draws,
        )


def guessing(draws: int) -> Iterator[Row]:
    """How often it is said of predictions by the bias alone, and of better ones."""
    said, where = "is not told from guessing", "cells of 340, 20, 20, 340 samples"
    for name, own, low, high in (
        ("predictions by the bias alone, 95% of them aligned", [[0.95, 0.05], [0.05, 0.95]], 0.95, 1.0),
        ("predictions by the bias alone", [[1.0, 0.0], [0.0, 1.0]], 1.0, 1.0),
        ("60% right where it conflicts, 90% elsewhere", [[0.9, 0.6], [0.6, 0.9]], 0.0, 0.05),
    ):
        generator, found = np.random.default_rng(8), 0
        for _ in range(draws // 10):
            counts = counted(generator, BIASED, own)
            metric, error = "val/unbiased_accuracy", float(STANDARD_ERROR_FUNCTIONS["unbiased_accuracy"](counts))
            further = {metric: value(counts, "unbiased_accuracy"), f"{metric}_standard_error": error}
            told = record(Told("search", [0.9], further=further))
            told.group_sample_counts = GroupSampleCounts({"val": [list(row) for row in BIASED]})
            best = Results(quickstart("search.baseline=null"), told).baseline_and_best_arms[1]
            found += best is not None and find_no_better_than_chance(told, best) is not None
        promised = f"at least {low:.0%}" if low else f"at most {high:.0%}"
        yield Row(said, "report, run", f"{name}; {where}", promised, low, high, found / (draws // 10), draws // 10)


def level(draws: int) -> Iterator[Row]:
    """How often it is said of a baseline with and without a gap, on three seeds, that debiasing is not needed."""
    said, names = "debiasing is not needed here", ("aligned", "conflicting")
    spec = quickstart("search.metric=val/conflicting_accuracy")
    for cells, conflicting, low, high in (
        (((1000, 500), (500, 1000)), 0.90, 0.5, 1.0),
        (((1000, 500), (500, 1000)), 0.85, 0.0, 0.05),
        (BIASED, 0.85, 0.0, 0.05),
    ):
        generator, found, studies = np.random.default_rng(9), 0, draws // 10
        for _ in range(studies):
            sides = []
            for stage, repeats in (
                ("baseline", None),
                ("search", None),
                *[("confirm", n) for n in (0, 1) for _ in "abc"],
            ):
                counts = counted(generator, cells, [[0.9, conflicting], [conflicting, 0.9]])
                values = {f"val/{name}_accuracy": value(counts, f"{name}_accuracy") for name in names}
                for name in names:
                    values[f"val/{name}_accuracy_standard_error"] = float(
                        STANDARD_ERROR_FUNCTIONS[f"{name}_accuracy"](counts)
                    )
                own = values.pop(spec.metric)
                params = {"method.alpha": 0.5} if stage == "search" else {}
                told = Told(stage, [own], metric=spec.metric, further=values, repeats=repeats, params=params)
                told.seed = 0 if repeats is None else 1 + sum(one.repeats == repeats for one in sides)
                sides.append(told)
            found += any(
                isinstance(one, DebiasingNotNeeded) for one in conclusion_statements(Results(spec, record(*sides)))
            )
        where = f"90% and {100 * conflicting:.0f}% right; {2 * cells[0][1]} conflicting samples"
        promised = f"at least {low:.0%}" if low else f"at most {high:.0%}"
        yield Row(said, "report", where, promised, low, high, found / studies, studies)


def blind(draws: int) -> Row:
    """A method that gains twice the standard error on 20 conflicting samples, judged by these errors."""
    generator, seen = np.random.default_rng(5), 0
    cells, before = np.array([[340, 10], [10, 340]]), 0.4
    gain = 2 * math.sqrt(before * (1 - before) / 20)
    for _ in range(draws):
        two = [counted(generator, cells, [[0.9, accuracy], [accuracy, 0.9]]) for accuracy in (before, before + gain)]
        errors = [float(STANDARD_ERROR_FUNCTIONS["conflicting_accuracy"](one)) for one in two]
        low, high = (value(one, "conflicting_accuracy") for one in two)
        seen += high - low > 1.96 * math.hypot(*errors)
    said = "a gain of less than twice the standard error may not be seen"
    truth = f"a gain of 2 standard errors ({100 * gain:.0f} points) on 20 conflicting samples"
    return Row(said, "report", truth, "seen in at most half", 0.0, 0.5, seen / draws, draws)


def plans(draws: int) -> Iterator[Row]:
    """A metric of small cells, against accuracy."""
    tiny = ((300, 3), (4, 300))
    assert min(map(min, tiny)) < FEW_CELL_SAMPLES
    generator, ahead = np.random.default_rng(6), {"worst_group_accuracy": 0.0, "accuracy": 0.0}
    for _ in range(draws):
        two = [counted(generator, tiny, np.full((2, 2), accuracy)) for accuracy in (0.75, 0.8)]
        for name in ahead:
            worse, better = (value(one, name) for one in two)
            ahead[name] += 1.0 if better > worse else 0.5 if better == worse else 0.0
    plain, own = (ahead[name] / draws for name in ("accuracy", "worst_group_accuracy"))
    said = "val/worst_group_accuracy may tell configurations badly apart: the better one is ahead"
    truth = "75% against 80% in each cell; cells of 300, 3, 4, 300"
    promised = f"less often than by accuracy ({100 * plain:.0f}%)"
    yield Row(said, "plan", truth, promised, 0.0, plain - 0.1, own, draws)


def chosen(draws: int) -> Iterator[Row]:
    """The best of a search by its one seed, and the best epoch on test, against what they are truly worth."""
    spec, off = quickstart("search.confirm={top: 0}", "search.baseline=null"), []
    generator = np.random.default_rng(7)
    for _ in range(draws // 10):
        true = generator.normal(0.8, 0.02, 24)
        seen = true + generator.normal(0, 0.01, 24)
        _, best = Results(spec, record(*(Told("search", [one]) for one in seen.tolist()))).baseline_and_best_arms
        assert best is not None
        off.append(best.metric_by_seed(spec.metric)[0] - float(true[best.trial_number]))
    said = "by the luck of that choice the best looks, on average, too good (mean difference)"
    truth = "24 configurations, sd 2 points; a seed's noise 1 point"
    yield Row(said, "report", truth, "above 0", 0.0, LARGEST, float(np.mean(off)), 0)
    off = []
    for _ in range(draws // 10):
        curve = 0.8 - 0.3 * np.exp(-np.arange(1, 21) / 4)
        reports = [EpochMetrics(at, {spec.test_metric: one}) for at, one in enumerate(_noisy(generator, curve), 1)]
        trial = TrialRecord(0, "final", {}, 0, state="complete", reports=reports)
        off.append(
            metrics_at_other_epochs(spec, [trial])[BEST_ON_TEST_TEXT][spec.test_metric].mean - float(curve.max())
        )
    said = "at the best epoch on test numbers look, on average, too good (mean difference)"
    yield Row(said, "reproduce", "20 epochs, noise 1 point", "above 0", 0.0, LARGEST, float(np.mean(off)), 0)


def _noisy(generator: np.random.Generator, curve: Floats) -> list[float]:
    noisy: list[float] = (curve + generator.normal(0, 0.01, len(curve))).tolist()
    return noisy
