"""Early stopping of several metrics, or under a limit: what it saves and what it loses, on simulated learning curves.

    python tests/benchmarks/pareto_stopping.py [--seeds 20] [--trials 100]

Each trial has a place on the trade-off between accuracy and fairness gap, a distance from the front, two speeds, and
noise of 0.01. `rising`: the gap grows as the network learns; `falling`: the bias is learnt first and then lost;
`collapsed`: as rising, but four in ten trials never learn and have no gap. Eight run at once for 27 epochs, rungs
after 1, 3 and 9 or 3 and 9, one in 3 goes on. Printed per rule, mean over seeds:

- several metrics: percent of the epochs that were run, and of the hypervolume (accuracy above 0.5, gap below 0.6) that
  the trials at full budget keep of that without stopping, with the smallest; `dominance` is this project's rule,
  `fronts, net` MO-ASHA's (Schmucker et al. 2021), `first metric` ASHA on accuracy alone;
- accuracy with a limit of the gap: percent of epochs, and points of accuracy by which the best that keeps the limit at
  the end is worse, with the largest; `as a metric` is dominance with the violation as one more metric;
- microseconds of one report for n peers.
"""

import argparse
import heapq
import time
from collections.abc import Callable
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from study.spec.objective import Constraint, Objective, Score
from study.spec.schema import EarlyStopping as Rule
from study.sweep.early_stopping import ByDominance, ByValue, Peers, RungScore
from study.sweep.early_stopping.asha import Asha

EPOCHS, REDUCTION, SLOTS = 27, 3, 8
Array = NDArray[np.float64]
Curves = tuple[Array, Array]
"""Accuracy and gap, each (trials, epochs)."""


class FrontsAndNet:
    """MO-ASHA's order: front by front; within one by a greedy epsilon-net, each next the farthest from those before."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, ...]] = []

    def admit(self, one: RungScore) -> bool:
        points = -np.array([*self._seen, one.gains])
        own, room, left = len(points) - 1, (len(points) - 2) / REDUCTION + 0.5, np.arange(len(points))
        beats = (points[:, None] <= points).all(2) & (points[:, None] < points).any(2)
        while beats[np.ix_(left, left)][:, left == own].any():
            beaten = beats[np.ix_(left, left)].any(0)
            room, left = room - (~beaten).sum(), left[beaten]
        front = left[~beats[np.ix_(left, left)].any(0)]
        net = points[front] / np.maximum(np.ptp(points[front], axis=0), 1e-9)
        far, at = np.full(len(front), np.inf), int(net[:, 0].argmin())
        while room >= 0 and front[at] != own:
            far = np.minimum(far, np.linalg.norm(net - net[at], axis=1))
            far[at], room = -1.0, room - 1
            at = int(far.argmax())
        return room >= 0

    def add(self, one: RungScore) -> None:
        self._seen.append(one.gains)


class ViolationAsMetric(ByDominance):
    """Dominance of the metrics and the violation alike."""

    def admit(self, one: RungScore) -> bool:
        return super().admit(self._flat(one))

    def add(self, one: RungScore) -> None:
        super().add(self._flat(one))

    def _flat(self, one: RungScore) -> RungScore:
        return RungScore((*one.gains, -one.violation), 0.0, one.lot)


def curves(kind: str, seed: int, trials: int) -> Curves:
    draw = np.random.default_rng(seed)
    place, distance = draw.random(trials), draw.exponential(0.35, trials)
    accuracy = np.clip(0.95 - 0.25 * (1 - place) ** 2 - 0.25 * distance, 0.5, 1.0)[:, None]
    gap = (0.02 + 0.35 * place**2 + 0.2 * distance * draw.random(trials))[:, None]
    learnt, biased = (1 - np.exp(-np.arange(1, EPOCHS + 1) / draw.lognormal(1.4, 0.6, (trials, 1))) for _ in range(2))
    accuracies = 0.5 + (accuracy - 0.5) * learnt + draw.normal(0, 0.01, learnt.shape)
    gaps = gap + 0.4 * (1 - biased) if kind == "falling" else gap * biased
    gaps = np.abs(gaps + draw.normal(0, 0.01, gaps.shape))
    dead = draw.random(trials) < (0.4 if kind == "collapsed" else 0.0)
    accuracies[dead], gaps[dead] = 0.5, 0.0
    return accuracies, gaps


def simulate(new_peers: Callable[[], Peers], given: Curves, grace: int, limit: float | None) -> tuple[int, list[int]]:
    """Epochs that were run, and the trials that ran in full."""

    class WithPeers(Asha):
        def new_peers(self) -> Peers:
            return new_peers()

    objective = Objective(("val/accuracy",), ("max",))
    rule = WithPeers(Rule(name="asha", grace=grace, reduction=REDUCTION), EPOCHS, objective)
    pace = np.random.default_rng(0).uniform(0.7, 1.3, len(given[0]))
    events, full, begun, epochs = [(pace[trial], trial, 1) for trial in range(SLOTS)], list[int](), SLOTS, 0
    heapq.heapify(events)
    while events:
        now, trial, epoch = heapq.heappop(events)
        epochs += 1
        score = scored(given[0][trial, epoch - 1], given[1][trial, epoch - 1], limit)
        if epoch < EPOCHS and not rule.should_prune(trial, epoch, score):
            heapq.heappush(events, (now + pace[trial], trial, epoch + 1))
            continue
        full += [trial] if epoch == EPOCHS else []
        if begun < len(pace):
            heapq.heappush(events, (now + pace[begun], begun, 1))
            begun += 1
    return epochs, full


def scored(accuracy: float, gap: float, limit: float | None) -> Score:
    if limit is None:
        return Score((accuracy, gap), (accuracy, -gap))
    return Score((accuracy,), (accuracy,), (Constraint("val/equalized_odds", "<=", limit).excess(gap),))


def hypervolume(accuracies: Array, gaps: Array) -> float:
    """Area that the points dominate, from accuracy 0.5 and gap 0.6 on."""
    found, least = 0.0, 0.6
    for accuracy, gap in sorted(zip(accuracies, gaps, strict=True), reverse=True):
        if gap < least:
            found, least = found + max(0.0, accuracy - 0.5) * (least - gap), gap
    return found


def compared(new_peers: Callable[[], Peers], given: Curves, grace: int, limit: float | None) -> tuple[float, float]:
    """Share of epochs, and of the hypervolume; or of a limit, the accuracy that was lost."""
    epochs, full = simulate(new_peers, given, grace, limit)
    accuracies, gaps = given[0][:, -1], given[1][:, -1]
    if limit is None:
        return epochs / given[0].size, hypervolume(accuracies[full], gaps[full]) / hypervolume(accuracies, gaps)
    kept = accuracies[[trial for trial in full if gaps[trial] <= limit]]
    return epochs / given[0].size, float(accuracies[gaps <= limit].max() - kept.max(initial=0.5))


def report_cost(peers: int, on_front: bool) -> float:
    """Seconds of processor time for one report."""
    draw = np.random.default_rng(0)
    first = draw.random(peers + 100)
    second = 1 - first if on_front else draw.random(peers + 100)
    rung = ByDominance(REDUCTION, 2)
    shown = [RungScore((a, b), 0.0, 0.0) for a, b in zip(first, second, strict=True)]
    for one in shown[:peers]:
        rung.add(one)
    began = time.process_time()
    for one in shown[peers:]:
        rung.admit(one)
        rung.add(one)
    return (time.process_time() - began) / 100


def told_of(runs: Array) -> str:
    """Mean share of epochs, mean of what was kept or lost, and its end further from the mean."""
    shares, worths = 100 * runs.T
    worst = max(worths.min(), worths.max(), key=lambda end: abs(end - worths.mean()))
    return f"{shares.mean():.0f}: {worths.mean():.1f} ({worst:.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=100)
    given = parser.parse_args()
    rules: dict[str, Callable[[], Peers]] = {
        "dominance": partial(ByDominance, REDUCTION, 2),
        "fronts, net": FrontsAndNet,
        "first metric": partial(ByValue, REDUCTION),
    }
    limited: dict[str, Callable[[], Peers]] = {
        "dominance": partial(ByDominance, REDUCTION, 1),
        "as a metric": partial(ViolationAsMetric, REDUCTION, 2),
        "first metric": partial(ByValue, REDUCTION),
    }
    for limit, among in ((None, rules), (0.05, limited), (0.15, limited)):
        print(f"\n| {'two metrics' if limit is None else f'limit {limit}'} | grace | {' | '.join(among)} |")
        print("|---|" + "---|" * (len(among) + 1))
        for kind, grace in product(("rising", "falling", "collapsed"), (1, 3)):
            several = [curves(kind, seed, given.trials) for seed in range(given.seeds)]
            told = [
                told_of(np.array([compared(rule, one, grace, limit) for one in several])) for rule in among.values()
            ]
            print(f"| {kind} | {grace} | {' | '.join(told)} |", flush=True)
    print("\n| peers | mixed, µs | none dominates another, µs |\n|---|---|---|")
    for count in (200, 3_000, 10_000):
        print(f"| {count} | {1e6 * report_cost(count, False):.0f} | {1e6 * report_cost(count, True):.0f} |", flush=True)


if __name__ == "__main__":
    main()
