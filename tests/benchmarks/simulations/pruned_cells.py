"""Cells of sensitivity tables where trials were pruned, against the same trials run in full.

Simulated: a configuration decides how fast its accuracy rises and how far; each trial and each epoch has noise. Then
each is stopped as the project's own early stopping says, eight trials at a time. Recorded: the 100 configurations of
`selection_curves.npz`, trained in full on four data sets, stopped in the same way afterwards. What a cell would have
shown without early stopping is known in both.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.analysis import ablation, trials_frame
from study.analysis.statistics.trials_frame import varied_domains
from study.home.record import EpochMetrics, StudyRecord, TrialRecord
from study.ranking import Results
from study.spec import StudySpec, load_study
from study.spec.objective import TrialScore
from study.spec.optuna_distributions import distributions_of_space, value_at_unit_coordinate
from study.sweep.early_stopping import EarlyStopping

from .row import Row

Array = NDArray[np.float64]

SLOTS = 8
SPACE = (
    "search.space={method.alpha: {low: 0.001, high: 1.0, log: true}, method.lambda: {low: 0.0, high: 2.0}, "
    "method.epsilon: {choices: [0.0, 0.1, 0.25, 0.5]}, method.temperature: {low: 0.05, high: 0.5, log: true}, "
    "train.learning_rate: {low: 0.0003, high: 0.01, log: true}}"
)
RULES = {"asha": "{name: asha, grace: 3, reduction: 3}", "asha from epoch 1": "{name: asha, grace: 1, reduction: 3}"}
EPOCHS = 27
RECORDED = Path(__file__).parent.parent / "selection_curves.npz"
RECORDINGS = (
    ("mnist", "val/accuracy"),
    ("digits", "val/unbiased_accuracy"),
    ("adult", "val/worst_group_accuracy"),
    ("compas", "val/worst_group_accuracy"),
)
METRICS = {"val/accuracy": 0, "val/unbiased_accuracy": 6, "val/worst_group_accuracy": 8}
"""Columns of the recorded curves."""


@dataclass(frozen=True)
class Search:
    """A search with early stopping, and what its trials would have been worth without.

    Attributes:
        spec, record: as a study has them.
        final: (trials,) the metric at the end of a full run.
    """

    spec: StudySpec
    record: StudyRecord
    final: Array

    @property
    def full(self) -> StudyRecord:
        """The same search without early stopping."""
        return StudyRecord(
            trials={
                number: replace(trial, state="complete", reports=_reports(self.spec, [value] * self.spec.epochs))
                for (number, trial), value in zip(self.record.trials.items(), self.final, strict=True)
            }
        )


@cache
def spec_of(rule: str, epochs: int, metric: str = "val/accuracy", space: str = SPACE, more: str = "") -> StudySpec:
    settings = [
        "search.sampler=tpe",
        space,
        f"search.early_stopping={rule}",
        f"train.epochs={epochs}",
        f"search.metric={metric}",
    ]
    return load_study("fairkl_digits", [*settings, "search.baseline=null", *([more] if more else [])])


def stopped(spec: StudySpec, curves: Array, params: list[dict[str, Any]]) -> Search:
    """The search in which these trials ran, of which `curves` (trials, epochs) holds the metric in every epoch."""
    rule, epochs = EarlyStopping(spec), curves.shape[1]
    pace = np.random.default_rng(0).uniform(0.7, 1.3, len(curves))
    events = [(pace[trial], trial, 1) for trial in range(min(SLOTS, len(curves)))]
    heapq.heapify(events)
    begun, lasts = len(events), np.zeros(len(curves), int)
    sign = 1.0 if spec.mode == "max" else -1.0
    while events:
        now, trial, epoch = heapq.heappop(events)
        value = float(curves[trial, epoch - 1])
        if epoch < epochs and not rule.should_prune(trial, epoch, TrialScore((value,), (sign * value,))):
            heapq.heappush(events, (now + pace[trial], trial, epoch + 1))
            continue
        lasts[trial] = epoch
        if begun < len(curves):
            heapq.heappush(events, (now + pace[begun], begun, 1))
            begun += 1
    trials = {}
    for number, last in enumerate(lasts):
        state = "complete" if last == epochs else "pruned"
        trial = TrialRecord(number, "search", params[number], 0, state=state)
        trial.reports = _reports(spec, curves[number, :last])
        trials[number] = trial
    return Search(spec, StudyRecord(trials=trials), curves[:, -1])


def _reports(spec: StudySpec, values: Any) -> list[EpochMetrics]:
    return [EpochMetrics(epoch, {spec.metric: float(value)}) for epoch, value in enumerate(values, start=1)]


def drawn(spec: StudySpec, trials: int, generator: np.random.Generator) -> tuple[Array, list[dict[str, Any]]]:
    """Uniform coordinates (trials, parameters) in the space, and the parameters there."""
    of_space = distributions_of_space(spec.space)
    units = generator.random((trials, len(varied_domains(spec))))
    keys = list(varied_domains(spec))
    return units, [
        {key: value_at_unit_coordinate(of_space[key], one) for key, one in zip(keys, row, strict=True)} for row in units
    ]


def simulated(kind: str, rule: str, trials: int, seed: int) -> Search:
    """One of `KINDS`."""
    spec, generator = spec_of(RULES[rule], EPOCHS), np.random.default_rng((seed, trials))
    units, params = drawn(spec, trials, generator)
    alpha, lambda_, epsilon, temperature, rate = units.T
    start, pace = np.full(trials, 0.1), np.full(trials, EPOCHS / 5)
    if kind == "own ends":
        epsilon = np.floor(4 * epsilon) / 3
        end = 0.45 + 0.25 * alpha + 0.15 * np.sin(3 * lambda_) + 0.05 * epsilon - 0.3 * (rate - 0.6) ** 2
    elif kind == "many never learn":
        drive = alpha + 0.3 * lambda_ - 0.7
        start, end = np.full(trials, 0.5), np.where(drive > 0, 0.7 + 0.25 * drive + 0.05 * temperature, 0.5)
        pace = EPOCHS / 8 * np.exp(0.7 * (rate - 0.5))
    else:  # the curves cross: who learns slowly ends higher
        end = 0.5 + 0.1 * alpha + 0.1 * np.sin(3 * lambda_) + 0.25 * (1 - rate)
        pace = EPOCHS / 30 * np.exp(2.3 * (1 - rate))
    epochs = np.arange(1, EPOCHS + 1)
    rising = end[:, None] - (end - start)[:, None] * np.exp(-epochs / pace[:, None])
    own = generator.normal(0, 0.015, (trials, 1)) * (1 - np.exp(-6 * epochs / EPOCHS))
    curves = np.clip(rising + own + generator.normal(0, 0.012, rising.shape), 0.0, 1.0)
    return stopped(spec, curves, params)


def recorded(data: str, metric: str, rule: str) -> Iterator[Search]:
    """A search for each split of a data set that was recorded."""
    from selection_curves import configurations

    params = [
        {f"{'train' if key == 'learning_rate' else 'method'}.{key}": value for key, value in one.items()}
        for one in configurations()[1:]
    ]
    with np.load(RECORDED) as file:
        for name in sorted(file):
            curves = file[name][1:, :, METRICS[metric]].astype(float)
            if name.split("-")[0] == data and np.isfinite(curves).all():
                grace = rule.replace("grace: 3", "grace: 2")
                yield stopped(spec_of(grace, curves.shape[1], metric), curves, params)


def above(searches: Iterator[Search]) -> list[bool]:
    """Of each cell with pruned trials, whether the mean of its complete ones is above that of the full runs."""
    found: list[bool] = []
    for search in searches:
        frame, full = (trials_frame(Results(search.spec, record)) for record in (search.record, search.full))
        for key in varied_domains(search.spec):
            ours, truth = (ablation(one, key, search.spec.metric) for one in (frame, full))
            both = ours.assign(truth=truth["mean"])[(ours["pruned"] > 0) & (ours["n"] > 0)]
            found += (both["mean"] > both["truth"]).to_list()
    return found


KINDS = (("own ends", "asha", 100), ("many never learn", "asha", 100), ("crossing curves", "asha", 100))
"""Simulated searches: of which kind, with which rule, of how many trials."""


def rows(draws: int) -> Iterator[Row]:
    """Takes a hundredth of `draws` searches of each kind, and all that were recorded."""
    cells: dict[bool, list[bool]] = {True: [], False: []}
    for kind, rule, trials in KINDS:
        searches = (simulated(kind, rule, trials, seed) for seed in range(max(3, draws // 100)))
        cells[kind != "crossing curves"] += above(searches)
    for data, metric in RECORDINGS:
        cells[False] += above(recorded(data, metric, RULES["asha"]))
    for truth, promised, least, found in (
        ("trials that lead early end ahead", "in most cells", 0.5, cells[True]),
        ("crossing curves, and all recorded ones", "nothing", 0.0, cells[False]),
    ):
        said = "the mean of the trials that were not pruned is mostly too high"
        yield Row(said, "tables of the library", truth, promised, least, 1.0, float(np.mean(found)), len(found))
