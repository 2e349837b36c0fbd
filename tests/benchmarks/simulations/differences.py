"""Two configurations compared: the best against the baseline, against the runner-up, and all that may be the best.

The configurations of each simulated study are truly as good as the baseline unless the row says otherwise. A seed does
the same to every configuration, as far as the row says; the rest is of its own. The best is chosen by its mean over the
very seeds that it is judged by, as in a study.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from study.analysis.report.conclusions import GainOverBaseline, conclusion_statements
from study.analysis.statistics.compare_studies import differences_to_first
from study.analysis.statistics.rivals import find_rivals
from study.home.record import EpochMetrics, StudyRecord, TrialRecord
from study.ranking import Results
from study.ranking.difference import mean_difference
from study.spec import StudySpec, load_study

from .row import Row

DEVIATION = 0.02
"""Of a configuration over seeds, as a fraction; deviations in rows are in units of it."""


@dataclass(frozen=True)
class Truth:
    """What is simulated.

    Attributes:
        top: configurations that the best is chosen from.
        seeds: of each.
        words: what else is said of it.
        gains: by how much each configuration is truly better than the baseline; 0 where none is given.
        deviations: of each configuration over seeds; 1 where none is given.
        baseline: the baseline's deviation over seeds.
        shared: correlation of configurations over seeds.
        test: the correlation of validation and test in what is of the configuration and seed alone; None: the metric
            that chose is the one that is judged.
    """

    top: int
    seeds: int
    words: str = ""
    gains: Mapping[int, float] = field(default_factory=dict)
    deviations: Mapping[int, float] = field(default_factory=dict)
    baseline: float = 1.0
    shared: float = 0.5
    test: float | None = None

    def __str__(self) -> str:
        text = f"best of {self.top}, {self.seeds} seeds" if self.top > 1 else f"one configuration, {self.seeds} seeds"
        return f"{text}; {self.words}" if self.words else text

    @property
    def gain(self) -> np.ndarray:
        """Of the baseline and each configuration, (1 + top,)."""
        return np.array([0.0, *(self.gains.get(place, 0.0) for place in range(self.top))])

    def draw(self, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """The metric that chooses and the one that is judged, each (1 + top, seeds), the baseline first."""
        scale = np.array([self.baseline, *(self.deviations.get(place, 1.0) for place in range(self.top))])[:, None]
        of_seed, own, other = (generator.normal(size=(1 + self.top, self.seeds)) for _ in range(3))
        own_test = own if self.test is None else self.test * own + (1 - self.test**2) ** 0.5 * other
        chosen, judged = (
            0.7 + DEVIATION * (self.gain[:, None] + scale * _shared(self.shared, of_seed[:1], part))
            for part in (own, own_test)
        )
        return chosen, judged


def _shared(correlation: float, of_seed: np.ndarray, own: np.ndarray) -> np.ndarray:
    return correlation**0.5 * of_seed + (1 - correlation) ** 0.5 * own


ONE = [
    Truth(1, seeds, f"correlation {shared:g}", shared=shared) for seeds, shared in ((2, 0), (3, 0.9), (5, 0), (10, 0.9))
]
CHOSEN = [
    *(Truth(top, seeds) for top, seeds in ((2, 3), (5, 3), (5, 5), (10, 5), (10, 10), (10, 2))),
    Truth(5, 3, "correlation 0.9", shared=0.9),
    Truth(5, 5, "correlation 0", shared=0.0),
    Truth(5, 3, "baseline's deviation 3 times as large", baseline=3.0),
    Truth(5, 5, "baseline's deviation a fifth", baseline=0.2),
    Truth(10, 3, "baseline's deviation a fifth", baseline=0.2),
    Truth(5, 5, "one configuration's deviation 3 times as large", deviations={0: 3.0}),
    Truth(5, 5, "test metric, correlation 0.8 with validation", test=0.8),
]
REPLICATED = [Truth(8, 3, "replicates, no fresh seed"), Truth(24, 3, "replicates, no fresh seed")]
APART = [
    *(Truth(top, seeds) for top, seeds in ((2, 3), (5, 3), (5, 5), (10, 5))),
    Truth(5, 5, "two equal ones ahead of the others", gains={0: 3.0, 1: 3.0}),
    Truth(10, 10, "the second steady, others not", gains={0: 0.6}, deviations={0: 0.1}),
    Truth(5, 5, "each better than the last", gains={place: 0.5 * place for place in range(5)}),
]


def rows(draws: int) -> Iterator[Row]:
    """Every statement of this page; the sentences take a quarter of the draws, the runner-up a fifth."""
    yield from _gains(draws)
    for truth in CHOSEN[:4]:
        yield _sentence(truth, max(draws // 4, 100))
    for truth in APART:
        yield from _sure(truth, max(draws // 5, 100))
    yield from _between(max(draws // 20, 50))


def _gains(draws: int) -> Iterator[Row]:
    """The interval of the best against the baseline, and what is said by it, where none is better."""
    for truth in [*ONE, *CHOSEN, *REPLICATED]:
        intervals = [_gain(truth, seed) for seed in range(draws)]
        better, worse = (
            float(np.mean(beyond)) for beyond in zip(*((low > 0, high < 0) for low, high in intervals), strict=True)
        )
        inside = 1 - better - worse
        where, no_better = "report, compare, card", f"no difference; {truth}"
        exact = truth.top == 1
        promised = ("95%", 0.93, 0.97) if exact else ("at least 95%", 0.95, 1.0)
        yield Row("95% interval, best - baseline", where, no_better, *promised, inside, draws)
        yield Row("better beyond the spread over seeds", "report", no_better, "at most 2.5%", 0.0, 0.03, better, draws)
        if exact or truth == CHOSEN[1]:
            yield Row(
                "worse beyond the spread over seeds", "report", no_better, "at most 2.5%", 0.0, 0.03, worse, draws
            )


def _gain(truth: Truth, seed: int) -> tuple[float, float]:
    """The interval of the best minus the baseline in one simulated study."""
    chosen, judged = truth.draw(np.random.default_rng([truth.top, truth.seeds, int(10 * truth.shared), seed]))
    best = 1 + int(chosen[1:].mean(axis=1).argmax())
    found = mean_difference(dict(enumerate(judged[best])), dict(enumerate(judged[0])), truth.top)
    assert found is not None
    assert found.interval is not None
    return found.interval


def study_of(truth: Truth, seed: int) -> tuple[StudySpec, StudyRecord]:
    """A study whose configurations are all confirmed on fresh seeds."""
    chosen, _ = truth.draw(np.random.default_rng([truth.top, truth.seeds, int(10 * truth.shared), seed]))
    return _spec(truth.top, truth.seeds), _record(chosen)


@cache
def _spec(top: int, seeds: int) -> StudySpec:
    return load_study("fairkl_digits", [f"search.confirm={{top: {top}, seeds: {seeds}}}"])


def _record(values: np.ndarray) -> StudyRecord:
    """The baseline and every configuration with one value in the search and these on the fresh seeds 1, 2, ..."""
    record = StudyRecord(id="simulated", state="complete")

    def add(stage: Any, value: float, seed: int, repeats: int | None = None) -> None:
        number = len(record.trials)
        report = EpochMetrics(1, {"val/accuracy": float(value)})
        record.trials[number] = TrialRecord(number, stage, {}, seed, repeats, state="complete", reports=[report])
        if repeats is not None:
            record._repeats_by_trial.setdefault(repeats, []).append(number)  # as the ledger's reader does

    for place in range(len(values)):
        add("search" if place else "baseline", 0.7, 0)
    for place, of_seeds in enumerate(values):
        for seed, value in enumerate(of_seeds, 1):
            add("confirm", value, seed, place)
    return record


def _sentence(truth: Truth, draws: int) -> Row:
    """The report's own statement, from a whole study."""
    said = chain.from_iterable(conclusion_statements(Results(*study_of(truth, seed))) for seed in range(draws))
    found = sum(isinstance(one, GainOverBaseline) and one.verdict == "clear" for one in said) / draws
    return Row("the report's sentence: better beyond ...", "report", f"no difference; {truth}", "at most 2.5%", 0.0,
               0.03, float(found), draws)  # fmt: skip


def _sure(truth: Truth, draws: int) -> Iterator[Row]:
    """The best against the runner-up, and whether the truly best is among those that cannot be told from the best."""
    inside, named = 0, 0
    for seed in range(draws):
        spec, record = study_of(truth, seed)
        ranked = sorted(range(1, 1 + truth.top), key=lambda number: -_mean(record, number))
        found = find_rivals(Results(spec, record))
        assert found is not None
        gap = found.difference_to_runner_up
        assert gap.interval is not None
        true = DEVIATION * float(truth.gain[ranked[0]] - truth.gain[ranked[1]])
        inside += gap.interval[0] <= true <= gap.interval[1]
        truly_best = 1 + int(truth.gain[1:].argmax())
        named += truly_best in (ranked[0], *found.undecided_trials)
    for statement, count in (("95% interval, best - runner-up", inside), ("cannot be told from the best", named)):
        yield Row(statement, "report", str(truth), "at least 95%", 0.95, 1.0, count / draws, draws)


def _between(draws: int) -> Iterator[Row]:
    """Two studies of equally good configurations, as `study compare` sets their bests against each other."""
    for truth in (Truth(5, 3), Truth(5, 5), Truth(10, 5, "correlation 0.9", shared=0.9)):
        inside = 0
        for seed in range(draws):
            spec, record = study_of(replace(truth, top=2 * truth.top + 1), seed)
            kept = {name: _only(record, first, truth.top) for name, first in (("one", 0), ("two", truth.top + 1))}
            one, two = (Results(replace(_spec(truth.top, truth.seeds), name=name), kept[name]) for name in kept)
            gap = differences_to_first(one, two)[spec.metric]
            inside += gap.interval is not None and gap.interval[0] <= 0 <= gap.interval[1]
        said = f"no difference; {truth}, in each of two studies"
        yield Row("95% interval, best - best of another study", "compare", said, "at least 95%", 0.95, 1.0,
                  inside / draws, draws)  # fmt: skip


def _only(record: StudyRecord, first: int, top: int) -> StudyRecord:
    """A study of a baseline and `top` configurations of another one, which begin with number `first`."""
    values = [
        [trial.reports[-1]["val/accuracy"] for trial in record.repeat_trials(number)]
        for number in range(first, first + top + 1)
    ]
    return _record(np.array(values, float))


def _mean(record: StudyRecord, number: int) -> float:
    values = [trial.reports[-1]["val/accuracy"] for trial in record.repeat_trials(number)]
    return float(np.mean([value for value in values if value is not None]))
