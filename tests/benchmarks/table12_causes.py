"""Why is a large alpha far behind in FairKL's Table 12 here? One thing of its protocol changed at a time.

    STUDY_DATA=... python tests/benchmarks/table12_causes.py RESULTS.jsonl [--only PART ...] [--alphas 1.0] [--seeds 0]

The protocol is that of `search_spaces/fairkl-table12.yaml` with its profile `cpu`: Biased-MNIST at rho 0.997, LeNet-5,
8 epochs of 58,800 images, eps-SupInfoNCE with epsilon 0 and FairKL as the released code computes it, base temperature
0.07; of its cells lambda 0.5 with alpha 1.0 and 0.01. Each row changes what it names. Rows named `a tenth` train on
a tenth of the images for as many epochs, so that the paper's own network can be among them. Printed is a Markdown
table: test accuracy of the last epoch in percent, nothing chosen. What is in RESULTS.jsonl is not trained again.

`mean over positions` is small_conv_net as it was until `networks.py` told it apart: the mean over positions, after a
ReLU, is its features. `simple_conv_net` takes the mean over positions, too, but sees 25 x 25 pixels from each.
"""

import argparse
import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch
from kernel_control import with_interval
from networks import AS_IT_WAS, OLD, Old

from study import data
from study.models import small_conv_net
from study.spec import load_study
from study.training import Trial

LARGE, SMALL = 1.0, 0.01
"""alpha, as printed."""

PAPER = {LARGE: "78.9", SMALL: "94.1"}


@dataclass(frozen=True)
class Row:
    """What differs from the protocol, and whether `Old` takes small_conv_net's place."""

    part: str
    changed: Sequence[str] = ()
    is_old: bool = False


TENTH, SMALL_NET = "train.data_share=0.1", "model.name=small_conv_net"
WHOLE_BASE, TENTH_BASE = "as Table 12 here: LeNet, 8 epochs", "a tenth: LeNet, 8 epochs"
ROWS = {
    WHOLE_BASE: Row("base"),
    "base temperature 0.1, that is none": Row("base_temperature", ("method.base_temperature=null",)),
    "54,000 images": Row("images", ("data.val_share=0.1",)),
    "mean over positions": Row("mean", (SMALL_NET,), is_old=True),
    "small_conv_net": Row("small", (SMALL_NET,)),
    "LeNet, 32 epochs": Row("epochs", ("train.epochs=32",)),
    TENTH_BASE: Row("tenth", (TENTH,)),
    "a tenth: base temperature none": Row("tenth", (TENTH, "method.base_temperature=null")),
    "a tenth: mean over positions": Row("tenth", (TENTH, SMALL_NET), is_old=True),
    "a tenth: small_conv_net": Row("tenth", (TENTH, SMALL_NET)),
    "a tenth: LeNet, 80 epochs": Row("tenth_long", (TENTH, "train.epochs=80")),
    "a tenth: small_conv_net, 80 epochs": Row("tenth_long", (TENTH, SMALL_NET, "train.epochs=80")),
    "a tenth: simple_conv_net": Row("tenth_simple", (TENTH, "model.name=simple_conv_net")),
}
PARTS = tuple(dict.fromkeys(row.part for row in ROWS.values()))
Found = Mapping[tuple[str, float], Mapping[int, Mapping[str, float]]]


def trained(row: Row, alpha: float, seed: int) -> dict[str, float]:
    """The test accuracies of one trial, all and those of samples that the colour misleads, and its CPU seconds."""
    keys = [
        "data.rho=0.997",
        "method.lambda=0.5",
        f"method.alpha={alpha}",
        "search.space={}",
        "train.report_test=false",
    ]
    spec = load_study("fairkl-table12", [*keys, *row.changed], profile="cpu")
    own = small_conv_net.build
    if row.is_old:
        small_conv_net.build = lambda options, facts: Old(*OLD[AS_IT_WAS])
    began = time.process_time()
    trial = Trial(spec.trial_config({}, seed), data.load(spec.base["data"]), "cpu")
    epochs = len(list(trial.run()))
    test = trial.evaluate("test")
    small_conv_net.build = own
    figures = {key: test[f"test/{key}"] for key in ("accuracy", "conflicting_accuracy")}
    return figures | {"epochs": epochs, "seconds": time.process_time() - began}


def recorded(file: Path, parts: Sequence[str], alphas: Sequence[float], seeds: Sequence[int]) -> Found:
    """By row, alpha and seed: what is in the file, and what else is asked for, trained now and added to it."""
    found: dict[tuple[str, float], dict[int, Mapping[str, float]]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        one = json.loads(line)
        found.setdefault((one["row"], one["alpha"]), {})[one["seed"]] = one
    with file.open("a", encoding="utf-8") as out:
        for seed, alpha in itertools.product(seeds, alphas):
            for name in [name for name, row in ROWS.items() if row.part in parts]:
                if seed not in found.get((name, alpha), {}):
                    one = {"row": name, "alpha": alpha, "seed": seed} | trained(ROWS[name], alpha, seed)
                    found.setdefault((name, alpha), {})[seed] = one
                    print(json.dumps(one), file=out, flush=True)
    return found


def percent(of: Mapping[int, Mapping[str, float]], key: str = "accuracy") -> dict[int, float]:
    return {seed: 100 * one[key] for seed, one in of.items()}


def page(found: Found) -> Iterator[str]:
    minutes = sum(one["seconds"] for of in found.values() for one in of.values()) / 60
    yield f"{minutes:.0f} minutes of one CPU core, PyTorch {torch.__version__}. Mean ± 95% interval (seeds).\n"
    yield "| changed | alpha 1.0 | less the row that it changes | on misled samples | alpha 0.01 | CPU, a trial |"
    yield "|---|---|---|---|---|---|"
    yield f"| *paper: simple_conv_net, 80 epochs, 60,000 images* | {PAPER[LARGE]} | | | {PAPER[SMALL]} | |"
    for name in [name for name in ROWS if (name, LARGE) in found]:
        base = TENTH_BASE if name.startswith("a tenth") else WHOLE_BASE
        large, small = percent(found[name, LARGE]), percent(found.get((name, SMALL), {}))
        beside = percent(found[base, LARGE])
        apart = [value - beside[seed] for seed, value in large.items() if seed in beside and name != base]
        misled = percent(found[name, LARGE], "conflicting_accuracy")
        seconds = fmean(one["seconds"] for one in found[name, LARGE].values())
        columns = (list(large.values()), list(misled.values()), list(small.values()))
        high, on_misled, low = (with_interval(values) if values else "" for values in columns)
        less = with_interval(apart, "+") if apart else ""
        yield f"| {name} | {high} | {less} | {on_misled} | {low} | {seconds:.0f} s |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="JSON lines, one per trial; added to")
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS, help="parts to train; none: print alone")
    parser.add_argument("--alphas", nargs="+", type=float, choices=tuple(PAPER), default=tuple(PAPER))
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    given = parser.parse_args()
    torch.set_num_threads(1)
    print("\n".join(page(recorded(given.results, given.only, given.alphas, given.seeds))))


if __name__ == "__main__":
    main()
