"""Why does a small reproduction speak against its table? One thing of its protocol changed at a time.

    STUDY_DATA=... python tests/benchmarks/causes.py [RESULTS.jsonl] [--cases NAME ...] [--rows NAME ...] [--seeds 0 1]
                                                     [--cells NAME ...] [--print]

A case is a table's study file with its profile `cpu`, some cells of it, and rows that each change what they name; the
first is the protocol as it was reproduced. Printed is a Markdown page: the test metric of the last epoch, nothing
chosen, and by how much one cell is above another, seed by seed. What is in RESULTS.jsonl is not trained again, seeds
come first, and `--print` trains nothing. Without a file it is `causes.jsonl`, beside this one.

`mean over positions` is small_conv_net as it was until `networks.py` told it apart: the mean over positions, after a
ReLU, is its features. `simple_conv_net` takes the mean over positions, too, but sees 25 x 25 pixels from each.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from kernel_control import with_interval
from networks import AS_IT_WAS, OLD, Old

from study import data
from study.models import small_networks
from study.spec import load_study
from study.training.trial import Trial


@dataclass(frozen=True)
class Row:
    """What differs from the protocol, the cells that are run, another metric; `is_old`: `Old` for small_conv_net.

    `keys` come after the cell's own, so that they can change these too. Cells that are not run are those of the row
    `base`; None: of the first.
    """

    keys: Sequence[str] = ()
    cells: Sequence[str] = ()
    metric: str | None = None
    is_old: bool = False
    base: str | None = None


@dataclass(frozen=True)
class Case:
    """Cells of a table, its rows, and which cells are compared: (one, other, the printed difference)."""

    table: str
    keys: Sequence[str]
    cells: Mapping[str, Sequence[str]]
    pairs: Sequence[tuple[str, str, str]]
    rows: Mapping[str, Row]
    metric: str = "accuracy"
    scale: float = 100
    also: Sequence[str] = field(default=())
    """Further figures of the last epoch of training, of the last cell."""
    profile: str | None = "cpu"


FILE = Path(__file__).with_suffix(".jsonl")
TENTH, SMALL_NET, WHOLE = "train.data_share=0.1", "model.name=small_conv_net", "train.data_share=1.0"
ALPHAS = {f"alpha {alpha}": [f"method.alpha={alpha}"] for alpha in ("0.01", "0.1", "1.0")}
LARGE = ("alpha 1.0",)


def table12(rho: str, *printed: str, weight: str = "0.5") -> Case:
    pairs = [("alpha 0.01", "alpha 0.1", printed[0]), ("alpha 0.1", "alpha 1.0", printed[1])]
    rows = {
        "as reproduced: LeNet, 8 epochs": Row(),
        "small_conv_net": Row([SMALL_NET]),
        "base temperature none": Row(["method.base_temperature=null"], LARGE),
        "54,000 images": Row(["data.val_share=0.1"], LARGE),
        "mean over positions": Row([SMALL_NET], LARGE, is_old=True),
        "LeNet, 32 epochs": Row(["train.epochs=32"], LARGE),
        "a tenth": Row([TENTH]),
        "a tenth, base temperature none": Row([TENTH, "method.base_temperature=null"], LARGE),
        "a tenth, mean over positions": Row([TENTH, SMALL_NET], LARGE, is_old=True),
        "a tenth, small_conv_net": Row([TENTH, SMALL_NET]),
        "a tenth, LeNet, 80 epochs": Row([TENTH, "train.epochs=80"], LARGE),
    }
    return Case("fairkl-table12", [f"data.rho={rho}", f"method.lambda={weight}"], ALPHAS, pairs, rows)


FRESH = ["train.final=[lbfgs]"]
FROZEN = "logistic regression on the frozen features"


def longer(epochs: int) -> dict[str, Row]:
    """Return the rows of Table 8's three methods with so many epochs, compared with one another alone."""
    keys, cells, name = [f"train.epochs={epochs}"], ("CE", "SupCon", "epsilon 0.25"), f"{epochs} epochs"
    return {
        name: Row(keys, cells, base=name),
        f"{name}, {FROZEN}": Row(keys, cells, metric="lbfgs_accuracy", base=name),
    }


FAIR_KL = ["method.regulariser=fair_kl", "method.lambda=0.5"]
CASES = {
    "table12-0.999": table12("0.999", "+57.9", "-6.8"),
    "table12-0.997": table12("0.997", "+12.0", "+3.2"),
    "table12-0.999-lambda-1": table12("0.999", "+41.8", "+11.4", weight="1.0"),
    "table12-0.997-lambda-1": table12("0.997", "+6.1", "+6.0", weight="1.0"),
    "table12-0.995-lambda-1": table12("0.995", "-5.6", "+5.7", weight="1.0"),
    "table12-0.99-lambda-1": table12("0.99", "-6.4", "+2.4", weight="1.0"),
    "table8": Case(
        "fairkl-table8",
        ["data.name=cifar10", *FRESH],
        {
            "CE": ["method={name: cross_entropy}"],
            "SupCon": ["method={name: sup_con, temperature: 0.1, views: 2}"],
            "epsilon 0": ["method={name: eps_sup_info_nce, temperature: 0.1, views: 2, epsilon: 0.0}"],
            "epsilon 0.25": ["method={name: eps_sup_info_nce, temperature: 0.1, views: 2, epsilon: 0.25}"],
            "epsilon 0.5": ["method={name: eps_sup_info_nce, temperature: 0.1, views: 2, epsilon: 0.5}"],
            "epsilon 2.5": ["method={name: eps_sup_info_nce, temperature: 0.1, views: 2, epsilon: 2.5}"],
            "epsilon 5": ["method={name: eps_sup_info_nce, temperature: 0.1, views: 2, epsilon: 5.0}"],
        },
        [
            ("SupCon", "CE", "+0.91"),
            ("epsilon 0.25", "CE", "+1.41"),
            ("epsilon 0.25", "SupCon", "+0.50"),
            ("epsilon 0.25", "epsilon 0", "nothing"),
            ("epsilon 2.5", "SupCon", "+0.50"),
        ],
        {
            "as reproduced: a tenth, 12 epochs": Row(),
            FROZEN: Row(metric="lbfgs_accuracy"),
            "no head": Row(["model.head=none"], ("CE", "SupCon", "epsilon 0.25")),
            **longer(50),
            **longer(100),
            "half of the images": Row(["train.data_share=0.5"], ("CE", "SupCon", "epsilon 0.25")),
            "sum over positives": Row(["method.reduction=sum"], ("epsilon 0.25", "epsilon 2.5")),
        },
    ),
    "cclk-table4": Case(
        "cclk-table4",
        ["data.name=cifar10"],
        {
            "InfoNCE": ["method={name: info_nce, temperature: 0.5}"],
            "HardNeg-InfoNCE": ["method={name: hard_negative_info_nce, temperature: 0.5}"],
            "HardNeg-CCLK": [
                "method={name: hard_negative_cclk, temperature: 0.5, kernel: rbf, sigma2: 500.0, ridge: 100.0}"
            ],
        },
        [("HardNeg-CCLK", "HardNeg-InfoNCE", "+0.3"), ("HardNeg-CCLK", "InfoNCE", "+1.8")],
        {
            "as reproduced: sigma² 500, ridge 100": Row(),
            "sigma² 5": Row(["method.sigma2=5.0"], ("HardNeg-CCLK",)),
            "sigma² 50": Row(["method.sigma2=50.0"], ("HardNeg-CCLK",)),
            "sigma² 50, ridge 10": Row(["method.sigma2=50.0", "method.ridge=10.0"], ("HardNeg-CCLK",)),
            "ridge 1": Row(["method.ridge=1.0"], ("HardNeg-CCLK",)),
            "cosine kernel": Row(["method.kernel=cosine"], ("HardNeg-CCLK",)),
        },
        metric="lbfgs_accuracy",
        also=("train/effective_negatives", "train/weight_sum"),
    ),
}
OF_SCALED, OF_SIMILARITY = ("0.25", "0.5"), ("2.5", "5.0")
"""The printed 0.25 and 0.5 in units of similarity / temperature, and of the similarity at temperature 0.1."""
EPSILONS = {f"epsilon {value}": [f"method.epsilon={value}"] for value in ("0.0", *OF_SCALED, *OF_SIMILARITY)}
NO_MARGIN = [(cell, "epsilon 0.0", "nothing") for cell in EPSILONS if cell != "epsilon 0.0"]
WITH_FAIR_KL = {
    f"FairKL, lambda 0.5, alpha {alpha} once": Row([*FAIR_KL, f"method.alpha={alpha}"]) for alpha in ("0.1", "0.01")
}
CASES["epsilon-digits"] = Case(
    "fairkl-epsilon-digits",
    [],
    EPSILONS,
    NO_MARGIN,
    {"loss alone, rho 0.95": Row(), "loss alone, rho 0.8": Row(["data.rho=0.8"]), **WITH_FAIR_KL},
    profile=None,
)
CASES["epsilon-mnist"] = Case(
    "fairkl-epsilon",
    ["method.name=eps_sup_info_nce", "train.epochs=8", TENTH],
    EPSILONS,
    NO_MARGIN,
    {"loss alone, a tenth, LeNet, 8 epochs": Row(), "rho 0.9": Row(["data.rho=0.9"]), **WITH_FAIR_KL},
)
CASES["table10-11"] = Case(
    "fairkl-table10",
    ["data.rho=0.98", "method.epsilon=0.5", TENTH],
    {
        "with head": ["model.head=mlp"],
        "means alone": ["model.head=none", "method.kld=0.0"],
        "without head, full": ["model.head=none"],
    },
    [("without head, full", "with head", "+3.5"), ("without head, full", "means alone", "+1.5")],
    {"a tenth, 10 epochs: alpha squared": Row(), "alpha once": Row(["method.alpha_squared=false"])},
)
CASES["table3"] = Case(
    "fairkl-table3",
    ["data.rho=0.99"],
    {
        "BiasBal": ["method={name: bias_balanced_cross_entropy}"],
        "CE + FairKL": ["method={name: cross_entropy, regulariser: fair_kl, alpha: 1.0, lambda: 1.0}"],
        "eps-SupInfoNCE + FairKL": [
            "method={name: eps_sup_info_nce, temperature: 0.1, base_temperature: 0.07, epsilon: 0.5, "
            "regulariser: fair_kl, alpha: 0.03, lambda: 0.5, alpha_squared: true}"
        ],
    },
    [("eps-SupInfoNCE + FairKL", "BiasBal", "+1.56"), ("eps-SupInfoNCE + FairKL", "CE + FairKL", "+1.94")],
    {
        "as reproduced: alpha squared, LeNet, 6 epochs": Row(),
        "alpha once": Row(["method.alpha_squared=false"], ("eps-SupInfoNCE + FairKL",)),
        "small_conv_net": Row([SMALL_NET]),
        "small_conv_net, alpha once": Row(
            [SMALL_NET, "method.alpha_squared=false"], ("eps-SupInfoNCE + FairKL",), base="small_conv_net"
        ),
        "a tenth": Row([TENTH]),
        "a tenth, alpha once": Row([TENTH, "method.alpha_squared=false"], ("eps-SupInfoNCE + FairKL",), base="a tenth"),
    },
)
CASES["table4"] = Case(
    "fairkl-table4",
    ["data.name=corrupted_cifar10", "data.rho=0.995", TENTH],
    {
        "Vanilla": ["method={name: cross_entropy}"],
        "EnD": ["method={name: cross_entropy, regulariser: end, lambda: 1.0}"],
        "eps-SupInfoNCE + FairKL": [
            "method={name: eps_sup_info_nce, temperature: 0.1, base_temperature: 0.07, epsilon: 0.1, "
            "regulariser: fair_kl, alpha: 0.1, lambda: 1.0, alpha_squared: true}"
        ],
    },
    [("eps-SupInfoNCE + FairKL", "Vanilla", "+10.3"), ("eps-SupInfoNCE + FairKL", "EnD", "+14.0")],
    {
        "a tenth, 10 epochs: alpha squared": Row(),
        "alpha once": Row(["method.alpha_squared=false"], ("eps-SupInfoNCE + FairKL",)),
    },
)
for error in ("", "-mse"):
    CASES[f"cclk-table3{error}"] = Case(
        "cclk-table3",
        [WHOLE, "train.epochs=5"],
        {
            "InfoNCE": ["method={name: info_nce, temperature: 0.1}"],
            "Fair-InfoNCE": ["method={name: fair_info_nce, temperature: 0.1, clusters: 10}"],
            "Fair-CCLK": ["method={name: fair_cclk, temperature: 0.1, kernel: cosine, ridge: 0.01}"],
        },
        [
            ("Fair-CCLK", "InfoNCE", "+15.9" if error else "+2.3"),
            ("Fair-InfoNCE", "InfoNCE", "+16.1" if error else "+1.8"),
        ],
        {
            "Adam 0.001": Row(),
            "LARS 0.001, as the released command has it": Row(["train.optimizer=lars", "train.learning_rate=0.001"]),
            "LARS 0.25, the script's default": Row(["train.optimizer=lars", "train.learning_rate=0.25"]),
            "LARS 1.5, as in the other settings": Row(["train.optimizer=lars", "train.learning_rate=1.5"]),
            "a tenth, Adam 0.001": Row([TENTH]),
            "a tenth, LARS 0.001": Row([TENTH, "train.optimizer=lars", "train.learning_rate=0.001"]),
            "a tenth, LARS 0.25": Row([TENTH, "train.optimizer=lars", "train.learning_rate=0.25"]),
            "a tenth, LARS 1.5": Row([TENTH, "train.optimizer=lars", "train.learning_rate=1.5"]),
        },
        metric="condition_mse" if error else "lbfgs_accuracy",
        scale=255.0**2 if error else 100,
    )
KEPT = ("accuracy", "lbfgs_accuracy", "conflicting_accuracy", "condition_mse")
Found = dict[str, dict[int, Mapping[str, Any]]]
"""By what was trained (`trained_as`) and seed."""


def trained_as(case: Case, cell: str, row: Row) -> str:
    """A trial's protocol in one line: rows that read the same trial otherwise share it."""
    return json.dumps([case.table, row.is_old, *case.keys, *case.cells[cell], *row.keys])


def trained(case: Case, cell: str, row: Row, seed: int) -> dict[str, Any]:
    """One trial: its test metrics, the last epoch's of training, and its CPU seconds."""
    keys = ["search.space={}", "search.enqueue=[]", "train.report_test=false", *case.keys, *case.cells[cell], *row.keys]
    spec = load_study(case.table, keys, profile=case.profile)
    own, began = small_networks.SmallConvNet, time.process_time()
    if row.is_old:
        small_networks.SmallConvNet = lambda shape, width: Old(*OLD[AS_IT_WAS])
    trial = Trial(spec.trial_config({}, seed), data.load(spec.base["data"]), "cpu")
    *_, last = trial.train_epochs()
    test = trial.evaluate("test", final=True)
    small_networks.SmallConvNet = own
    figures = {name: test[f"test/{name}"] for name in KEPT if f"test/{name}" in test}
    figures |= {key: last[key] for key in case.also if key in last}
    return figures | {"seconds": time.process_time() - began}


def read(file: Path) -> Found:
    found: Found = {}
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        one = json.loads(line)
        found.setdefault(one["trained"], {})[one["seed"]] = one
    return found


def cells_of(case: Case, row: Row) -> list[str]:
    return [cell for cell in case.cells if cell in (row.cells or case.cells)]


def train(file: Path, found: Found, names: Sequence[str], rows: Sequence[str], cells: Sequence[str], seed: int) -> None:
    """Train what is asked for and not in the file, and add it there."""
    for case in [CASES[name] for name in names]:
        for row in [row for name, row in case.rows.items() if not rows or name in rows]:
            for cell in [cell for cell in cells_of(case, row) if not cells or cell in cells]:
                key = trained_as(case, cell, row)
                if seed not in found.setdefault(key, {}):
                    found[key][seed] = {"trained": key, "seed": seed} | trained(case, cell, row, seed)
                    with file.open("a", encoding="utf-8") as out:
                        print(json.dumps(found[key][seed]), file=out, flush=True)


def values(case: Case, found: Found, cell: str, row: Row) -> dict[int, float]:
    """By seed, in the printed unit; a row that lacks a cell has that of the first row."""
    of = row if cell in cells_of(case, row) else case.rows[row.base or next(iter(case.rows))]
    metric = row.metric or case.metric
    recorded = found.get(trained_as(case, cell, of), {})
    return {seed: case.scale * one[metric] for seed, one in sorted(recorded.items()) if metric in one}


def has_any(case: Case, found: Found) -> bool:
    """Return whether any of a case's trials were run."""
    return any(found.get(trained_as(case, cell, row)) for row in case.rows.values() for cell in cells_of(case, row))


def heading(found: Found) -> str:
    minutes = sum(one["seconds"] for of in found.values() for one in of.values()) / 60
    return f"{minutes:.0f} minutes of one CPU core, PyTorch {torch.__version__}. Mean ± 95% interval (seeds)."


def page(name: str, case: Case, found: Found) -> Iterator[str]:
    """One case as a Markdown table; rows that nothing has run are left out."""
    yield f"### {name}: `{case.table}`, {', '.join(case.keys) or 'as its study file'}\n"
    measured = {cell for cell in case.cells for row in case.rows.values() if values(case, found, cell, row)}
    cells = [cell for cell in case.cells if cell in measured]
    compared = [pair for pair in case.pairs if {pair[0], pair[1]} <= measured]
    pairs = [f"{one} less {other} (printed {printed})" for one, other, printed in compared]
    heads = ["changed", *cells, *pairs, *case.also, "CPU, a trial"]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for title, row in case.rows.items():
        ran = {cell: found.get(trained_as(case, cell, row), {}) for cell in cells_of(case, row)}
        if not any(ran.values()):
            continue
        shown = [values(case, found, cell, row) if cell in ran else {} for cell in cells]
        columns = [with_interval(list(each.values())) if each else "" for each in shown]
        for one, other, _ in compared:
            ours, theirs = values(case, found, one, row), values(case, found, other, row)
            apart = [value - theirs[seed] for seed, value in ours.items() if seed in theirs]
            columns.append(with_interval(apart, "+") if apart and {one, other} & ran.keys() else "")
        last = ran.get(cells[-1], {})
        columns += [f"{fmean(one[key] for one in last.values()):.3g}" if last else "" for key in case.also]
        columns.append(f"{fmean(one['seconds'] for of in ran.values() for one in of.values()):.0f} s")
        yield f"| {' | '.join([title, *columns])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="?", default=FILE, help="JSON lines, one per trial; added to")
    parser.add_argument("--cases", nargs="*", choices=tuple(CASES), default=tuple(CASES))
    parser.add_argument("--rows", nargs="*", default=(), help="names of rows")
    parser.add_argument("--cells", nargs="*", default=())
    parser.add_argument("--seeds", nargs="*", type=int, default=(0, 1, 2))
    parser.add_argument("--print", action="store_true", help="train nothing")
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = read(given.results)
    for seed in () if given.print else given.seeds:
        train(given.results, found, given.cases, given.rows, given.cells, seed)
    print(heading(found) + "\n")
    print("\n\n".join("\n".join(page(name, CASES[name], found)) for name in given.cases))


if __name__ == "__main__":
    main()
