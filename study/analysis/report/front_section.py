"""What the report says of the front of a study with several metrics: its sentences, its table, and what stands below.

The front is that of `Results.front`, and every value of it here is the one that it was judged by.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from study.analysis.report.page import Picture, Section, Table, Text
from study.analysis.statistics import formatting
from study.analysis.statistics.frame import numbered, param_keys, shown
from study.ranking import Candidate, Results
from study.ranking.difference import Difference, Side, side_of
from study.ranking.documents import Statement
from study.spec import StudySpec, objective
from study.spec.objective import Score
from study.text import counted

if TYPE_CHECKING:
    import pandas as pd

MAX_TOLD_CONFIGURATIONS = 5
"""Size of the largest front whose values the sentences give; those of a larger one are in the table."""


Judged = tuple[Candidate, Score]
"""A configuration, and what it was judged by."""


class OnFront(Statement):
    """The configurations on the front.

    Attributes:
        front: the best in the first metric first.
        chosen: of the front.
        judged: how many configurations it is taken from.
        broken: how many of these break the limits.
        is_first: whether the front has one point, which is better in every metric than all else, references too.
    """

    spec: StudySpec
    front: Sequence[Judged]
    chosen: Judged
    judged: int
    broken: int
    is_first: bool

    @property
    def verdict(self) -> Literal["none keeps the limits", "one point", "several points"]:
        if self.front[0][1].violation > 0:
            return "none keeps the limits"
        return "one point" if len({score.gains for _, score in self.front}) == 1 else "several points"

    def __str__(self) -> str:
        spec, chosen, where = self.spec, _name(self.chosen[0]), _where(self.spec, self.front, self.judged)
        if self.verdict == "none keeps the limits":
            limits, least = " and ".join(map(str, spec.objective.constraints)), self.front[0][1].violation
            return (
                f"No configuration keeps {limits}, so that there is no front: of {where} {chosen} misses by least, "
                f"{least:.4g}."
            )
        if self.verdict == "one point":
            others = [_name(each) for each, _ in self.front if not _is(each, self.chosen[0])]
            tied = f" (as {formatting.listed(others)} {'are' if others[1:] else 'is'})" if others else ""
            best = f"{chosen} is the best in every metric"
            said = best if self.is_first else f"none is better than {chosen} in any metric"
            if self.broken:
                limits = " and ".join(map(str, spec.objective.constraints))
                is_alone = self.broken == self.judged - 1
                said = f"{chosen} alone keeps {limits}" if is_alone else f"{said}, of those that keep {limits}"
            return f"Of {where} {said}{tied}: {_values(spec, *self.chosen)}."
        is_large = len(self.front) > MAX_TOLD_CONFIGURATIONS
        names = [_name(each) + ("" if is_large else f" ({_values(spec, each, score)})") for each, score in self.front]
        return f"No configuration is best in every metric. Of {where} the front is {formatting.listed(names)}."


class ChosenOfFront(Statement):
    """Which configuration of the front is chosen, by which rule.

    Attributes:
        is_result: whether it is the study's result, which what needs no search may be.
    """

    spec: StudySpec
    chosen: Judged
    is_result: bool

    def __str__(self) -> str:
        name, missed = _name(self.chosen[0]), self.spec.objective.missed(self.chosen[1])
        verb = "is chosen, which best.yaml holds" if self.is_result else "comes first"
        least = f" None of the front keeps the limit; {name} misses it by least, {missed:.4g}." if missed else ""
        return f"Of the front {name} {verb}: {self.spec.objective.rule}.{least}"


class FrontGain(Statement):
    """The best of the search against the baseline in the study's metrics on one split: the differences by metric.

    Attributes:
        is_chosen: whether it is the best of the study.
    """

    reference: Side
    best: Side
    gains: Mapping[str, Difference]
    is_chosen: bool

    def __str__(self) -> str:
        changes = "; ".join(self._change(name, gain) for name, gain in self.gains.items())
        head = f"{self.best.label.capitalize()} against the baseline"
        if not self.is_chosen:
            head = f"Of the search {self.best.label} is {self.best.spec.objective.rule}; against the baseline"
        is_test = all(name.startswith("test/") for name in self.gains)
        return f"{'On the test split, which chose nothing' if is_test else head}: {changes}."

    def _change(self, name: str, gain: Difference) -> str:
        is_better = (gain.value < 0) == (self.best.spec.direction(name) == "min")
        means = " against ".join(formatting.measured(side, name) for side in (self.best, self.reference))
        return f"{name} {means}, {formatting.judged(name, gain, is_better)}"


def front_result(results: Results) -> Iterator[Statement]:
    """Yield what is on the front, which of it was chosen by which rule, and how that differs from the baseline."""
    spec, front, best, judged = results.spec, results.front, results.ranked[0], results.judged
    chosen, first = next(pair for pair in front if _is(pair[0], best)), front[0][1]
    rest = [score.gains for _, score in judged if not score.violation and score.gains != first.gains]
    is_first = all(ours > theirs for gains in rest for ours, theirs in zip(first.gains, gains, strict=True))
    # one of the references may be better in a metric
    broken = sum(score.violation > 0 for _, score in judged)
    on_front = OnFront(spec, front, chosen, len(judged), broken, is_first and not results.record.references)
    yield on_front
    if on_front.verdict == "several points":
        yield ChosenOfFront(spec, chosen, not results.unbeaten)
    reference, of_search = results.sides
    if reference is None or of_search is None:
        return
    for split in ("val", "test"):
        names = [f"{split}/{name.split('/')[1]}" for name in spec.objective.metrics]
        if gains := {name: gain for name in names if (gain := of_search.against(reference, name))}:
            yield FrontGain(reference, of_search, gains, best.trial.stage != "baseline")


def _where(spec: StudySpec, front: Sequence[Judged], judged: int) -> str:
    """Return which configurations were judged, by which seeds."""
    candidate, score = front[0]
    number = counted(judged, "configuration")
    if score is candidate.confirmed_score:
        seeds = formatting.ran_on(side_of(spec, candidate), spec.metric)
        return f"the {number} that ran on {formatting.fresh(spec)}, by the mean over {seeds},"
    return f"the {number} of the search, on {formatting.seeds(spec.seeds)},"


def _name(candidate: Candidate) -> str:
    return "the baseline" if candidate.trial.stage == "baseline" else f"trial {candidate.trial.number}"


def _is(one: Candidate, other: Candidate) -> bool:
    return one.trial.number == other.trial.number


def _values(spec: StudySpec, candidate: Candidate, score: Score) -> str:
    side = _judged(spec, candidate, score)
    return ", ".join(f"{name} {formatting.measured(side, name)}" for name in spec.objective.metrics)


def _judged(spec: StudySpec, candidate: Candidate, score: Score) -> Side:
    """Return a configuration with the trials that it was judged by."""
    trials = candidate.repeats if score is candidate.confirmed_score else candidate.replicates
    joined = candidate.joined if score is candidate.confirmed_score else None
    return Side(_name(candidate), candidate.trial.number, trials, spec, joined=joined)


def printed_front(results: Results) -> "pd.DataFrame":
    """Return the front as text, the best in the first metric first; empty with one metric.

    Columns: the trial, and whether it is the chosen one; each metric as it was judged, on fresh seeds or in the search;
    on test, over the seeds on which it was read; the parameters.
    """
    import pandas as pd  # here, so that sentences alone are told at once

    if not results.spec.objective.several or results.spec.final_seeds is not None:
        return pd.DataFrame()
    front = results.front
    keys = param_keys(results.spec, results.record.trials.values())
    best = None if results.unbeaten else results.best
    where = "on fresh seeds" if front and front[0][1] is front[0][0].confirmed_score else "in the search"
    rows, where_read = [], " on fresh seeds" if all(each.confirmed for each in _read(results.spec, front)) else ""
    for candidate, score in front:
        judged, tested = _judged(results.spec, candidate, score), side_of(results.spec, candidate)
        row = {"trial": numbered(candidate.trial) + ", chosen" * bool(best and _is(candidate, best))}
        for name in results.spec.objective.metrics:
            title = f"{formatting.with_direction(results.spec, name)} {where}"
            row[title] = formatting.mean(name, judged.spread(name))
        row |= {f"{name}{where_read}": formatting.mean(name, tested.spread(name)) for name in _tests(results.spec)}
        rows.append(row | {key: shown(results.spec, candidate.trial, key) for key in keys})
    return pd.DataFrame(rows)


def front_section(results: Results, picture: Picture | None) -> Section | None:
    """Return the front as figure, table and note; None with one metric, or before a configuration is complete."""
    table = printed_front(results)
    if table.empty:
        return None
    return Section("Front", [*([picture] if picture else []), Table(table), Text(front_note(results))])


def front_note(results: Results) -> str:
    """Return what the columns are, what of the search's front is missing, and for how many test was read."""
    spec = results.spec
    front = results.front
    limits = f", of those that keep {', '.join(spec.search.constraints)}" if spec.search.constraints else ""
    note = [f"No other configuration beats one of these in every metric on the validation split{limits}."]
    note += [*_not_on_it(results, front), "Nothing is chosen on test."]
    read = len(_read(spec, front))
    if read < len(front):
        note.append(f"Test was read for {read or 'none'} of these {len(front)}.")
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


def _not_on_it(results: Results, front: list[Judged]) -> Iterator[str]:
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


def _read(spec: StudySpec, front: list[Judged]) -> list[Candidate]:
    """Return the configurations of which every metric was read on test."""
    sides = [(candidate, side_of(spec, candidate)) for candidate, _ in front]
    return [candidate for candidate, side in sides if all(side.spread(name) for name in _tests(spec))]
