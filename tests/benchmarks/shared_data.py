"""Does a machine hold a data set once, however many trials run on it?

    STUDY_DATA=... python tests/benchmarks/shared_data.py [--trials 2]

Biased-MNIST (about 165 MB) goes into Ray's object store as a sweep puts it there; then trials in processes of their own
train on it at once. Printed per process: resident memory, the part of it that is the process's own (USS), and how much
of that came with the data: the growth from before the data set was looked at to the first training step. `--copy` has
each trial copy its arrays first, to show that the figure would tell.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import ray

from study import data, methods
from study.data import Dataset, Split
from study.sweep.ray_runtime import start_or_join_ray
from study.training.config import TrialConfig
from study.training.trial import Trial

MIB = 2**20


def memory(file: str, *names: str) -> float:
    """The sum of some lines of a file of Linux's /proc that counts KiB, in MiB."""
    lines = dict(line.split(":", 1) for line in Path(file).read_text().splitlines() if ":" in line)
    return sum(int(lines[name].split()[0]) for name in names) / 1024


def own() -> float:
    return memory("/proc/self/smaps_rollup", "Private_Clean", "Private_Dirty")


def shared() -> float:
    return memory("/proc/meminfo", "Shmem")


@ray.remote(num_cpus=1)
def train(boxed: list[Any], copy: bool) -> dict[str, float]:
    """Memory of a process that trains a few batches, MiB."""
    name = {"name": "eps_sup_info_nce"}
    method = name | {key: knob.default for key, knob in methods.method_knobs(name).items()}
    sections = {"data": {}, "model": {"name": "lenet"}, "method": method, "train": {"epochs": 1}}
    config = TrialConfig.from_document(sections)
    tiny = np.zeros((300, 3, 28, 28), np.uint8)
    dataset: Dataset = ray.get(boxed[0])
    warm = Split(tiny, np.arange(300) % 10, np.arange(300) % 10)
    list(Trial(config, Dataset(dataset.facts, dict.fromkeys(dataset.splits, warm)), "cpu").train_epochs())
    before = own()
    if copy:
        parts = {key: Split(one.inputs.copy(), one.target, one.bias) for key, one in dataset.splits.items()}
        dataset = Dataset(dataset.facts, parts)
    for _ in Trial(config, dataset, "cpu").train_epochs():
        break
    resident = memory("/proc/self/smaps_rollup", "Rss")
    return {"resident": resident, "own": own(), "own that came with the data": own() - before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=2)
    parser.add_argument("--copy", action="store_true")
    given = parser.parse_args()
    dataset = data.load({"name": "biased_mnist"})
    size = sum(split.inputs.nbytes + split.target.nbytes for split in dataset.splits.values()) / MIB
    with start_or_join_ray(None, Path.cwd()):
        before = shared()
        reference = ray.put(dataset)
        print(f"data {size:.0f} MiB; the machine's shared memory grew by {shared() - before:.0f} MiB")
        running = [train.remote([reference], given.copy) for _ in range(given.trials)]
        for number, figures in enumerate(ray.get(running), start=1):
            print(f"trial {number}: " + ", ".join(f"{name} {value:.0f} MiB" for name, value in figures.items()))
        print(f"afterwards the shared memory is {shared() - before:.0f} MiB above the start")


if __name__ == "__main__":
    main()
