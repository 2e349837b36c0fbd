"""The front of a study with several metrics: on the validation split, and beside it on the test split."""

import pandas as pd

from study import ranking
from study.analysis.statistics import formatting
from study.analysis.statistics.difference import Side, side_of
from study.analysis.statistics.frame import param_keys, shown
from study.home.record import StudyRecord
from study.spec import StudySpec
from study.spec.objective import Objective, front


def printed_front(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """The front of the search, the best in the first metric first; empty with one metric.

    Columns: the trial; each metric in the search; on test, over the seeds on which it was read; whether it is on the
    front on test of those whose test was read, too; the parameters.
    """
    if len(spec.objective.metrics) < 2:
        return pd.DataFrame()
    found = ranking.front(record, spec)
    keys, tests = param_keys(spec, record.trials.values()), _tests(spec)
    sides = [side_of(spec, candidate) for candidate in found]
    on_test = _on_test(spec, sides)
    rows = []
    for candidate, side in zip(found, sides, strict=True):
        is_baseline = candidate.trial.stage == "baseline"
        row = {"trial": f"{candidate.trial.number} (baseline)" if is_baseline else str(candidate.trial.number)}
        row |= {
            name: formatting.value(name, value)
            for name, value in zip(spec.objective.metrics, candidate.score.values, strict=True)
        }
        row |= {name: formatting.mean(name, side.spread(name)) for name in tests}
        row["on the front on test"] = on_test.get(side.number, "not read")
        rows.append(row | {key: shown(spec, candidate.trial, key) for key in keys})
    return pd.DataFrame(rows)


def front_note(spec: StudySpec, record: StudyRecord) -> str:
    """What the table's columns are, and for how many of the front test was read."""
    sides = [side_of(spec, candidate) for candidate in ranking.front(record, spec)]
    read = len(_on_test(spec, sides))
    limits = f", of those that keep {', '.join(spec.search.constraints)}" if spec.search.constraints else ""
    note = f"No other configuration beats one of these in every metric on the validation split{limits}."
    note += " Nothing is chosen on test."
    if read == len(sides):
        return f"{note} The last column says which of these are a front on test, too."
    return (
        f"{note} Test was read for {read} of {len(sides)}: which are a front there is said among these alone. study "
        f"confirm {spec.name} --top K reads it for more."
        if read
        else f"{note} Test was read for none of them, so the front on test is not known."
    )


def _tests(spec: StudySpec) -> list[str]:
    return [f"test/{name.split('/')[1]}" for name in spec.objective.metrics]


def _on_test(spec: StudySpec, sides: list[Side]) -> dict[int, str]:
    """Which configurations whose test was read are on its front, by trial: yes or no."""
    goal = Objective(tuple(_tests(spec)), spec.objective.modes)
    scores = {}
    for side in sides:
        spreads = {name: side.spread(name) for name in goal.metrics}
        if score := goal.score({name: spread.mean for name, spread in spreads.items() if spread}):
            scores[side.number] = score
    places = front(list(scores.values()))
    return {number: "yes" if place in places else "no" for place, number in enumerate(scores)}
