"""Is it enough: whether as many trials again gain no more than is said, and how often a search ends by it wrongly.

Searches are simulated for twice the trials after which the statement is made, so that what more search gains is known.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.ranking.remaining_gain import SoFar
from study.spec import StudySpec, load_study
from study.spec.objective import Score
from study.sweep.early_stopping import early_stopping
from study.sweep.history import TrialEnd
from study.sweep.search_stage import SuggestionSource

from .row import Row

Floats = NDArray[np.float64]

RECORDED = Path(__file__).parents[1] / "selection_curves.npz"
RECORDED_COLUMNS = {"val/accuracy": 0, "val/balanced_accuracy": 2, "val/unbiased_accuracy": 6}
"""Of `selection_curves.COLUMNS`."""

STATEMENT = "more search of this kind gains at most x with 95%"
ENDS = "search.stop: as many trials again gain at most `gain`"
WHERE = "report, status, card"


def rows(draws: int) -> Iterator[Row]:
    """500 searches a row at most; of the software's own sampler a twentieth of the draws."""
    count = min(draws, 500)
    generator = np.random.default_rng(19)
    for name, values in independent(generator, count, 200).items():
        for trials in (10, 24, 100):
            yield statement(f"random search, {name}, {trials} trials", values[:, : 2 * trials])
    for name, values in independent(generator, count, 200).items():
        for gain in GAINS[name]:
            yield ending(f"random search, {name}", values, gain)
    yield statement(
        "recorded configurations of digits, MNIST, COMPAS, Adult; 24 trials", recorded(generator, count, 48)
    )
    yield statement("recorded configurations, 50 trials", recorded(generator, count, 100))
    for gain in (0.02, 0.05):
        yield ending("recorded configurations", recorded(generator, count, 100), gain)
    yield needle(generator, count)
    searches = max(20, min(draws // 20, 500))
    for options in SEARCHES:
        found = [search(options, seed, 60) for seed in range(searches)]
        values, true = (np.array([one[place] for one in found]) for place in (0, 1))
        yield statement(f"{options}, 30 trials", values)
        yield statement(f"{options}, 30 trials, the gain in the true value", values, true)


def independent(generator: np.random.Generator, draws: int, trials: int) -> dict[str, Floats]:
    """(draws, trials) values of independent draws, by name."""

    def bowl(params: int, noise: float) -> Floats:
        best = generator.uniform(0.2, 0.8, (draws, 1, params))
        heights = 0.9 - 0.6 * ((generator.random((draws, trials, params)) - best) ** 2).sum(-1)
        return heights + generator.normal(0, noise, (draws, trials))

    half_bad = np.where(generator.random((draws, trials)) < 0.5, 0.3, 0.85)
    values = {
        "2 parameters, seed noise 0.3 points": bowl(2, 0.003),
        "3 parameters, seed noise 1 point": bowl(3, 0.01),
        "4 parameters, no noise": bowl(4, 0.0),
        "half the space bad, seed noise 1 point": half_bad + generator.normal(0, 0.01, (draws, trials)),
        "an exponential tail": 0.6 + generator.exponential(0.02, (draws, trials)),
        "normal values, sd 2 points": generator.normal(0.8, 0.02, (draws, trials)),
    }
    ties = np.round(generator.normal(0.8, 0.02, (draws, trials)) * 50) / 50
    return {name: np.clip(each, 0, 1) for name, each in {**values, "accuracies on 50 samples": ties}.items()}


GAINS = {
    "2 parameters, seed noise 0.3 points": (0.05, 0.1),
    "3 parameters, seed noise 1 point": (0.1, 0.15),
    "4 parameters, no noise": (0.1, 0.15),
    "half the space bad, seed noise 1 point": (0.03, 0.05),
    "an exponential tail": (0.04, 0.06),
    "normal values, sd 2 points": (0.03, 0.05),
    "accuracies on 50 samples": (0.04, 0.06),
}
"""What `search.stop` asks for: a gain at which few searches end, and one at which many do."""


def recorded(generator: np.random.Generator, draws: int, trials: int) -> Floats:
    """(draws, trials): configurations of a recorded data set in a random order, each once; by rules in turn."""
    with np.load(RECORDED) as file:
        sets = [file[key][1:, -1].astype(float) for key in file.files]
    columns = list(RECORDED_COLUMNS.values())
    found = []
    for draw in range(draws):
        values = np.nan_to_num(sets[draw % len(sets)][:, columns[draw % len(columns)]], nan=0.0)
        found.append(generator.permutation(values)[:trials])
    return np.array(found)


def needle(generator: np.random.Generator, draws: int) -> Row:
    """What no statement of this kind can know."""
    bad = generator.random((draws, 48)) < 0.97
    row = statement(
        "3% of the space 5 points better, 24 trials", np.where(bad, 0.8, 0.85) + noise(generator, bad.shape)
    )
    return Row(row.statement, row.where, row.truth, "nothing: the search has not met it", 0, 1, row.found, row.draws)


def noise(generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Of half a point."""
    return generator.normal(0, 0.005, shape)


def statement(name: str, values: Floats, true: Floats | None = None) -> Row:
    """How often the second half of each search gains no more than is said after the first, where something is said.

    Args:
        values: (searches, trials); -inf of a trial that early stopping ended.
        true: the same without noise, if the gain is that of the configuration that is best by `values`.
    """
    half, right, count = values.shape[1] // 2, 0, 0
    for place, search in enumerate(values):
        so_far = told(search[:half])
        if so_far.lacks(RANDOM):
            continue
        said = so_far.gain(RANDOM, 0.95, checked_often=False)
        count += 1
        worth = search if true is None else true[place]
        right += worth[search.argmax()] - worth[search[:half].argmax()] <= said + 1e-9
    return Row(STATEMENT, WHERE, name, "at least 95%", 0.95, 1.0, right / count, count)


def ending(name: str, values: Floats, gain: float, least: int = 20) -> Row:
    """How many of the searches, asked after each trial, end although as many trials again would gain more."""
    wrong = ended = 0
    for search in values:
        for count in range(least, len(search) // 2 + 1):
            if told(search[:count]).gain(RANDOM, 0.95, checked_often=True) <= gain:
                ended += 1
                wrong += search[: 2 * count].max() - search[:count].max() > gain + 1e-9
                break
    shown = f"{name}, gain {gain:g}; it ended {100 * ended / len(values):.0f}% of the searches"
    return Row(f"{ENDS}: wrong", "run", shown, "at most 5%", 0, 0.05, wrong / len(values), len(values))


def told(values: Floats) -> SoFar:
    """A search of these trials."""
    return SoFar([float(value) for value in values if math.isfinite(value)], -math.inf, len(values))


RANDOM = load_study("fairkl_digits", ["search.sampler=random", "search.trials=24"])
SEARCHES = {
    "TPE on the quickstart's space, seed noise 1 point": ("tpe", "none"),
    "TPE with ASHA on the quickstart's space, seed noise 1 point": ("tpe", "asha"),
    "random search with ASHA on the quickstart's space, seed noise 1 point": ("random", "asha"),
    "Sobol points on the quickstart's space, seed noise 1 point": ("qmc", "none"),
}
"""Sampler and early stopping."""


def search(name: str, seed: int, trials: int) -> tuple[Floats, Floats]:
    """(trials,) values, -inf where pruned, and the same without noise, of the software's own search, one trial at a
    time."""
    sampler_name, stopping = SEARCHES[name]
    rule = f"search.early_stopping={{name: {stopping}, grace: 4, reduction: 3}}"
    given = [f"search.seed={seed}", f"search.sampler={sampler_name}", rule]
    spec = load_study("fairkl_digits", [*given, f"search.trials={trials}"])
    generator, sampler, rule = np.random.default_rng(seed), SuggestionSource(spec), early_stopping(spec)
    best = generator.uniform(0.3, 0.7, 2)
    values, true = np.full(trials, -math.inf), np.full(trials, -math.inf)
    for number in range(trials):
        params = sampler.ask(number)
        assert params is not None
        height = surface(params, best)
        course, state = _course(
            spec, height, generator, lambda epoch, score, n=number: rule.should_prune(n, epoch, score)
        )
        sampler.tell(TrialEnd(number, state, course, course[-1][1] if state == "complete" else None))
        if state == "complete":
            values[number], true[number] = course[-1][1].values[0], height
    return values, true


def surface(params: Mapping[str, Any], best: Floats) -> float:
    """The true value of a configuration: a ridge in alpha and lambda, and a cliff, as of a loss that diverges."""
    alpha, weight = math.log10(params["method.alpha"]) / 3 + 1, params["method.lambda"] / 2
    smooth = 0.85 - 0.5 * (alpha - best[0]) ** 2 - 0.2 * (weight - best[1]) ** 2 - 0.3 * (alpha - weight) ** 2
    margin = {0.0: 0.0, 0.1: 0.01, 0.25: 0.02, 0.5: -0.03}[params["method.epsilon"]]
    return float(smooth + margin if alpha < 0.9 else 0.2)


def _course(
    spec: StudySpec, height: float, generator: np.random.Generator, prunes: Callable[[int, Score], bool]
) -> tuple[list[tuple[int, Score]], Any]:
    """A trial's scores by epoch, and how it ended."""
    course: list[tuple[int, Score]] = []
    for epoch in range(1, spec.epochs + 1):
        value = height * (1 - 0.6 * math.exp(-epoch / 4)) + generator.normal(0, 0.01)
        course.append((epoch, Score((value,), (value,))))
        if epoch < spec.epochs and prunes(epoch, course[-1][1]):
            return course, "pruned"
    return course, "complete"
