"""Trials trained as one against the same trials one after the other, in two processes of one thread at a time.

    python tests/benchmarks/stack.py [--only compas small_conv_net] [--rows 4 16] [--draws own] [--repeats 5]

eps-SupInfoNCE with FairKL, rows that differ in alpha, lambda, epsilon, learning rate and seed. The data of `compas` and
`adult` are random rows of as many columns as these tables have (4,320 of 12; 4,096 of 104), for `mlp`; those of
`small_conv_net` are scikit-learn's digits (8 x 8), those of `lenet` 2,048 random images of 28 x 28.

Each process has a trial and a stack, whose epochs take turns, so that both see the same machine; both processes train
alone at one time and both stacks at another. Printed is the CPU time of a trial and epoch in milliseconds, its
evaluation included: the median of the epochs of both processes, and how many times as fast a stack is, also without
the evaluation (`steps`); then trial-epochs a second of both processes together by the clock, the median of the turns.
"""

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from queue import Queue
from threading import Barrier
from typing import Any

import numpy as np
import torch

from study import data, methods
from study.data.dataset import Dataset, Facts, Split
from study.training import Trial, TrialConfig
from study.training.stack.stack import Draws, Stack

METHOD = {"name": "eps_sup_info_nce", "regulariser": "fair_kl", "temperature": 0.1}
NETWORKS = {"compas": "mlp", "adult": "mlp", "small_conv_net": "small_conv_net", "lenet": "lenet"}
PROCESSES = 2

Told = dict[str, list[tuple[float, float, float]]]
"""For `alone` and `stacked` of each turn the CPU and the clock's seconds of a trial and epoch, and the steps' share."""


def random_data(shape: tuple[int, ...], samples: int, classes: int) -> Dataset:
    """As many samples to train on, a fifth of them to validate and to test."""
    chance = np.random.default_rng(0)
    splits = {}
    for name, count in {"train": samples, "val": samples // 5, "test": samples // 5}.items():
        inputs = chance.normal(size=(count, *shape)).astype(np.float32)
        if len(shape) == 3:
            inputs = chance.integers(0, 256, (count, *shape), dtype=np.uint8)
        splits[name] = Split(inputs, chance.integers(0, classes, count), chance.integers(0, classes, count))
    return Dataset(Facts(classes=classes, bias_classes=classes, shape=shape), splits)


def dataset(name: str) -> tuple[Dataset, int]:
    """The data of a case, and samples a step."""
    if name == "lenet":
        return random_data((3, 28, 28), 2048, 10), 256
    if name == "small_conv_net":
        return data.load({"name": "biased_digits", "rho": 0.95}), 128
    return random_data((104,), 4096, 2) if name == "adult" else random_data((12,), 4320, 2), 256


def config(name: str, row: int, batch_size: int, epochs: int) -> TrialConfig:
    given = METHOD | {"alpha": 0.02 * (row + 1), "lambda": 0.1 * (row + 1), "epsilon": 0.02 * row}
    method = {key: knob.default for key, knob in methods.method_knobs(given).items()} | given
    train = {"epochs": epochs, "batch_size": batch_size, "learning_rate": 1e-3 * (1 + row / 16), "seed": row}
    return TrialConfig.from_document({"data": {}, "model": {"name": NETWORKS[name]}, "method": method, "train": train})


def timed(epochs: int, trials: int, epoch: Callable[[], dict[str, float]]) -> tuple[float, float, float]:
    """What `Told` has of a turn."""
    cpu, clock = time.process_time(), time.monotonic()
    told = [epoch() for _ in range(epochs)][-1]
    cpu, clock = time.process_time() - cpu, time.monotonic() - clock
    steps, whole = told["time/data"] + told["time/training"], epochs * trials
    return cpu / whole, clock / whole, steps / (steps + told["time/evaluation"])


def work(name: str, rows: int, draws: Draws, repeats: int, ready: Barrier, answers: "Queue[Told]") -> None:
    """A process: turns of a trial and of a stack; the first turn, in which memory is taken, does not count."""
    torch.set_num_threads(1)
    samples, batch_size = dataset(name)
    epochs = max(2, rows // 4)
    configs = [config(name, row, batch_size, epochs * (repeats + 2)) for row in range(rows)]
    alone, stack = Trial(configs[-1], samples, "cpu").run(), Stack(draws)
    for one in configs:
        stack.join(Trial(one, samples, "cpu"))

    def of_stack() -> dict[str, float]:
        result: Any = stack.epoch()[0]
        return result

    told: Told = {"alone": [], "stacked": []}
    for _ in range(repeats + 1):
        ready.wait()
        told["alone"].append(timed(epochs, 1, lambda: next(alone)))
        ready.wait()
        told["stacked"].append(timed(1, rows, of_stack))
    answers.put({kind: turns[1:] for kind, turns in told.items()})


def measured(name: str, rows: int, draws: Draws, repeats: int) -> dict[str, tuple[float, float, float]]:
    """For `alone` and `stacked`: CPU seconds of a trial and epoch, of its steps, and trial-epochs a second."""
    context = multiprocessing.get_context("spawn")
    ready, answers = context.Barrier(PROCESSES), context.Queue()
    processes = [
        context.Process(target=work, args=(name, rows, draws, repeats, ready, answers)) for _ in range(PROCESSES)
    ]
    for process in processes:
        process.start()
    told: list[Told] = [answers.get() for _ in processes]
    for process in processes:
        process.join()
    found = {}
    for kind in ("alone", "stacked"):
        turns = [turn for one in told for turn in one[kind]]
        speeds = [sum(1 / clock for _, clock, _ in both) for both in zip(*(one[kind] for one in told), strict=True)]
        cpu = statistics.median(turn[0] for turn in turns)
        found[kind] = cpu, statistics.median(turn[0] * turn[2] for turn in turns), statistics.median(speeds)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 4, 16])
    parser.add_argument("--draws", nargs="+", default=["own", "shared"], choices=["own", "shared"])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print("                            CPU ms of a trial and epoch            trial-epochs a second")
    print("case            rows draws    alone  stacked  times  steps       alone  stacked  times")
    for name in options.only:
        for rows in options.rows:
            for draws in options.draws:
                one = measured(name, rows, draws, options.repeats)
                (cpu, steps, speed), (other_cpu, other_steps, other_speed) = one["alone"], one["stacked"]
                print(
                    f"{name:15} {rows:4} {draws:6} {1000 * cpu:7.1f} {1000 * other_cpu:8.1f} {cpu / other_cpu:6.2f}"
                    f" {steps / other_steps:6.2f} {speed:11.1f} {other_speed:8.1f} {other_speed / speed:6.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
