"""What the lead of a report says beside the gain: the edge of a range, when the best came, which rung it survived, how
many seeds would tell, how far a value may be off.

Each row asks the software's own functions about simulated studies whose truth is known.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from study.analysis.statistics.debiasing_metrics import sampling_standard_error
from study.analysis.statistics.next_step import MIN_RELEVANT_SHARE_OF_GAIN, position_of_best
from study.analysis.statistics.range_edges import find_range_edges
from study.analysis.statistics.rivals import find_rivals
from study.analysis.statistics.seeds_needed import (
    MAX_SEEDS_NEEDED,
    TARGET_POWER,
    detection_power,
    estimate_seeds_needed,
)
from study.home.events import GroupSampleCounts
from study.ranking import Results
from study.ranking.arms import Arm
from study.ranking.difference import Difference, mean_difference
from study.spec import StudySpec

from .row import Row

sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from helpers import Told, quickstart, record

Floats = NDArray[np.float64]

RANGES = (
    "method.alpha: {low: 0.001, high: 1.0, log: true}",
    "method.lambda: {low: 0.1, high: 2.0}",
    "method.temperature: {low: 0.05, high: 1.0}",
    "train.learning_rate: {low: 0.0001, high: 0.1, log: true}",
)
EDGE = "the best lies at the end of its range: search beyond"
LEAD = "report, status, run"


def rows(draws: int) -> Iterator[Row]:
    """Rows of whole studies take a quarter of the draws."""
    rng, fewer = np.random.default_rng(7), max(20, draws // 4)
    yield from seeds(draws, rng, SEEDS)
    yield from following(draws, rng)
    yield from little_beside_the_gain(draws, np.random.default_rng(8))
    for params, trials in ((1, 12), (2, 24), (4, 24), (4, 60)):
        yield false_alarms(params, trials, fewer, rng)
    yield hits(fewer, rng)
    yield nothing_better(max(20, draws // 20), rng)
    yield more_trials(fewer, rng)
    for configurations, number in ((2, 3), (5, 3), (5, 5)):
        yield the_best(configurations, number, fewer, rng)
    yield split_error(draws, rng)


def seeds(draws: int, rng: np.random.Generator, of: Sequence[tuple[int, float, int]]) -> Iterator[Row]:
    """The range against the true number of seeds, wherever it is said.

    Args:
        of: seeds that were run, true difference in standard deviations, from how many the best was chosen.
    """
    for pilot, size, among in of:
        gains = rng.normal(size, 1.0, (draws, among, pilot))
        found = [_gap(gain[gain.mean(1).argmax()], among) for gain in gains]
        open_ones = [gap for gap in found if gap.is_clear is False and gap.value > 0]
        least = next(
            (n for n in range(pilot + 1, MAX_SEEDS_NEEDED + 1) if detection_power(size, n, among) >= TARGET_POWER),
            MAX_SEEDS_NEEDED + 1,
        )
        inside = []
        for gap in open_ones:
            needed = estimate_seeds_needed(gap, pilot)
            low, high = ((end or MAX_SEEDS_NEEDED + 1) for end in (needed.fewest, needed.most))
            inside.append(low <= least <= high)
        truth = f"true difference {size:g} sd of the paired differences; {pilot} seeds; the best of {among}"
        yield row(LEAD, "between A and B seeds", truth, "holds the true number in at least 90%", 0.9, 1.0, inside)


SEEDS = [
    *((pilot, size, 1) for pilot, sizes in ((2, 4), (3, 4), (5, 3), (10, 2)) for size in (0.7, 1.0, 1.5, 2.5)[:sizes]),
    *((pilot, size, among) for pilot in (3, 5) for size in (0.0, 1.5) for among in (2, 5)),
]


def following(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    """What comes of running as many seeds as are proposed, step by step."""
    statement = "N is a good next step: whoever follows is told which is better"
    for size, least in ((1.0, 0.5), (1.5, 0.8), (2.5, 0.95)):
        ends = [_followed(rng.normal(size, 1.0, MAX_SEEDS_NEEDED)) is True for _ in range(draws)]
        truth = f"true difference {size:g} sd of the paired differences; from 3 seeds on"
        yield row(LEAD, statement, truth, f"in at least {least:.0%}", least, 1.0, ends)
    ends = [_followed(rng.normal(0.0, 1.0, MAX_SEEDS_NEEDED)) is not None for _ in range(draws)]
    truth = "no difference; from 3 seeds on, looked at after each step"
    yield row(LEAD, "N is a good next step: two are told apart", truth, "in at most 10%", 0.0, 0.1, ends)


def little_beside_the_gain(draws: int, rng: np.random.Generator) -> Iterator[Row]:
    """The end of the interval against the true difference, wherever two need not be told apart.

    That is said of best and runner-up, and of the best and the cheapest of a front that is as near: here the nearest,
    and one of the near at random, whose cost knows nothing of the metric.
    """
    for among, number, apart in ((2, 3, 0.5), (5, 3, 0.5), (5, 5, 1.0), (5, 5, 2.0), (10, 3, 0.5)):
        gain, inside = 40.0, dict[str, list[bool]](runner_up=[], cheaper=[])
        for _ in range(draws):
            truth = rng.normal(0.0, apart, among)
            values = truth[:, None] + rng.normal(size=(among, number))
            order = values.mean(1).argsort()[::-1].tolist()
            gaps = {other: _gap(values[order[0]] - values[other], among) for other in order[1:]}
            near = [
                other
                for other, gap in gaps.items()
                if gap.interval
                and gap.is_clear is False
                and max(map(abs, gap.interval)) < MIN_RELEVANT_SHARE_OF_GAIN * gain
            ]
            said = {"cheaper": rng.choice(near)} if near else {}
            said |= {"runner_up": order[1]} if order[1] in near else {}
            for kind, other in said.items():
                reach = max(map(abs, gaps[other].interval or ()))
                inside[kind].append(bool(abs(truth[order[0]] - truth[other]) <= reach))
        words = f"true means {apart:g} sd apart, gain {gain:g} sd; best of {among}, {number} seeds"
        for kind, statement in (("runner_up", "not told apart, and need not be"), ("cheaper", "consider trial N")):
            promise = "the true difference is within the end of the interval in 95%"
            yield row(LEAD, statement, words, promise, 0.95, 1.0, inside[kind])


def _gap(values: Floats, among: int = 1) -> Difference:
    gap = mean_difference(dict(enumerate(values.tolist())), dict.fromkeys(range(len(values)), 0.0), among)
    assert gap is not None
    return gap


def _followed(values: Floats) -> bool | None:
    """Whether the first is told to be better, after as many steps as are proposed; None: they end before."""
    ran = 3
    while True:
        gap = _gap(values[:ran])
        if gap.is_clear:
            return gap.value > 0
        needed = estimate_seeds_needed(gap, ran)
        if needed.middle is None or ran == MAX_SEEDS_NEEDED:
            return None
        ran = needed.next_batch


def row(where: str, statement: str, truth: str, nominal: str, low: float, high: float, found: Sequence[bool]) -> Row:
    return Row(statement, where, truth, nominal, low, high, float(np.mean(found)), len(found))


def searched(params: int) -> StudySpec:
    """A random search of so many ranges."""
    return quickstart(
        f"search.space={{{', '.join(RANGES[:params])}}}",
        "search.baseline=null",
        "search.sampler=random",
        "search.early_stopping={name: none}",
        "search.confirm={top: 0}",
        "train.epochs=1",
    )


def search(spec: StudySpec, trials: int, height: Callable[[Floats], Floats], rng: np.random.Generator) -> list[Told]:
    """Trials at random places, (N, parameters) in [0, 1]; their values have a noise of 0.02 over their heights."""
    places = rng.random((trials, len(spec.search.space)))
    values = 0.5 + height(places) + rng.normal(0, 0.02, trials)
    told = []
    for place, value in zip(places, values.tolist(), strict=True):
        params = {}
        for (key, domain), at in zip(spec.search.space.items(), place.tolist(), strict=True):
            assert domain.low is not None
            assert domain.high is not None
            width = domain.high / domain.low if domain.log else domain.high - domain.low
            params[key] = domain.low * width**at if domain.log else domain.low + at * width
        told.append(Told("search", [value], params=params))
    return told


def flat(places: Floats) -> Floats:
    return np.zeros(len(places))


def false_alarms(params: int, trials: int, draws: int, rng: np.random.Generator) -> Row:
    spec = searched(params)
    named = [bool(find_range_edges(Results(spec, record(*search(spec, trials, flat, rng))))) for _ in range(draws)]
    truth = f"no parameter matters; random search, {params} ranges, {trials} trials"
    return row(LEAD, EDGE, truth, "at most 5%", 0.0, 0.05, named)


def hits(draws: int, rng: np.random.Generator) -> Row:
    spec = searched(2)
    found = [
        any((edge.key, edge.end) == ("method.alpha", "high") for edge in find_range_edges(Results(spec, record(*told))))
        for told in (search(spec, 60, lambda places: 0.15 * places[:, 0], rng) for _ in range(draws))
    ]
    truth = "the value rises by 7.5 sd of the noise along one of 2 ranges; random search, 60 trials"
    return row(LEAD, EDGE, truth, "found in at least a third", 1 / 3, 1.0, found)


def nothing_better(draws: int, rng: np.random.Generator) -> Row:
    """Against the values themselves."""
    spec, right = searched(1), []
    for _ in range(draws):
        told = search(spec, int(rng.integers(2, 30)), flat, rng)
        values = [one.values[0] or 0.0 for one in told]
        when = position_of_best(Results(spec, record(*told)))
        right.append(when is not None and (when.place, when.of) == (int(np.argmax(values)) + 1, len(values)))
    statement = "the best came as the k-th of n"
    return row(LEAD, statement, "2 to 29 trials", "always", 1.0, 1.0, right)


def more_trials(draws: int, rng: np.random.Generator) -> Row:
    """Half as many trials again, after searches whose best came in their last quarter."""
    spec, better = searched(2), []
    while len(better) < draws:
        told = search(spec, 36, lambda places: -0.6 * ((places - 0.4) ** 2).sum(1), rng)
        when = position_of_best(Results(spec, record(*told[:24])))
        if when is not None and when.is_late:
            values = [one.values[0] or 0.0 for one in told]
            better.append(max(values[24:]) > max(values[:24]))
    truth = "random search, 24 trials, the best among the last 6; 12 more trials"
    return row(LEAD, "the best came late: more may be better", truth, "1 in 3, as after any search", 0.28, 0.39, better)


def the_best(configurations: int, number: int, draws: int, rng: np.random.Generator) -> Row:
    """All alike but for the seeds and the first, which is truly better, but by less than anybody can see."""
    spec = quickstart(
        "train.epochs=1",
        "search.early_stopping={name: none}",
        f"search.confirm={{top: {configurations}, seeds: {number}}}",
    )
    called = []
    for _ in range(draws):
        shared = rng.normal(0, 0.03, number)
        told = [Told("baseline", [0.3]), *(Told("search", [0.5 + place / 1000]) for place in range(configurations))]
        for place in range(configurations + 1):
            level = 0.3 if place == 0 else 0.6
            values = (level + shared + rng.normal(0, 0.01, number)).tolist()
            told += [Told("confirm", [one], seed=seed, repeats=place) for seed, one in enumerate(values, 1)]
        found = find_rivals(Results(spec, record(*told)))
        called.append(found is not None and not found.undecided_trials and found.best.trial_number != 1)
    truth = f"{configurations} configurations, another better by next to nothing; {number} seeds"
    statement = "trial k is the best of those that ran on n seeds (95% confidence over seeds)"
    return row(LEAD, statement, truth, "at most 5%", 0.0, 0.05, called)


def split_error(draws: int, rng: np.random.Generator) -> Row:
    """How often the true accuracy lies within two of them."""
    spec, cells = quickstart(), [[300, 60], [40, 300]]
    told = record(Told("final", [0.5]))
    told.group_sample_counts = GroupSampleCounts({"test": cells}, aligned_cells=[[True, False], [False, True]])
    true, inside = 0.8, []
    for right in rng.binomial(100, true, draws):
        told.trials[0].test_metrics = {"test/conflicting_accuracy": right / 100}
        side = Arm("final training", 0, [told.trials[0]], spec)
        error = sampling_standard_error(told, side, "test/conflicting_accuracy")
        assert error is not None
        inside.append(abs(right / 100 - true) <= 1.96 * error)
    truth = "100 conflicting samples of the test split, accuracy 80%"
    return row("report", "split's error: the value ± 1.96 of it", truth, "92% to 97%", 0.92, 0.97, inside)
