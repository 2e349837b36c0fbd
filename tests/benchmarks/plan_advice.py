"""What the advice of `study plan --simulate` is worth where the truth is known.

    python tests/benchmarks/plan_advice.py TABLE.npz ... [--seeds 6] [--near all]

A study of drawn configurations is played over a table of recorded curves. From a model of its trials a way of early
stopping is advised for the epochs of eight full trials, and then played over the table itself. A line for each table
and size of the study: studies whose model gives advice; by how much the advised way, and none, find less than the best
way, in points, mean and worst; by how much more was promised than came. `--near all`: the model's residuals are drawn
from all trials, as they were at first, in place of those that were foretold to end alike.
"""

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from study.errors import UserError
from study.simulation import Cluster, courses, simulate, surrogate
from study.simulation.advice import advise, rules
from study.simulation.simulate import Limit
from study.simulation.source import Source

BASE = ["search.sampler=random", "search.confirm={top: 0}", "search.baseline=null"]
SLOTS = Cluster.of(2)
COURSES = 24
SIZES = [(8, "none"), (12, "none"), (24, "none"), (24, "half"), (40, "none")]


def true_worth(source: Source, rule: dict[str, str | int], limit: Limit) -> float:
    """What a way finds on the table, on fresh seeds."""
    assert source.table is not None
    spec = source.spec([*BASE, f"search.early_stopping={json.dumps(rule)}", "search.trials=64"])
    played = [simulate(spec, source.table.within(spec).course(n), SLOTS, n, limit=limit) for n in range(COURSES)]
    found = [course.best[-1] for course in played if course.best]
    return fmean(step.value if step.fresh is None else step.fresh for step in found)


def measure(path: Path, seeds: int) -> None:
    """The lines of one table."""
    source = Source.of_table(path, None)
    assert source.table is not None
    spec = source.spec(BASE)
    limit, sign = Limit(epochs=8 * spec.epochs), 1.0 if spec.mode == "max" else -1.0
    worth = {json.dumps(rule): sign * true_worth(source, rule, limit) for rule in rules(spec.epochs)}
    best, none = max(worth.values()), worth[json.dumps({"name": "none"})]
    for trials, own in SIZES:
        stopping = {"name": "none"} if own == "none" else {"name": "asha", "grace": spec.epochs // 2, "reduction": 3}
        spec = source.spec([*BASE, f"search.trials={trials}", f"search.early_stopping={json.dumps(stopping)}"])
        regrets, promised = [], []
        for seed in range(seeds):
            record = simulate(spec, source.table.within(spec).course(seed), SLOTS, seed).record
            try:
                model = surrogate.surrogate(spec, record)
            except UserError:  # too few trials in full
                continue
            if model.error.is_weak:
                continue
            modelled = replace(source, table=None, model=model, recorded=spec)
            choice = advise(modelled, BASE, [SLOTS], limit, 8)[0]
            came = worth[json.dumps(choice.early_stopping)]
            regrets.append(100 * (best - came))
            promised.append(100 * (sign * choice.worth.mean - came))
        words = f"{path.stem}, {trials} trials, {own}: {len(regrets)} of {seeds} advised"
        if regrets:
            words += f"; behind the best {fmean(regrets):.2f}, worst {max(regrets):.2f}, none {100 * (best - none):.2f}"
            words += f"; promised too much {fmean(promised):+.1f}"
        print(words, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--near", choices=("like", "all"), default="like")
    given = parser.parse_args()
    courses.ALONE = math.inf  # many short ones
    if given.near == "all":
        surrogate.NEAR = 1 << 30
    for path in given.tables:
        measure(path, given.seeds)


if __name__ == "__main__":
    main()
