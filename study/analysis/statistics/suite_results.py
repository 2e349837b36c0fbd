"""What the searches of a suite gave: the test metric of each rule's pick, by method, data set, search and seed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import fmean

from study import ranking
from study.home.record import StudyRecord
from study.ranking.picks import fresh_trials, picks
from study.spec import StudySpec
from study.spec.suite import Suite, SuiteSearch

Place = tuple[str, str]
"""A method and a data set, by their labels."""

Found = Callable[[SuiteSearch], tuple[StudySpec, StudyRecord] | None]
"""Gives the study of a search, None where it has not begun."""

NOT_YET = "not yet"
FAILED = "failed"
NO_RULE = "lacks what the rule needs"
UNREAD = "no test value"
BEYOND = "searched beyond the budget"


@dataclass
class Results:
    """What one rule picked.

    Attributes:
        values: by place and number of the search the judge's value on each fresh seed.
        missing: by place why searches have none, and how many.
    """

    values: dict[Place, dict[int, dict[int, float]]] = field(default_factory=dict)
    missing: dict[Place, dict[str, int]] = field(default_factory=dict)

    def means(self, place: Place) -> dict[int, float]:
        """The mean over fresh seeds of each search of a place."""
        return {number: fmean(by_seed.values()) for number, by_seed in self.values.get(place, {}).items()}


@dataclass(frozen=True)
class Spent:
    """What the searches of a method took: epochs and seconds of trials, those on fresh seeds included."""

    epochs: int
    seconds: float


def results(suite: Suite, found: Found) -> tuple[dict[str, Results], dict[str, Spent], dict[str, int]]:
    """The results of every rule, what each method took, and how many searches are in which state."""
    by_rule = {rule: Results() for rule in suite.rules}
    epochs, seconds = dict.fromkeys(suite.methods, 0), dict.fromkeys(suite.methods, 0.0)
    states: dict[str, int] = {}
    for cell in suite.cells:
        study = found(cell)
        state = study[1].state if study else NOT_YET
        states[state] = states.get(state, 0) + 1
        if study:
            epochs[cell.method] += sum(trial.epochs for trial in study[1].trials.values())
            seconds[cell.method] += study[1].busy
        for rule, values in _values(suite, cell, study).items():
            place = cell.method, cell.data
            if isinstance(values, str):
                reasons = by_rule[rule].missing.setdefault(place, {})
                reasons[values] = reasons.get(values, 0) + 1
            else:
                by_rule[rule].values.setdefault(place, {})[cell.number] = values
    return by_rule, {method: Spent(epochs[method], seconds[method]) for method in suite.methods}, states


def _values(
    suite: Suite, cell: SuiteSearch, study: tuple[StudySpec, StudyRecord] | None
) -> Mapping[str, dict[int, float] | str]:
    """By rule the judge's values by seed, or why there are none: a search counts once all of it is over."""
    if study is None or study[1].state != "complete":
        failed = study is not None and study[1].state == "failed"
        reason = FAILED if failed else NOT_YET
        possible = {rule: suite.possible(rule, (cell.method, cell.data)) for rule in suite.rules}
        return {rule: reason if possible[rule] else NO_RULE for rule in suite.rules}
    spec, record = study
    if record.limit(spec.trials) != spec.trials:
        return dict.fromkeys(suite.rules, BEYOND)
    with ranking.ranked_once(record):
        picked = {pick.rule.name: pick for pick in picks(record, spec)}
    found: dict[str, dict[int, float] | str] = {}
    for rule in suite.rules:
        if rule not in picked:
            found[rule] = NO_RULE
            continue
        tested = {trial.seed: trial.tested.get(suite.judge) for trial in fresh_trials(record, picked[rule].number)}
        found[rule] = {seed: value for seed, value in tested.items() if value is not None} or UNREAD
    return found
