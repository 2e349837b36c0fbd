"""Time and memory of the losses, forward and backward, beside plain textbook versions of the same equations.

    OMP_NUM_THREADS=1 python tests/benchmarks/losses.py [--batch 256 1024] [--only NAME ...] [--compile] [--json]

float32, one thread, d = 128, 10 classes. "released" is what the papers' code took on the reference machine (2 cores,
one thread used); "pml" is SupConLoss of pytorch-metric-learning on the same rows. A peak is the most memory that a call
allocates at once, in units of the n x n float32 matrix. `--compile` adds the time under torch.compile (Inductor).
"""

import argparse
import inspect
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # the profiler, used for the peaks, is chatty

import textbook
import torch
from textbook import CLASSES, EPSILON, TEMPERATURE
from torch import Tensor
from torch.nn.functional import normalize

from study.losses.cclk import fair_cclk
from study.losses.debiased_info_nce import debiased_info_nce, hard_negative_info_nce
from study.losses.eps_sup_info_nce import eps_sup_info_nce
from study.losses.fair_kl import fair_kl
from study.losses.fair_sup_con import fair_sup_con
from study.losses.info_nce import info_nce
from study.losses.pairs import gram_matrix
from study.losses.sup_con import sup_con

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
DIMENSIONS = 128


def shared(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    inputs = {"target": target, "similarity": gram_matrix(views)}
    loss: Tensor = eps_sup_info_nce(views, **inputs, epsilon=EPSILON) + fair_kl(views, bias=bias, **inputs)
    return loss


def by_keyword(loss: Callable[..., Tensor], **options: object) -> Loss:
    declared = inspect.signature(loss).parameters

    def call(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
        labels = {"target": target, "bias": bias}
        value: Tensor = loss(views, **{name: label for name, label in labels.items() if name in declared}, **options)
        return value

    return call


def colour_condition(views: Tensor, target: Tensor, bias: Tensor) -> Tensor:
    loss: Tensor = fair_cclk(views, bias=bias[:, None] / CLASSES, temperature=TEMPERATURE)
    return loss


@dataclass(frozen=True)
class Entry:
    """One row of the table: `released` is ms at batch 256 and 1024; `largest` the largest batch that makes sense."""

    ours: Loss
    textbook: Loss
    views: int
    released: tuple[float, float] | None = None
    largest: int = 4096
    largest_textbook: int = 4096
    pml: bool = False


margin = partial(by_keyword, eps_sup_info_nce, epsilon=EPSILON)
ENTRIES = {
    "eps_sup_info_nce": Entry(margin(), textbook.eps_sup_info_nce, 1, (2.0, 38)),
    "fair_kl": Entry(by_keyword(fair_kl), textbook.fair_kl, 1, (2.2, 42)),
    "eps_sup_info_nce + fair_kl": Entry(shared, textbook.both, 1, (4.6, 85)),
    "sup_con": Entry(by_keyword(sup_con), textbook.sup_con, 1, pml=True),
    "sup_con, 2 views": Entry(by_keyword(sup_con), textbook.sup_con, 2, (4.8, 85)),
    "FSCL+, 2 views": Entry(by_keyword(fair_sup_con, group_norm=True), textbook.fscl_plus, 2, (6.5, 125)),
    "info_nce, 2 views": Entry(by_keyword(info_nce, temperature=TEMPERATURE), textbook.info_nce, 2),
    "DCL, 2 views": Entry(by_keyword(debiased_info_nce, temperature=TEMPERATURE), textbook.dcl, 2),
    "HCL, 2 views": Entry(by_keyword(hard_negative_info_nce, temperature=TEMPERATURE), textbook.hcl, 2, (8, 125)),
    "fair_cclk, 2 views": Entry(colour_condition, textbook.fair_cclk, 2, (1160, 17440)),
    "form a": Entry(margin(form="a"), textbook.form_a, 1),
    "form b": Entry(margin(form="b"), textbook.form_b, 1),
    "form d": Entry(margin(form="d"), textbook.form_d, 1, largest=1024, largest_textbook=256),
}


@dataclass(frozen=True)
class Result:
    """Times in ms, peaks in n x n float32 matrices."""

    name: str
    batch: int
    ours: float
    textbook: float | None
    compiled: float | None
    pml: float | None
    released: float | None
    ours_peak: float
    textbook_peak: float | None


def milliseconds(call: Callable[[], None], budget: float = 2.0) -> float:
    """The fastest of several calls (at least 2, at most 30) within `budget` seconds, after one to warm up."""
    call()
    best, spent, calls = float("inf"), 0.0, 0
    while calls < 2 or (calls < 30 and spent < budget):
        start = time.perf_counter()
        call()
        took = time.perf_counter() - start
        best, spent, calls = min(best, took), spent + took, calls + 1
    return best * 1e3


def peak_bytes(call: Callable[[], None]) -> int:
    """The most bytes that PyTorch's CPU allocator held at once during the call, over those held before."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        call()
    held = most = 0
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


def measure(name: str, batch: int, compile_too: bool) -> Result:
    entry = ENTRIES[name]
    generator = torch.Generator().manual_seed(0)
    raw = torch.randn(entry.views, batch, DIMENSIONS, generator=generator)
    views = normalize(raw, dim=-1).requires_grad_()
    target = torch.randint(0, CLASSES, (batch,), generator=generator)
    bias = torch.where(torch.rand(batch, generator=generator) < 0.9, target, target.roll(1))

    def step(loss: Loss) -> None:
        views.grad = None
        loss(views, target, bias).backward()

    def pml() -> Callable[[], None]:
        from pytorch_metric_learning.losses import SupConLoss

        loss = SupConLoss(TEMPERATURE)
        return lambda: step(lambda views, target, bias: loss(views[0], target))

    plain = batch <= entry.largest_textbook
    if plain:
        torch.testing.assert_close(
            entry.ours(views, target, bias), entry.textbook(views, target, bias), rtol=1e-3, atol=1e-4
        )
    matrix = 4 * (entry.views * batch) ** 2
    return Result(
        name=name,
        batch=batch,
        ours=milliseconds(lambda: step(entry.ours)),
        textbook=milliseconds(lambda: step(entry.textbook)) if plain else None,
        compiled=milliseconds(partial(step, torch.compile(entry.ours, fullgraph=True))) if compile_too else None,
        pml=milliseconds(pml()) if entry.pml else None,
        released=entry.released[(256, 1024).index(batch)] if entry.released and batch in (256, 1024) else None,
        ours_peak=peak_bytes(lambda: step(entry.ours)) / matrix,
        textbook_peak=peak_bytes(lambda: step(entry.textbook)) / matrix if plain else None,
    )


def show(results: list[Result]) -> None:
    print(
        f"torch {torch.__version__}, one CPU thread, float32, d = {DIMENSIONS}, forward + backward, ms; peaks in n x n"
    )
    columns = ("ours", "compiled", "textbook", "pml", "released", "released/ours", "peak", "textbook peak")
    print(f"{'loss':28}{'batch':>6}" + "".join(f"{column:>14}" for column in columns))
    for r in results:
        ratio = r.released / r.ours if r.released else None
        cells = (r.ours, r.compiled, r.textbook, r.pml, r.released, ratio, r.ours_peak, r.textbook_peak)
        print(f"{r.name:28}{r.batch:6}" + "".join(f"{'' if cell is None else f'{cell:.1f}':>14}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, nargs="+", default=[256, 1024, 4096])
    parser.add_argument("--only", nargs="+", choices=ENTRIES, default=list(ENTRIES))
    parser.add_argument("--compile", action="store_true", help="measure torch.compile (Inductor) too")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = [
        measure(name, batch, arguments.compile)
        for name in arguments.only
        for batch in arguments.batch
        if batch <= ENTRIES[name].largest
    ]
    if arguments.json:
        print(json.dumps({"torch": torch.__version__, "results": [asdict(result) for result in results]}))
    else:
        show(results)


if __name__ == "__main__":
    main()
