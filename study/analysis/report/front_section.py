"""What the report says of the front of a study with several metrics: its sentences, its table, and what stands below.

The front is that of `Results.front`, and every value of it here is the one that it was judged by.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from study.analysis.report.page import Picture, Section, Table, Text
from study.analysis.statistics import formatting
from study.analysis.statistics.frame import numbered, param_keys, shown
from study.ranking import Candidate, Results
from study.ranking.difference import Side, side_of
from study.spec import StudySpec, objective
from study.spec.objective import Objective, Score

if TYPE_CHECKING:
    import pandas as pd

MAX_TOLD_CONFIGURATIONS = 5
"""Configurations of a front whose values the sentences give; of a larger one the table does."""


def front_result(results: Results) -> Iterator[str]:
    """Yield what is on the front, which of it was chosen by which rule, and how that differs from the baseline."""
    spec = results.spec
    front, best = results.front, results.ranked[0]
    judged = results.judged
    where = _where(spec, front, len(judged))
    (_, first), chosen = front[0], _name(best)
    if first.violation > 0:
        limits = " and ".join(map(str, spec.objective.constraints))
        least = f"{chosen} misses by least, {first.violation:.4g}"
        yield f"No configuration keeps {limits}, so that there is no front: of {where} {least}."
    elif len({score.gains for _, score in front}) == 1:
        others = [_name(each) for each, _ in front if not _is(each, best)]
        tied = f" (as {formatting.listed(others)} {'are' if others[1:] else 'is'})" if others else ""
        rest = [score.gains for _, score in judged if not score.violation and score.gains != first.gains]
        is_first = all(ours > theirs for gains in rest for ours, theirs in zip(first.gains, gains, strict=True))
        is_alone = is_first and not results.record.references  # one of these may be better in a metric
        said = f"{chosen} is the best in every metric" if is_alone else f"none is better than {chosen} in any metric"
        yield f"Of {where} {said}{tied}: {_values(spec, *_own(front, best))}."
    else:
        names = [
            _name(each) + ("" if front[MAX_TOLD_CONFIGURATIONS:] else f" ({_values(spec, each, score)})")
            for each, score in front
        ]
        yield f"No configuration is best in every metric. Of {where} the front is {formatting.listed(names)}."
        missed = _missed(spec, front, best)
        held = "" if results.unbeaten else ", which best.yaml holds"
        yield f"Of the front {chosen} is chosen{held}: {spec.objective.rule}.{missed}"
    yield from _against_baseline(results)


def _where(spec: StudySpec, front: list[tuple[Candidate, Score]], among: int) -> str:
    """Return which configurations were judged, by which seeds."""
    candidate, score = front[0]
    number = formatting.count(among, "configuration")
    if score is candidate.confirmed_score:
        seeds = formatting.ran_on(side_of(spec, candidate), spec.metric)
        return f"the {number} that ran on {formatting.fresh(spec)}, by the mean over {seeds},"
    return f"the {number} of the search, on {formatting.seeds(spec.seeds)},"


def _name(candidate: Candidate) -> str:
    return "the baseline" if candidate.trial.stage == "baseline" else f"trial {candidate.trial.number}"


def _is(one: Candidate, other: Candidate) -> bool:
    return one.trial.number == other.trial.number


def _own(front: list[tuple[Candidate, Score]], best: Candidate) -> tuple[Candidate, Score]:
    return next(pair for pair in front if _is(pair[0], best))


def _values(spec: StudySpec, candidate: Candidate, score: Score) -> str:
    side = _judged(spec, candidate, score)
    return ", ".join(f"{name} {formatting.mean(name, side.spread(name))}" for name in spec.objective.metrics)


def _judged(spec: StudySpec, candidate: Candidate, score: Score) -> Side:
    """A configuration with the trials that it was judged by."""
    trials = candidate.repeats if score is candidate.confirmed_score else candidate.replicates
    joined = candidate.joined if score is candidate.confirmed_score else None
    return Side(_name(candidate), candidate.trial.number, trials, spec, joined=joined)


def _missed(spec: StudySpec, front: list[tuple[Candidate, Score]], best: Candidate) -> str:
    missed = spec.objective.missed(_own(front, best)[1])
    return f" None of the front keeps the limit; {_name(best)} misses it by least, {missed:.4g}." if missed else ""


def _against_baseline(results: Results) -> Iterator[str]:
    """The best of the search against the baseline in each metric, on validation and on test."""
    reference, best = results.sides
    if reference is None or best is None:
        return
    head = f"{best.label.capitalize()} against the baseline"
    if results.ranked[0].trial.stage == "baseline":
        head = f"Of the search {best.label} is {results.spec.objective.rule}; against the baseline"
    for split in ("val", "test"):
        names = [f"{split}/{name.split('/')[1]}" for name in results.spec.objective.metrics]
        changes = [text for name in names if (text := _change(results.spec, name, reference, best))]
        if changes and split == "val":
            yield f"{head}: {'; '.join(changes)}."
        elif changes:
            yield f"On the test split, which chose nothing: {'; '.join(changes)}."


def _change(spec: StudySpec, name: str, reference: Side, best: Side) -> str | None:
    gain = best.against(reference, name)
    if gain is None:
        return None
    told = formatting.judged(name, gain, (gain.value < 0) == (spec.direction(name) == "min"))
    means = (formatting.mean(name, side.spread(name)) for side in (best, reference))
    return f"{name} {' against '.join(means)}, {told}"


# The table.


def printed_front(results: Results) -> "pd.DataFrame":
    """The front, the best in the first metric first; empty with one metric.

    Columns: the trial, and whether it is the chosen one; each metric as it was judged, on fresh seeds or in the search;
    on test, over the seeds on which it was read; whether it is on the front on test of those whose test was read, too;
    the parameters.
    """
    import pandas as pd  # here, so that sentences alone are told at once

    if not results.spec.objective.several or results.spec.final_seeds is not None:
        return pd.DataFrame()
    front = results.front
    keys, best = param_keys(results.spec, results.record.trials.values()), results.best
    where = "on fresh seeds" if front and front[0][1] is front[0][0].confirmed_score else "in the search"
    on_test, rows = _on_test(results.spec, front), []
    read = [candidate for candidate, _ in front if candidate.trial.number in on_test]
    where_read = " on fresh seeds" if all(candidate.confirmed for candidate in read) else ""
    for candidate, score in front:
        judged, tested = _judged(results.spec, candidate, score), side_of(results.spec, candidate)
        row = {"trial": numbered(candidate.trial) + ", chosen" * bool(best and _is(candidate, best))}
        for name in results.spec.objective.metrics:
            title = f"{formatting.with_direction(results.spec, name)} {where}"
            row[title] = formatting.mean(name, judged.spread(name))
        row |= {f"{name}{where_read}": formatting.mean(name, tested.spread(name)) for name in _tests(results.spec)}
        row["on the front on test"] = on_test.get(candidate.trial.number, "not read")
        rows.append(row | {key: shown(results.spec, candidate.trial, key) for key in keys})
    return pd.DataFrame(rows)


def front_section(results: Results, picture: Picture | None) -> Section | None:
    """The front as figure and table, with what they mean; None with one metric, or before a configuration is
    complete."""
    table = printed_front(results)
    if table.empty:
        return None
    return Section("Front", [*([picture] if picture else []), Table(table), Text(front_note(results))])


def front_note(results: Results) -> str:
    """Return what the table's columns are, what of the search's front is not on it, and for how many test was read."""
    spec = results.spec
    front = results.front
    limits = f", of those that keep {', '.join(spec.search.constraints)}" if spec.search.constraints else ""
    note = [f"No other configuration beats one of these in every metric on the validation split{limits}."]
    note += [*_not_on_it(results, front), "Nothing is chosen on test."]
    read = len(_on_test(spec, front))
    if read == len(front):
        note.append("The last column before the parameters says which of these are a front on test, too.")
    elif read:
        note.append(f"Test was read for {read} of {len(front)}: which are a front there is said among these alone.")
    else:
        note.append("Test was read for none of them, so the front on test is not known.")
    if read < len(front) and (top := _not_confirmed(results)):
        note.append(f"study confirm {spec.name} --top {top} runs them on fresh seeds.")
    if front[1:]:
        whole = f"--pareto {','.join(spec.objective.metrics)} -o front.yaml"
        note.append(f"To export another of them: study export {spec.name} --trial N -o best.yaml; all: {whole}")
    return " ".join(note)


def _not_confirmed(results: Results) -> int | None:
    """Return how many of the best of the search hold all of its front, where some of it did not run on fresh seeds."""
    searched = results.searched
    on_front = [searched[place] for place in objective.front([candidate.score for candidate in searched])]
    return len(on_front) if any(not candidate.repeats for candidate in on_front) else None


def _not_on_it(results: Results, front: list[tuple[Candidate, Score]]) -> Iterator[str]:
    """Yield which configurations were on the front of the search and are not on that of the fresh seeds, and why."""
    same, on_it = results.comparable, {candidate.trial.number for candidate, _ in front}
    if not front or front[0][1] is not front[0][0].confirmed_score:
        return
    before = [same[place] for place in objective.front([candidate.score for candidate in same])]
    gone = [candidate for candidate in before if candidate.trial.number not in on_it]
    fell = [_name(each) for each in gone if each.confirmed_score]
    if fell:
        yield f"On the front of the search, and beaten on fresh seeds: {formatting.listed(fell)}."
    if never := [_name(each) for each in gone if not each.confirmed_score]:
        yield f"On the front of the search, and not run on fresh seeds: {formatting.listed(never)}."


def _tests(spec: StudySpec) -> list[str]:
    return [f"test/{name.split('/')[1]}" for name in spec.objective.metrics]


def _on_test(spec: StudySpec, front: list[tuple[Candidate, Score]]) -> Mapping[int, str]:
    """Return which configurations whose test was read are on its front, by trial: yes or no."""
    goal, scores = Objective(tuple(_tests(spec)), spec.objective.modes), {}
    for candidate, _ in front:
        side = side_of(spec, candidate)
        spreads = {name: side.spread(name) for name in goal.metrics}
        if score := goal.score({name: spread.mean for name, spread in spreads.items() if spread}):
            scores[side.number] = score
    places = objective.front(list(scores.values()))
    return {number: "yes" if place in places else "no" for place, number in enumerate(scores)}
