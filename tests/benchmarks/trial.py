"""One trial on this machine's CPU or GPU, without Ray: parity, images per second, several trials at once.

    STUDY_DATA=... python tests/benchmarks/trial.py [--only parity steps ...] [--images N] [--minutes 10] [--json FILE]

What to run first on a machine with a GPU. On the CPU each run trains on `--images` samples (default 12,800) with one
thread; on CUDA on the whole training split. What has not begun when `--minutes` are over is left out, and said so.

* parity: every loss and method, value and gradient, float32 on the GPU against float64 on the CPU, whose own float32 is
  compared where there is no GPU; the same trial on both.
* steps: milliseconds and launches of a step, plain and as a CUDA graph; for how much of the time kernels run.
* throughput: images a second in training, beside the plain way in the same run: torchvision's MNIST as PIL images, a
  DataLoader with one worker process (on CUDA as many as there are cores), no channels-last, the encoder's backward and
  the probe's one after the other. `floor` is the network's arithmetic over the device's measured rate of large bf16
  (CPU: float32) matrix products.
* packing: 1, 2, 4, 8 trials at once on the device, trials an hour.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader
from torchvision.transforms import Compose, Normalize, ToTensor

from study import data, methods, models
from study.data import Dataset, Split
from study.errors import UserError
from study.losses.loss_catalogue import losses_by_name, regularisers_by_name
from study.training.config import TrialConfig
from study.training.trial import Trial

sys.path.append(str(Path(__file__).parents[1] / "support"))

CUDA = torch.cuda.is_available()
DEVICE = "cuda" if CUDA else "cpu"
FAIR_KL = {"name": "eps_sup_info_nce", "regulariser": "fair_kl", "alpha": 0.01, "lambda": 0.5, "epsilon": 0.5}
NETWORKS = {
    "lenet": ({"name": "biased_mnist", "rho": 0.997}, {"name": "lenet"}),
    "simple_conv_net": ({"name": "biased_mnist", "rho": 0.997}, {"name": "simple_conv_net"}),
    "resnet18": ({"name": "cifar10"}, {"name": "resnet18"}),
}


def complete(section: dict[str, Any]) -> dict[str, Any]:
    return {key: knob.default for key, knob in methods.method_knobs(section).items()} | section


def config(network: str, **train: Any) -> TrialConfig:
    of_data, model = NETWORKS[network]
    method = FAIR_KL if of_data["name"] == "biased_mnist" else {"name": "eps_sup_info_nce", "epsilon": 0.25}
    precision = "bfloat16" if CUDA else "float32"
    options = {"epochs": 2, "batch_size": 256, "precision": precision, **train}
    return TrialConfig.from_document({"data": of_data, "model": model, "method": complete(method), "train": options})


def dataset(network: str, images: int) -> Dataset:
    """The real data, cut to some training and 512 validation images."""
    whole = data.load(NETWORKS[network][0])
    sizes = {"train": images, "val": 512}
    parts = {name: first(whole.splits[name], size) for name, size in sizes.items()}
    return Dataset(replace(whole.facts, splits=("train", "val")), parts)


def first(split: Split, count: int) -> Split:
    arrays = (split.inputs, split.target, split.bias, split.condition)
    return Split(*(None if array is None else np.ascontiguousarray(array[:count]) for array in arrays))


class PilImages(torch.utils.data.Dataset):
    """The same images as a torchvision data set gives them: PIL, then transforms, one at a time."""

    def __init__(self, split: Split) -> None:
        self.split = split
        self.transform = Compose([ToTensor(), Normalize([0.5] * 3, [0.5] * 3)])

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, index: int) -> tuple[Tensor, int, int]:
        image = Image.fromarray(self.split.inputs[index].transpose(1, 2, 0))
        bias = 0 if self.split.bias is None else int(self.split.bias[index])
        return self.transform(image), int(self.split.target[index]), bias


def plain(network: str, of: Dataset) -> float:
    """Images a second of the plain way, in its second epoch."""
    torch.manual_seed(0)
    options = config(network)
    encoder = models.build_encoder_without_head(options.model, of.facts).to(DEVICE)
    probe = nn.Linear(encoder.features, of.facts.classes).to(DEVICE)
    optimizer, beside = torch.optim.Adam(encoder.parameters()), torch.optim.Adam(probe.parameters())
    workers = (os.cpu_count() or 1) if CUDA else 1
    loader = DataLoader(PilImages(of.splits["train"]), 256, shuffle=True, num_workers=workers, pin_memory=CUDA)
    loss_function, fair_kl = losses_by_name()[options.method["name"]], regularisers_by_name()["fair_kl"]
    for _ in range(2):
        started = time.perf_counter()
        for images, target, bias in loader:
            images, target, bias = images.to(DEVICE), target.to(DEVICE), bias.to(DEVICE)
            features = functional.normalize(encoder(images), dim=1)
            loss = 0.01 * loss_function(features[None], target=target, epsilon=0.5)
            if "regulariser" in options.method and options.method["regulariser"] == "fair_kl":
                loss = loss + 0.5 * fair_kl(features[None], target=target, bias=bias)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            probe_loss = functional.cross_entropy(probe(functional.normalize(encoder(images), dim=1)), target)
            beside.zero_grad()
            probe_loss.backward()
            beside.step()
            loss.item(), probe_loss.item()  # the running means that such scripts print
        seconds = time.perf_counter() - started
    return len(of.splits["train"]) / seconds


def ours(network: str, of: Dataset, **train: Any) -> dict[str, float]:
    """The measured figures of a trial's second epoch."""
    *_, last = Trial(config(network, **train), of, DEVICE).train_epochs()
    return last


def multiply_adds(network: str, of: Dataset) -> float:
    """Of one image forward."""
    encoder = models.build_encoder_without_head(config(network).model, of.facts).eval()
    count = 0

    def add(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal count
        if isinstance(module, nn.Conv2d):
            count += output[0].numel() * module.weight[0].numel()
        elif isinstance(module, nn.Linear):
            count += module.weight.numel()

    handles = [module.register_forward_hook(add) for module in encoder.modules()]
    with torch.no_grad():
        encoder(torch.zeros(1, *of.facts.shape))
    for handle in handles:
        handle.remove()
    return count


def matrix_rate() -> float:
    """Floating-point operations a second of a large matrix product."""
    size, kind = (8192, torch.bfloat16) if CUDA else (1024, torch.float32)
    left = torch.randn(size, size, device=DEVICE, dtype=kind)
    times = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(4):
            left @ left
        if CUDA:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
    return 4 * 2 * size**3 / min(times)


def throughput(images: int, networks: Sequence[str]) -> Iterator[dict[str, Any]]:
    torch.set_num_threads(os.cpu_count() or 1) if CUDA else torch.set_num_threads(1)
    rate = matrix_rate()
    for network in networks:
        count = images if network == "lenet" or CUDA else 512
        try:
            of = dataset(network, count)
        except Exception as error:
            yield {"network": network, "left out": str(error).splitlines()[0]}
            continue
        figures, beside = ours(network, of), plain(network, of)
        speed = figures["speed/images_per_second"]
        busy = figures["time/training"] + figures["time/evaluation"]
        work = 6 * multiply_adds(network, of)  # a multiplication and an addition, forward and twice as much backward
        yield {
            "network": network,
            "images": len(of.splits["train"]),
            "images/s": speed,
            "plain images/s": beside,
            "times": speed / beside,
            "of the floor": speed * work / rate,
            "not training or evaluation": 1 - busy / figures["time/epoch"],
            **{name: figures[name] for name in sorted(figures) if name.startswith(("time/", "memory/"))},
        }


def parity(images: int) -> Iterator[dict[str, Any]]:
    del images
    from parity import has_values
    from parity import parity as of_losses_and_methods

    yield from of_losses_and_methods(DEVICE)
    if not CUDA or not has_values(DEVICE):
        return
    of = dataset("simple_conv_net", 5120)
    curves = []
    for device in ("cpu", "cuda"):
        trial = Trial(config("simple_conv_net", precision="float32", threads=os.cpu_count() or 1), of, device)
        curves.append([epoch["train/loss"] for epoch in trial.train_epochs()])
    apart = max(abs(one - other) / abs(one) for one, other in zip(*curves, strict=True))
    yield {"loss": "trial of 2 epochs", "value": apart, "fits": apart < 1e-2}


def steps(images: int, networks: Sequence[str]) -> Iterator[dict[str, Any]]:
    from steps import steps as of_networks

    count = min(images, 12_800)
    yield from of_networks(list(networks) if CUDA else ["lenet"], lambda name: dataset(name, count), config, DEVICE)


def packing(images: int) -> Iterator[dict[str, Any]]:
    alone = None
    for count in (1, 2, 4, 8) if CUDA else (1, 2):
        started = time.perf_counter()
        command = [sys.executable, __file__, "--one", str(images)]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        seconds = [float(process.communicate()[0].split()[-1]) for process in running]
        alone = alone or seconds[0]
        wall = time.perf_counter() - started
        slower = sum(seconds) / count / alone
        yield {"at once": count, "trials/h": 3600 * count / max(seconds), "slowdown": slower, "wall s": wall}


def one(images: int) -> None:
    """Train one trial and print the seconds of its epochs."""
    epochs = Trial(config("simple_conv_net" if CUDA else "lenet"), dataset("lenet", images), DEVICE).train_epochs()
    print(sum(epoch["time/epoch"] for epoch in epochs))


def show(row: dict[str, Any]) -> None:
    """One line per figure: readable in a terminal of any width."""
    (kind, name), *figures = row.items()
    print(f"{kind} {name}")
    for label, value in figures:
        print(f"    {label:<28} {value:.4g}" if isinstance(value, float) else f"    {label:<28} {value}", flush=True)


def within(until: float, rows: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows until the time is over, or data are missing; what is left out is a row."""
    try:
        while time.monotonic() < until:
            yield next(rows)
        yield {"part": "the rest", "left out": "the minutes are over"}
    except StopIteration:
        return
    except UserError as error:
        yield {"part": "the rest", "left out": str(error).splitlines()[0]}


BY_NETWORK = {"steps": steps, "throughput": throughput}
PARTS = ("parity", "steps", "throughput", "packing")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=tuple(NETWORKS), default=tuple(NETWORKS))
    parser.add_argument("--only", nargs="+", choices=PARTS)
    parser.add_argument("--images", type=int, default=54_000 if CUDA else 12_800)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.one)
        return
    name = torch.cuda.get_device_name() if CUDA else f"{platform.machine()} CPU"
    print(f"{name}, torch {torch.__version__}, Python {platform.python_version()}")
    of_networks = {name: partial(part, networks=given.networks) for name, part in BY_NETWORK.items()}
    parts = {"parity": parity, **of_networks, "packing": packing}
    found: dict[str, list[dict[str, Any]]] = {}
    until = time.monotonic() + 60 * given.minutes
    for part in given.only or PARTS:
        found[part] = []
        for row in within(until, parts[part](given.images)):
            show(row)
            found[part].append(row)
    if given.json:
        given.json.write_text(json.dumps({"device": name, "torch": torch.__version__, **found}, indent=1))


if __name__ == "__main__":
    main()
