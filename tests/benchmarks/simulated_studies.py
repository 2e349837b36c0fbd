"""What simulated studies are worth, and how large a cluster one process simulates.

    python tests/benchmarks/simulated_studies.py held-out TABLE.npz STUDY_FOLDER ... [--repeats 20]
    python tests/benchmarks/simulated_studies.py cluster [--slots 10000] [--trials 20000] [--sampler random]

held-out: for each real study its wall time and best beside those of simulated ones, over the curves of a table, of the
training seed that the study has where that was recorded. Known of the real study: how many trials ran at once, what it
took besides its epochs, and the mean seconds of its epochs; its trials' curves are not. cluster: a study of so many
trials of 20 epochs of a minute on nodes of 8 slots, each of which is taken away every 24 hours on average, with
stragglers (0.3); its curves are a formula.
"""

import argparse
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from study.home import ledger
from study.home.record import StudyRecord
from study.ranking import searched
from study.simulation import Cluster, Curve, Nodes, Table, simulate
from study.simulation.carried import load, words
from study.simulation.observed import overheads
from study.simulation.variants import summarised
from study.spec import load_study
from study.spec.load import load_resolved


def held_out(table: Table, folder: Path, repeats: int) -> None:
    """One real study beside simulated ones."""
    spec, events = load_resolved(folder / "study.yaml"), ledger.read(folder / "ledger.jsonl")
    record, seen = StudyRecord.fold(events), overheads(events)
    assert seen is not None
    trials = [one for one in record.trials.values() if one.started and one.ended and one.epochs]
    pace = sum(one.ended - one.started for one in trials if one.ended and one.started) / sum(
        one.epochs for one in trials
    )
    scaled = replace(table, seconds=table.seconds * pace / table.seconds.mean()).within(spec)
    cluster = Cluster((Nodes(slots=seen.slots, process=seen.process),), seen.begins, seen.trial, ends=seen.ends)
    count = len(scaled.seeds)
    place = list(scaled.seeds).index(spec.seed) if spec.seed in scaled.seeds else None
    numbers = range(repeats) if place is None else range(place, repeats * count, count)
    courses = [simulate(spec, scaled.course(number), cluster, number) for number in numbers]
    real = events[-1]["time"] - next(event["time"] for event in events if event["event"] == "opened")
    best = max(candidate.value for candidate in searched(record, spec))
    times, bests = [course.seconds for course in courses], [course.best[-1].value for course in courses]
    searches = sum(one.epochs for one in record.by_stage("baseline", "search"))
    print(
        f"{folder}: wall {real:.0f} s, simulated {fmean(times):.0f} s ({fmean(times) / real - 1:+.0%}); "
        f"best {best:.3f}, simulated {fmean(bests):.3f}, sd {np.std(bests, ddof=1):.3f}; epochs {searches}, simulated "
        f"{fmean(course.search[1] for course in courses):.0f}; {pace:.2f} s an epoch, {seen}",
        flush=True,
    )


class Formula:
    """Curves that rise to a value between 0.5 and 0.9, which lambda decides; an epoch takes a minute."""

    metrics = ("val/accuracy",)
    rows = None

    def curve(self, params: Mapping[str, Any], seed: int) -> Curve:
        """Twenty epochs."""
        end = 0.5 + 0.4 * np.exp(-((params["method.lambda"] - 1.0) ** 2))
        return Curve((end * (1 - 0.7 ** np.arange(1, 21)))[:, None], 60.0)

    def fresh(self, params: Mapping[str, Any], metric: str) -> float | None:
        """The last epoch's."""
        return float(self.curve(params, 0).values[-1, 0])


def cluster(slots: int, trials: int, sampler: str) -> None:
    """One study on a large cluster."""
    rule = "search.early_stopping={name: asha, grace: 4, reduction: 3}"
    given = [f"search.trials={trials}", f"search.sampler={sampler}", rule, "search.confirm={top: 0}"]
    spec = load_study("quickstart", given)
    nodes = Nodes(slots // 8, 8, start=180, process=20, preempted=1 / 24, straggling=0.3, price=2.0)
    began, used = time.perf_counter(), time.process_time()
    course = simulate(spec, Formula(), Cluster((nodes,)), 0)
    print(
        f"{slots} slots, {trials} trials, {sampler}: {time.perf_counter() - began:.0f} s of clock, "
        f"{time.process_time() - used:.0f} s of processor; study: {course.seconds / 3600:.2f} h, "
        f"{course.epochs} epochs, {course.lost} lost, {course.preempted} nodes taken away, {course.events}"
    )
    print(words(load(summarised("", spec, Cluster((nodes,)), [course]))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("held-out", "cluster"))
    parser.add_argument("paths", type=Path, nargs="*")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--slots", type=int, default=10_000)
    parser.add_argument("--trials", type=int, default=20_000)
    parser.add_argument("--sampler", default="random")
    given = parser.parse_args()
    if given.what == "cluster":
        cluster(given.slots, given.trials, given.sampler)
    else:
        for folder in given.paths[1:]:
            held_out(Table.load(given.paths[0]), folder, given.repeats)


if __name__ == "__main__":
    main()
