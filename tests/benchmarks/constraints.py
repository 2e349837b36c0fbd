"""What a sampler makes of constraints by how it is told of them: the regret of its best trial that keeps them all.

    OMP_NUM_THREADS=1 python tests/benchmarks/constraints.py [--only gp tpe ...] [--told signed clipped] [--seeds 4]
        [--trials 28] [--json]

Two ranges, one metric that is smooth in them, and two constraints whose limits meet where the metric is best: the
optimum lies in the corner, and what is better misses one of the two. `signed` tells each constraint by itself, with
the room that it leaves, as a study does; `clipped` tells their violations, at least 0 each, in one sum, as studies did.
The regret is the optimum less the best trial's metric; 1 where no trial keeps both.
"""

import argparse
import json
import statistics
from typing import Any

import numpy as np

from study.spec import StudySpec, load_study
from study.spec.objective import TrialScore
from study.sweep.optuna_history import ConfigurationOutcome
from study.sweep.search_stage import UntriedSuggestions

SPACE = "{method.alpha: {low: 0.0, high: 1.0}, method.lambda: {low: 0.0, high: 1.0}}"
LIMITS = {
    "signed": "[val/equalized_odds <= 0.1, val/demographic_parity <= 0.1]",
    "clipped": "[val/equalized_odds <= 0]",
}


def metric(x: Any, y: Any) -> Any:
    """At most 1, at (0.9, 0.8)."""
    return 1 - (x - 0.9) ** 2 - (y - 0.8) ** 2


def excesses(x: Any, y: Any) -> tuple[Any, Any]:
    """By how much each constraint is missed: a circle around (0.2, 0.3), and a line."""
    return (x - 0.2) ** 2 + (y - 0.3) ** 2 - 0.25, 0.6 * x + y - 0.95


def optimum() -> float:
    """The metric in the corner: where the line meets the circle on the side of (0.9, 0.8)."""
    slope, height = -0.6, 0.95
    corner = max(np.roots([1 + slope**2, 2 * (slope * (height - 0.3) - 0.2), 0.2**2 + (height - 0.3) ** 2 - 0.25]))
    return float(metric(corner, slope * corner + height))


def study(sampler: str, told: str, seed: int) -> StudySpec:
    given = (f"search.sampler={sampler}", f"search.space={SPACE}", f"search.constraints={LIMITS[told]}")
    return load_study("fairkl_digits", [*given, "search.baseline=null", "search.trials=24", f"search.seed={seed}"])


def regret(sampler: str, told: str, seed: int, trials: int, best: float) -> float:
    search, kept = UntriedSuggestions(study(sampler, told, seed)), [best - 1]
    for number in range(trials):
        params = search.suggest_untried_params(number)
        assert params is not None
        x, y = params["method.alpha"], params["method.lambda"]
        value, missed = metric(x, y), excesses(x, y)
        if max(missed) <= 0:
            kept.append(value)
        limits = missed if told == "signed" else (sum(max(0.0, excess) for excess in missed),)
        search.history.add_outcome(ConfigurationOutcome(number, "complete", (), TrialScore((value,), (value,), limits)))
    return best - max(kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=["gp", "tpe", "random"])
    parser.add_argument("--told", nargs="*", choices=LIMITS, default=list(LIMITS))
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--trials", type=int, default=28)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    best, rows = optimum(), []
    for sampler in options.only:
        for told in options.told:
            regrets = [regret(sampler, told, seed, options.trials, best) for seed in range(options.seeds)]
            rows.append({"sampler": sampler, "told": told, "median": statistics.median(regrets), "regrets": regrets})
            if not options.json:
                each = " ".join(f"{one:.4f}" for one in regrets)
                print(f"{sampler:7} {told:8} median {rows[-1]['median']:.4f}, each {each}", flush=True)
    if options.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
