"""What is early stopping worth on real data? One study file with two searches; the quickstart takes minutes a pair.

    python tests/benchmarks/asha_worth.py HOME [--study quickstart] [--searches early none] [--seeds 5]
                                               [--set KEY=VALUE ...]

Both have the same seeds, in pairs: the sampler's seed is 0, 1 ..., the training seed 0, 10 ..., so that no two pairs
confirm on the same seeds. `early` is TPE and ASHA as the file had them before its search followed the tables: 24 trials
and rungs from epoch 4 on in the quickstart, 12 trials and rungs from epoch 1 on in `fairkl_biased_mnist`, which runs
with its profile `cpu`. `none` is the same without early stopping, `shipped` is the search of the shipped file. Studies
are kept in HOME: called again, it goes on with the one that was cut off and leaves those that are complete. Printed are
mean and sample standard deviation over the pairs, and of the differences within them: epochs of the search and of all
trials, minutes from the first trial's start to the end, and the accuracies of the configuration that the study chose,
on its fresh seeds: validation, which chose it, and test, which did not.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from study.home.folder import StudyFolder
from study.home.ledger import read_entries
from study.home.record import StudyRecord
from study.ranking import Results
from study.ranking.study_summary import summarise_study

BEFORE = {"quickstart": (24, 4), "fairkl_biased_mnist": (12, 1)}
"""Trials and the first rung's epoch."""

PROFILE = {"quickstart": [], "fairkl_biased_mnist": ["--profile", "cpu"]}
SEARCHES = ("early", "none", "shipped")


def assigned(study: str, search: str) -> list[str]:
    """The search's keys."""
    trials, grace = BEFORE[study]
    rule = f"{{name: asha, grace: {grace}, reduction: 3}}" if search == "early" else "{}"
    before = ["search.sampler=tpe", f"search.trials={trials}", f"search.early_stopping={rule}"]
    return [] if search == "shipped" else before


FIGURES = {
    "epochs of the search": 1,
    "epochs of all trials": 1,
    "minutes": 1,
    "best confirmed val/accuracy, %": 2,
    "its test/accuracy, %": 2,
    "baseline val/accuracy, %": 2,
}
"""And the digits that are printed."""


def measure(home: Path, study: str, search: str, seed: int, assignments: Sequence[str]) -> dict[str, float]:
    """Run a study, unless it is there, and give its figures."""
    folder = StudyFolder(home / f"{search}-{seed}")
    given = [*assigned(study, search), f"search.seed={seed}", f"train.seed={10 * seed}", *assignments]
    command = [
        "run",
        study,
        *PROFILE[study],
        "--name",
        folder.name,
        *(part for one in given for part in ("--set", one)),
    ]
    begun = folder.ledger_file.exists()
    if not begun or StudyRecord.load(folder.ledger_file).state != "complete":
        command = [sys.executable, "-m", "study", *(["resume", folder.name] if begun else command)]
        subprocess.run(command, env={**os.environ, "STUDY_HOME": str(home)}, check=True, stdout=subprocess.DEVNULL)
    events, spec = read_entries(folder.ledger_file), folder.load_spec()
    record = StudyRecord.from_entries(events)
    found = summarise_study(Results(spec, record))
    began = next(event["time"] for event in events if event["event"] == "started")
    metrics = found.arms["best"].metrics
    shown = [metrics[spec.metric].mean, metrics[spec.test_metric].mean]
    shown.append(found.arms["baseline"].metrics[spec.metric].mean)
    epochs = [sum(trial.n_epochs for trial in record.trials_of_stages("search")), found.epochs]
    minutes = (events[-1]["time"] - began) / 60
    return dict(zip(FIGURES, [*epochs, minutes, *(100 * one for one in shown)], strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--study", choices=BEFORE, default="quickstart")
    parser.add_argument("--searches", nargs=2, choices=SEARCHES, default=["early", "none"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    given = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {search: [] for search in given.searches}
    for seed in range(given.seeds):
        for search in given.searches[:: 1 if seed % 2 else -1]:  # in turns, as the machine's load may drift
            found[search].append(measure(given.home, given.study, search, seed, given.set))
            print(search, seed, {name: round(one, 2) for name, one in found[search][-1].items()}, file=sys.stderr)
    first, second = given.searches
    print(
        f"| {given.seeds} pairs of studies, mean ± sd | {first} | {second} | difference in pairs |\n|---|---|---|---|"
    )
    for name, digits in FIGURES.items():
        values, others = ([one[name] for one in found[search]] for search in given.searches)
        columns = values, others, [one - other for one, other in zip(values, others, strict=True)]
        told = [f"{statistics.fmean(one):.{digits}f} ± {statistics.stdev(one):.{digits}f}" for one in columns]
        print(f"| {name} | {' | '.join(told)} |")


if __name__ == "__main__":
    main()
