"""Records a study without early stopping: every configuration in full, on two seeds, epoch by epoch.

    python tests/benchmarks/curves/record.py quickstart [--configurations 200] [--seeds 2] [--state FOLDER]

The configurations are the study's baseline, what its file enqueues (as `papers`), then points of its space by Sobol's
sequence with the search's own seed; a larger table begins with a smaller one's. What the table that is there has is
taken from it as long as the trials would be the same (`--anew` trains everything), its seconds as this machine would
take, by the medians of what was taken and of what was trained. Trials run one after the
other in this process, on one thread and without Ray. Each is a line of `FOLDER/NAME-HASH.jsonl` once it is over, so
that the command given again goes on where it was ended. At the end the table `NAME.npz` is written beside this file
(`tables.py`).

The tables are in `STUDIES`. The files of MNIST, COMPAS and Adult must be in STUDY_DATA.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tables import FOLDER, Table

from study import data
from study.data import Dataset
from study.home import folder
from study.spec import StudySpec, load_study
from study.spec.yaml_document import parse_study_yaml
from study.sweep.search_stage import UntriedSuggestions
from study.training.diverged import DivergedError
from study.training.trial import Trial

sys.path.insert(0, str(Path(__file__).parents[1]))

import selection_curves

METRICS = ("accuracy", "unbiased_accuracy", "worst_group_accuracy", "equalized_odds")
"""What is recorded of validation and test, where the data have it."""

Epochs = list[dict[str, float]]


@dataclass(frozen=True)
class Recorded:
    """What a table is recorded of.

    Attributes:
        file: a study's shipped name, or a file beside this one.
        settings: as `--set` takes them.
        part: of the study's data, None: all.
    """

    file: str
    settings: Sequence[str] = ()
    part: Callable[[Dataset], Dataset] | None = None


TABLE = str(FOLDER / "fairkl_table.yaml")
SMALL = ("data.rho=0.98", "model.name=small_conv_net", "model.width=8", "train.epochs=10", "train.batch_size=64")
OF_ADULT = ("data.name=adult", "train.data_share=0.15")

SEARCH = ("search.sampler=tpe", "search.trials=24", "search.early_stopping={name: asha, grace: 4, reduction: 3}")
"""That the tables' studies had when they were first recorded: early stopping by an early order is what they tell of."""

STUDIES = {
    "quickstart": Recorded("quickstart", SEARCH),
    "debias_all": Recorded("debias_all", ["search.early_stopping.grace=3"]),
    "compas_wcl": Recorded("compas_wcl"),
    "compas_fairkl": Recorded(TABLE, ["name=compas_fairkl"]),
    "biased_mnist": Recorded(
        "fairkl_biased_mnist", ["name=biased_mnist", *SMALL, "resources.gpu=0"], selection_curves.small_mnist
    ),
    "adult_wcl": Recorded("compas_wcl", ["name=adult_wcl", *OF_ADULT]),
    "adult_fairkl": Recorded(TABLE, ["name=adult_fairkl", *OF_ADULT]),
    "quickstart_99": Recorded("quickstart", ["name=quickstart_99", "data.rho=0.99", *SEARCH]),
    "quickstart_90": Recorded("quickstart", ["name=quickstart_90", "data.rho=0.9", *SEARCH]),
}


def configurations(of: Recorded, spec: StudySpec, count: int) -> list[dict[str, Any]]:
    """The first `count` of a study's, see above."""
    given = [*([spec.search.baseline] if spec.search.baseline is not None else []), *spec.search.enqueue][:count]
    sampler = UntriedSuggestions(load_study(of.file, [*of.settings, "search.sampler=qmc"]))
    for number, params in enumerate(given):
        sampler.add_decided_params(number, params)
    drawn = (sampler.suggest_untried_params(number) for number in range(len(given), count))
    return [dict(params) for params in [*given, *drawn] if params is not None]


def curve(trial: Trial) -> tuple[Epochs, float]:
    """The metrics of a trial's epochs, up to that in which it diverged, and the CPU seconds of one."""
    epochs: Epochs = []
    began = time.process_time()
    try:
        epochs.extend(trial.train_epochs())
    except DivergedError as problem:
        print(f"epoch {len(epochs) + 1}: {problem}")
    return epochs, (time.process_time() - began) / max(1, len(epochs))


def names_of(spec: StudySpec) -> list[str]:
    """The metrics that a study's table has."""
    known = [name for name in METRICS if all(name in of_data for of_data in spec.metrics_by_data_set)]
    first = list(dict.fromkeys([spec.metric, spec.test_metric]))
    others = [f"{split}/{name}" for name in known for split in ("val", "test")]
    return [*first, *(name for name in others if name not in first)]


TRAINED = ("data", "model", "method", "train")
"""Sections of a study file of which a trial is made, beside the configuration."""


def kept(of: Recorded, spec: StudySpec, names: Sequence[str], path: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """What a table has of the trials of this study, as lines of the state; nothing of a study that trains otherwise."""
    if not path.exists():
        return {}
    table = Table.load(path)
    before, now = parse_study_yaml(table.study, str(path)), parse_study_yaml(spec.to_yaml(), of.file)
    if any(before.values[section] != now.values[section] for section in TRAINED):
        print(f"{path.name} is of other trials: everything is trained anew")
        return {}
    columns = [list(table.metrics).index(name) for name in names]
    found = {}
    for row, seed in enumerate(table.seeds):
        for place, params in enumerate(table.rows):
            epochs = [values for values in table.values[row, place][:, columns].tolist() if not np.isnan(values).all()]
            text, seconds = json.dumps(params, sort_keys=True), float(table.seconds[place])
            found[text, int(seed)] = {"params": text, "seed": int(seed), "seconds": seconds, "values": epochs}
    return found


def record(of: Recorded, count: int, seeds: int, state: Path, before: Path | None = None) -> Table:
    """Train what neither `state` nor the table `before` has yet, and make a table of it."""
    spec = load_study(of.file, [*of.settings, "train.report_test=true"])
    tried, used, names = configurations(of, spec, count), range(spec.seed, spec.seed + seeds), names_of(spec)
    state.mkdir(parents=True, exist_ok=True)
    lines = state / f"{spec.name}-{spec.hash}.jsonl"
    taken = kept(of, spec, names, before) if before is not None else {}
    known = taken | {(line["params"], line["seed"]): line for line in read_lines(lines)}
    texts = [json.dumps(params, sort_keys=True) for params in tried]
    wanted = [(place, seed) for place in range(len(tried)) for seed in used if (texts[place], seed) not in known]
    dataset = data.load(spec.trial_config({}).data)
    dataset = of.part(dataset) if of.part else dataset
    for place, seed in wanted:
        epochs, seconds = curve(Trial(spec.trial_config(tried[place], seed), dataset, "cpu"))
        values = [[round(epoch.get(name, np.nan), 5) for name in names] for epoch in epochs]
        line = {"params": texts[place], "seed": seed, "seconds": round(seconds, 5), "values": values}
        with lines.open("a") as file:
            file.write(json.dumps(line) + "\n")
        known[texts[place], seed] = line
        if len(known) % 50 == 0:
            print(f"{spec.name}: {len(known)} of {len(tried) * seeds} trials", flush=True)
    values = np.full((seeds, len(tried), spec.epochs, len(names)), np.nan)
    trained = [line for job, line in known.items() if job not in taken]
    seconds, here = np.zeros(len(tried)), pace(list(taken.values()), trained)
    for place, text in enumerate(texts):
        found = [known[text, seed] for seed in used]
        seconds[place] = np.mean([line["seconds"] * (here if (text, line["seed"]) in taken else 1) for line in found])
        for row, line in enumerate(found):
            values[row, place, : len(line["values"])] = np.array(line["values"]).reshape(-1, len(names))
    command = f"python tests/benchmarks/curves/record.py {spec.name} --configurations {count} --seeds {seeds}"
    return Table(tried, names, values, list(used), seconds, spec.to_yaml(), command)


def pace(taken: Sequence[Mapping[str, Any]], trained: Sequence[Mapping[str, Any]]) -> float:
    """How many times as long as a table says its trials would take here; 1 where none were trained."""
    told = [[line["seconds"] for line in lines] for lines in (taken, trained)]
    return float(np.median(told[1]) / np.median(told[0])) if all(told) else 1.0


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file of trials; one that a kill cut short is taken out."""
    if not path.exists():
        return []
    whole, _, rest = path.read_text().rpartition("\n")
    if rest:
        path.write_text(whole + "\n")
    return [json.loads(line) for line in whole.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=STUDIES, metavar="NAME", help=", ".join(STUDIES))
    parser.add_argument("--configurations", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--anew", action="store_true", help="take nothing from the table that is there")
    parser.add_argument("--state", type=Path, help="folder of what was trained; by default `curves` in STUDY_HOME")
    parser.add_argument("--into", type=Path, default=FOLDER, help="folder of the tables; by default this file's")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in given.names:
        state, path = given.state or folder.Home.locate().path / "curves", given.into / f"{name}.npz"
        before = None if given.anew else path
        table = record(STUDIES[name], given.configurations, given.seeds, state, before)
        table.write(path)
        print(f"{name}: written, {np.nansum(table.seconds) * table.values.shape[2] * given.seeds / 60:.1f} CPU minutes")


if __name__ == "__main__":
    main()
