"""Does a narrow kernel help on ColorMNIST by negatives of like colour, or by weak negatives? The control that decides.

    STUDY_DATA=... python tests/benchmarks/kernel_control.py RESULTS.jsonl [--rows NAME ...] [--print]

The protocol of `search_spaces/cclk-rbf.yaml`, profile cpu: a tenth of ColorMNIST, LeNet with a head, Adam, 3 epochs of
batches of 256. Fair-CCLK with the RBF kernel of sigma2 0.01 and ridge 0.1, whose weights W are changed where the loss
makes them, here alone: `shuffled`, each step's colours are given to other samples of the batch at random, so that W has
the same columns and nothing to do with the samples; `rescale`, each column of W that is not 0 sums to 1, the whole sum
over negatives, as InfoNCE has it. Rows of batches of 1,024 train four times as many epochs, that is as many steps.

Printed is a Markdown table: accuracy of logistic regression on the frozen features in percent, the colour's squared
error by ridge regression on them in squared units of 0..255 (more: less of it is left), the mean column sum of W and
its effective negatives over the steps of the last epoch, and differences by seed. Nothing is chosen. What is in
RESULTS.jsonl is not trained again.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch
from color_mnist import SQUARED
from scipy.stats import t as student_t
from torch import Tensor

from study import data
from study.losses import cclk
from study.spec import load_study
from study.training.trial import Trial

NARROW = {"name": "fair_cclk", "kernel": "rbf", "sigma2": 0.01, "ridge": 0.1, "temperature": 0.1}
INFO_NCE = {"name": "info_nce", "temperature": 0.1}
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Row:
    """The method, what is done to W, and how many times 256 samples a batch has."""

    method: Mapping[str, Any]
    is_shuffled: bool = False
    is_rescaled: bool = False
    times: int = 1


ROWS = {
    "InfoNCE": Row(INFO_NCE),
    "narrow kernel": Row(NARROW),
    "narrow kernel, shuffled": Row(NARROW, is_shuffled=True),
    "narrow kernel, rescaled": Row(NARROW, is_rescaled=True),
    "narrow kernel, rescaled and shuffled": Row(NARROW, is_shuffled=True, is_rescaled=True),
    "InfoNCE, batches of 1,024": Row(INFO_NCE, times=4),
    "narrow kernel, batches of 1,024": Row(NARROW, times=4),
    "narrow kernel, rescaled, batches of 1,024": Row(NARROW, is_rescaled=True, times=4),
}
DIFFERENCES = (
    ("narrow kernel", "InfoNCE"),
    ("narrow kernel, shuffled", "InfoNCE"),
    ("narrow kernel", "narrow kernel, shuffled"),
    ("narrow kernel, rescaled", "InfoNCE"),
    ("narrow kernel, rescaled and shuffled", "InfoNCE"),
    ("narrow kernel, rescaled", "narrow kernel, rescaled and shuffled"),
    ("narrow kernel, rescaled", "narrow kernel"),
    ("narrow kernel, batches of 1,024", "InfoNCE, batches of 1,024"),
    ("narrow kernel, rescaled, batches of 1,024", "InfoNCE, batches of 1,024"),
)
Found = Mapping[str, Mapping[int, Mapping[str, float]]]


@contextmanager
def changed_weights(row: Row, seed: int, seen: list[tuple[float, float, float]]) -> Iterator[None]:
    """While it is open, W is made as `row` has it; of each step column sum, effective negatives, share without any."""
    own, chance = cclk._weights_of_views, torch.Generator().manual_seed(seed)

    def weights(views: Tensor, bias: Tensor | None, condition: Tensor | None, *of: Any) -> list[Tensor]:
        given = bias if condition is None else condition
        if row.is_shuffled and given is not None:
            given = given[torch.randperm(len(given), generator=chance)]
        made = own(views, None, given, *of)
        if row.is_rescaled:
            made = [weight / weight.sum(0).where(weight.sum(0) > 0, 1.0) for weight in made]
        if torch.is_grad_enabled():
            total, squares = made[0].sum(0), made[0].square().sum(0)
            effective = (total.square() / squares.where(squares > 0, 1.0)).mean()
            seen.append((float(total.mean()), float(effective), float((total == 0).float().mean())))
        return made

    cclk._weights_of_views = weights
    try:
        yield
    finally:
        cclk._weights_of_views = own


def trained(row: Row, seed: int) -> dict[str, float]:
    """The figures of the test split at the last epoch, those of W, and CPU seconds."""
    keys = ["search.space={}", "search.alternatives={}", f"method={json.dumps(dict(row.method))}"]
    keys += [f"train.batch_size={256 * row.times}", f"train.epochs={3 * row.times}", "train.report_test=false"]
    spec = load_study("cclk-rbf", keys, profile="cpu")
    seen: list[tuple[float, float, float]] = []
    began = time.process_time()
    with changed_weights(row, seed, seen):
        trial = Trial(spec.trial_config({}, seed), data.load(spec.base["data"]), "cpu")
        epochs = len(list(trial.train_epochs()))
    test = trial.evaluate("test", final=True)
    figures = {"accuracy": 100 * test["test/lbfgs_accuracy"], "mse": SQUARED * test["test/condition_mse"]}
    last = seen[-(len(seen) // epochs) :]
    if last:
        names = ("column_sum", "effective", "weightless")
        figures |= {name: fmean(values) for name, values in zip(names, zip(*last, strict=True), strict=True)}
    return figures | {"steps": len(seen), "seconds": time.process_time() - began}


def recorded(file: Path, names: Sequence[str]) -> Found:
    """By row and seed: what is in the file, and the others of these rows, trained now and added to it."""
    found: dict[str, dict[int, Mapping[str, float]]] = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        one = json.loads(line)
        found.setdefault(one["row"], {})[one["seed"]] = one
    with file.open("a", encoding="utf-8") as out:
        for seed in SEEDS:
            for name in names:
                if seed not in found.get(name, {}):
                    one = {"row": name, "seed": seed} | trained(ROWS[name], seed)
                    found.setdefault(name, {})[seed] = one
                    print(json.dumps(one), file=out, flush=True)
    return found


def half(values: Sequence[float]) -> float:
    """Half of the 95% interval of a mean, by Student's t."""
    return float(student_t.ppf(0.975, len(values) - 1)) * stdev(values) / math.sqrt(len(values))


def with_interval(values: Sequence[float], sign: str = "") -> str:
    """Mean, its 95% interval where there are two values, and how many they are."""
    return f"{fmean(values):{sign}.1f}" + (f" ± {half(values):.1f}" if len(values) > 1 else "") + f" ({len(values)})"


def of_row(found: Found, name: str, key: str) -> list[float]:
    return [one[key] for _, one in sorted(found[name].items()) if key in one]


def page(found: Found) -> Iterator[str]:
    minutes = sum(one["seconds"] for of in found.values() for one in of.values()) / 60
    yield f"{minutes:.0f} minutes of one CPU core, PyTorch {torch.__version__}. Mean ± 95% interval (seeds).\n"
    yield "| | accuracy, % | colour's error | column sum of W | effective negatives | without any | CPU, a trial |"
    yield "|---|---|---|---|---|---|---|"
    for name in [name for name in ROWS if name in found]:
        accuracy, mse = (with_interval(of_row(found, name, key)) for key in ("accuracy", "mse"))
        sums, effective, weightless = (
            f"{fmean(values):.{places}f}" if (values := of_row(found, name, key)) else "-"
            for key, places in (("column_sum", 3), ("effective", 1), ("weightless", 2))
        )
        seconds = fmean(of_row(found, name, "seconds"))
        yield f"| {name} | {accuracy} | {mse} | {sums} | {effective} | {weightless} | {seconds:.0f} s |"
    yield "\n| | less | accuracy, points | colour's error |\n|---|---|---|---|"
    for first, second in DIFFERENCES:
        if seeds := sorted(set(found.get(first, {})) & set(found.get(second, {}))):
            cells = [
                with_interval([found[first][seed][key] - found[second][seed][key] for seed in seeds], "+")
                for key in ("accuracy", "mse")
            ]
            yield f"| {first} | {second} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="JSON lines, one per trial; added to")
    parser.add_argument("--rows", nargs="+", choices=tuple(ROWS), default=tuple(ROWS))
    parser.add_argument("--print", action="store_true", help="train nothing")
    given = parser.parse_args()
    torch.set_num_threads(1)
    print("\n".join(page(recorded(given.results, () if given.print else given.rows))))


if __name__ == "__main__":
    main()
