"""What a suggestion costs: the driver's time per trial (ask and tell) after so many trials, and the replay of those.

    OMP_NUM_THREADS=1 python tests/benchmarks/samplers.py [--only tpe ...] [--trials 100 ...] [--metrics 2] [--json]

Six ranges, COUNT trials at a time, of which every other is pruned. The history is random, and taken in as that
of a resumed study is; then each sampler suggests and hears of ASKED trials more. "replay" is the time to take in the
history, in seconds. "cpu" is the median of the process's own time, which others on the machine disturb less.
"""

import argparse
import json
import statistics
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np

from study.spec import StudySpec, load_study
from study.spec.objective import TrialScore
from study.sweep.optuna_history import ConfigurationOutcome
from study.sweep.search_stage import UntriedSuggestions

EPOCHS, COUNT, ASKED = 20, 4, 30
SPACE = {
    "method.alpha": "{low: 0.001, high: 1.0, log: true}",
    "method.lambda": "{low: 0.0, high: 2.0}",
    "method.epsilon": "{low: 0.0, high: 1.0}",
    "method.temperature": "{low: 0.07, high: 1.0}",
    "train.learning_rate": "{low: 1.0e-5, high: 0.1, log: true}",
    "train.weight_decay": "{low: 1.0e-6, high: 0.01, log: true}",
}


def study(sampler: str, metrics: int) -> StudySpec:
    space = ", ".join(f"{key}: {domain}" for key, domain in SPACE.items())
    metric = ["val/accuracy", "[val/accuracy, val/equalized_odds]"][metrics - 1]
    given = (f"search.sampler={sampler}", f"search.metric={metric}", f"search.space={{{space}}}")
    return load_study("fairkl_digits", [*given, "search.baseline=null", "search.trials=100000"])


def told(spec: StudySpec, number: int, params: dict[str, Any], noise: np.random.Generator) -> ConfigurationOutcome:
    """A trial whose metrics are smooth in its parameters, with noise."""
    accuracy = float(np.exp(-((params["method.lambda"] - 1) ** 2) - np.log10(params["method.alpha"] * 10) ** 2))
    pruned = number % 2 == 1
    course = []
    for epoch in range(1, (EPOCHS // 4 if pruned else EPOCHS) + 1):
        share = epoch / EPOCHS
        odds = accuracy * params["method.epsilon"]
        report = {"val/accuracy": accuracy * share + noise.normal() / 50, "val/equalized_odds": odds * share}
        course.append((epoch, spec.objective.score_of_report(report)))
    scored = [(epoch, score) for epoch, score in course if score is not None]
    last: TrialScore = scored[-1][1]
    return ConfigurationOutcome(number, "pruned" if pruned else "complete", scored, None if pruned else last)


def history(spec: StudySpec, trials: int) -> Iterator[tuple[int, dict[str, Any], ConfigurationOutcome]]:
    noise, draw = np.random.default_rng(0), UntriedSuggestions(study("random", 1))
    for number in range(trials):
        params = draw.suggest_untried_params(number)
        assert params is not None
        yield number, params, told(spec, number, params, noise)


def measure(name: str, trials: int, metrics: int) -> dict[str, Any]:
    spec = study(name, metrics)
    past, sampler, noise = list(history(spec, trials)), UntriedSuggestions(spec), np.random.default_rng(1)
    began = time.perf_counter()
    for number, params, end in past:
        sampler.add_decided_params(number, params)
        sampler.history.add_outcome(end)
    replay, spent, worked, running = time.perf_counter() - began, [], [], deque[ConfigurationOutcome]()
    for number in range(trials, trials + ASKED + COUNT):
        began, worked_before = time.perf_counter(), time.process_time()
        if len(running) == COUNT:
            sampler.history.add_outcome(running.popleft())
        params = sampler.suggest_untried_params(number)
        spent.append(1000 * (time.perf_counter() - began))
        worked.append(1000 * (time.process_time() - worked_before))
        assert params is not None
        running.append(told(spec, number, params, noise))
    row = {"sampler": name, "trials": trials, "replay": replay, "cpu": statistics.median(worked[COUNT:])}
    return row | {"median": statistics.median(spent[COUNT:]), "worst": max(spent[COUNT:])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=["random", "qmc", "tpe", "gp"])
    parser.add_argument("--trials", nargs="*", type=int, default=[100, 1_000, 3_000, 10_000])
    parser.add_argument("--metrics", type=int, choices=[1, 2], default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    shown = "{sampler:7} {trials:6} cpu {cpu:6.1f} median {median:6.1f} worst {worst:6.1f} ms, replay {replay:4.1f} s"
    rows = []
    for name in options.only:
        for trials in options.trials:
            rows.append(measure(name, trials, options.metrics))
            if not options.json:
                print(shown.format(**rows[-1]), flush=True)
    if options.json:
        print(json.dumps(rows))


if __name__ == "__main__":
    main()
