"""What to run where a GPU is at hand for minutes: figures that are useful one by one, the most useful first.

    STUDY_DATA=... python tests/benchmarks/on_gpu.py OUT [--minutes 9] [--rehearse]

In OUT are `page.md`, written again after each figure, `results.jsonl`, and the state of the trial that runs. Called
again it goes on: with the next figure, and within a trial after its last epoch. One trial at a time, its step as one
CUDA graph: on an H200 several at once gained nothing. In this order, each cell with seed 0 before any with another:

* table12: FairKL's Table 12 at the paper's own protocol in bfloat16, 80 epochs of SimpleConvNet, alpha acting once:
  alpha 0.1 at rho 0.999 and 0.997, then 0.01 and 1.0, with both lambdas; 85 s each on an H200, by its steps.
* margin: the row CIFAR-10 of FairKL's Table 8 with ResNet-18, 20 epochs, both classifiers.
* memory: the peak of a trial of some shipped files, beside what the simulated device counted.
* bits: two runs of one trial with `train.deterministic`, which should give the same numbers.
* further: Table 12 and the margin with seeds 1 and 2.

It needs PyTorch, the project and its data, and neither Ray nor Optuna nor MLflow. `--rehearse`: two epochs of
scikit-learn's digits in the place of either data set, to see that all of it runs, also on the CPU.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import torch

from study import data, published
from study.spec import load_study
from study.training.trial import Trial

ROOT = Path(__file__).parents[2]

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LABEL = "lambda = {}, alpha = {}"
MARGINS = {
    "CE": "{name: cross_entropy}",
    "SupCon": "{name: sup_con, temperature: 0.1, views: 2}",
    **{
        f"epsilon = {value}": f"{{name: eps_sup_info_nce, temperature: 0.1, views: 2, epsilon: {value}}}"
        for value in (0.0, 0.1, 0.25, 0.5)
    },
}
RESNET18 = ["model={name: resnet18, head: mlp}", "train.epochs=20", "train.batch_size=256", "train.optimizer=adam"]
RESNET18 += ["train.learning_rate=0.001", "train.warmup_epochs=0", "train.final=[lbfgs]", "data.name=cifar10"]
SIMULATED = {"fairkl-table2": (24.7, 3.6), "fscl-table1": (18.3, 4.3), "fairkl-table9": (43.2, 6.9)}
"""GiB of training and evaluation on the simulated device, `tests/benchmarks/results/gpus.md`."""
REHEARSED = ["data={name: biased_digits}", "model={name: small_conv_net}", "train.epochs=2", "train.batch_size=128"]
REHEARSED += ["train.precision=float32", "train.final=[]"]


@dataclass(frozen=True)
class Job:
    """One figure: its part of the page, its row and column there, its seed; what is trained."""

    part: str
    row: str
    column: str
    table: str
    keys: Sequence[str] = ()
    seed: int = 0

    @property
    def name(self) -> str:
        words = "_".join(map(str, (self.part, self.row, self.column, self.seed)))
        return re.sub(r"[^A-Za-z0-9._-]+", "-", words)


def jobs() -> list[Job]:
    """Every figure, in the order of its use."""
    table12 = [
        Job("table12", rho, LABEL.format(weight, alpha), "fairkl-table12", [
            f"data.rho={rho}", f"method.lambda={weight}", f"method.alpha={alpha}", "method.alpha_squared=false",
            "train.precision=bfloat16"])
        for alpha, weight, rho in product(("0.1", "0.01", "1.0"), ("0.5", "1"), ("0.999", "0.997"))
    ]  # fmt: skip
    margin = [
        Job("margin", "CIFAR-10", name, "fairkl-table8", [*RESNET18, f"method={of}"]) for name, of in MARGINS.items()
    ]
    memory = [Job("memory", name, "peak", name) for name in SIMULATED]
    two = ["data.rho=0.999", "method.alpha=0.1", "method.lambda=0.5", "train.epochs=2", "train.deterministic=true"]
    bits = [Job("bits", run, "two epochs", "fairkl-table12", two) for run in ("one run", "another")]
    first = [*table12, *margin]
    further = [Job(job.part, job.row, job.column, job.table, job.keys, seed) for seed in (1, 2) for job in first]
    return [*first, *memory, *bits, *further]


def trained(job: Job, state: Path, until: float, rehearse: bool) -> dict[str, Any] | None:
    """The figures of one trial; None where the time was over before its last epoch: the state goes on from there."""
    keys = ["search.space={}", "train.report_test=false", *job.keys, *(REHEARSED if rehearse else [])]
    spec = load_study(job.table, keys)
    trial = Trial(spec.trial_config({}, job.seed), data.load(spec.base["data"]), DEVICE)
    began, done = time.perf_counter(), torch.load(state, weights_only=True)["epoch"] if state.exists() else 0
    last: Mapping[str, float] = {}
    for epoch, last in enumerate(trial.train_epochs(state), start=done + 1):  # noqa: B007 - read behind the loop
        if time.monotonic() > until and epoch < spec.epochs:
            return None
    test = trial.evaluate("test", final=True)
    kept = {name: value for name, value in test.items() if name.endswith("accuracy") and "group" not in name}
    cost = {"seconds an epoch": last["time/epoch"], "peak GiB": last["memory/peak_mib"] / 1024}
    seconds = (time.perf_counter() - began) * spec.epochs / (spec.epochs - done)
    return {"epochs": spec.epochs, "seconds": seconds, **cost, **kept}


def measured(job: Job) -> dict[str, Any]:
    """GiB of a trial of a shipped file, for as many samples as a step and a batch of evaluation take.

    In a process of its own, as `gpu_memory` takes the checks of values out.
    """
    code = f"import json, gpu_memory; gpu_memory.watch(); print(json.dumps(gpu_memory.peaks({job.table!r})))"
    paths = [str(ROOT / "tests" / "support"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def results(out: Path) -> dict[str, dict[str, Any]]:
    file = out / "results.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {one["name"]: one for one in map(json.loads, lines)}


def go_on(out: Path, minutes: float, rehearse: bool) -> None:
    """Measure what is left until the minutes are over, and write the page after each figure."""
    until = time.monotonic() + 60 * minutes
    for job in [job for job in jobs() if job.name not in results(out)]:
        print(job.name, flush=True)
        state = out / f"{job.name}.pt"
        try:
            if job.part == "memory":
                found = measured(job) if DEVICE == "cuda" else {"left out": "there is no GPU"}
            else:
                found = trained(job, state, until, rehearse)
        except Exception as error:  # the next figure may be had all the same
            found = {"left out": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        if found is not None:
            with (out / "results.jsonl").open("a", encoding="utf-8") as file:
                print(json.dumps({"name": job.name} | found), file=file)
            state.unlink(missing_ok=True)
        (out / "page.md").write_text("\n".join(page(results(out), rehearse)) + "\n", encoding="utf-8")
        if time.monotonic() > until:
            break


# The page.


def page(found: Mapping[str, Mapping[str, Any]], rehearse: bool) -> Iterator[str]:
    name = torch.cuda.get_device_name() if DEVICE == "cuda" else "a CPU"
    yield f"# On {name}\n\n`tests/benchmarks/on_gpu.py`, torch {torch.__version__}; one trial at a time."
    yield "A rehearsal: two epochs of digits, no figure means anything." * rehearse
    for part, title in TITLES.items():
        there = [(job, found[job.name]) for job in jobs() if job.part == part and job.name in found]
        if there:
            yield f"\n## {title}\n"
            yield from PARTS[part](there)
    for name, one in found.items():
        if "left out" in one:
            yield f"\n- {name} was left out: {one['left out']}"


There = Sequence[tuple[Job, Mapping[str, Any]]]


def cells(there: There) -> Iterator[str]:
    """Each cell beside the printed one: mean ± sample deviation (seeds), and what a trial took."""
    metrics = list(dict.fromkeys(key for _, one in there for key in one if key in SHOWN))
    yield f"| | | paper | {' | '.join(metrics)} | epochs | s a trial | s an epoch | peak GiB |"
    yield "|---" * (7 + len(metrics)) + "|"
    for row, column in dict.fromkeys((job.row, job.column) for job, _ in there):
        of = [one for job, one in there if (job.row, job.column) == (row, column) and "seconds" in one]
        if not of:
            continue
        table = published.load_published_table("fairkl-table12" if there[0][0].part == "table12" else "fairkl-table8")
        labels = [line.label for line in table.columns]
        printed = table.printed_cell(row, column).printed if column in labels else ""
        ours = [spread([100 * one[metric] for one in of if metric in one]) for metric in metrics]
        cost = [f"{fmean(one[key] for one in of):.3g}" for key in ("seconds", "seconds an epoch", "peak GiB")]
        yield f"| {row} | {column} | {printed} | {' | '.join(ours)} | {of[0]['epochs']} | {' | '.join(cost)} |"


def spread(values: Sequence[float]) -> str:
    if not values:
        return ""
    deviation = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
    return f"{fmean(values):.1f}{deviation} ({len(values)})"


def memory(there: There) -> Iterator[str]:
    yield "| file | GiB: training | evaluation | on the simulated device |\n|---|---|---|---|"
    for job, one in there:
        if "training" in one:
            told = " and ".join(map(str, SIMULATED[job.row]))
            yield f"| {job.row} | {one['training']:.1f} | {one['evaluation']:.1f} | {told} |"


def bits(there: There) -> Iterator[str]:
    runs = [{key: value for key, value in one.items() if key in SHOWN} for _, one in there]
    if len(runs) < 2 or not runs[0]:
        yield "One run so far."
    else:
        word = "are alike" if runs[0] == runs[1] else "differ"
        yield f"Two runs of two epochs with `train.deterministic` {word}: {runs}"


SHOWN = ("test/accuracy", "test/lbfgs_accuracy")
TITLES = {
    "table12": "FairKL Table 12 at the paper's protocol, bfloat16, alpha once",
    "margin": "The margin of FairKL Table 8, ResNet-18",
    "memory": "Memory",
    "bits": "Bits of two runs",
}
PARTS = {"table12": cells, "margin": cells, "memory": memory, "bits": bits}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder of the page and of what is done; gone on with")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--rehearse", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    go_on(given.out, given.minutes, given.rehearse)
    print((given.out / "page.md").read_text(encoding="utf-8") if (given.out / "page.md").exists() else "nothing yet")


if __name__ == "__main__":
    main()
