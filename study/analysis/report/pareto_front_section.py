"""What the report says of the front of a study with several metrics: its sentences, its table, and what stands below.

The front is that of `Results.front`, and every value of it here is the one that it was judged by.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from study.analysis.report.page_formats import FigureBlock, PageSection, TableBlock, command_as_code
from study.analysis.statistics import formatting
from study.analysis.statistics.next_step import MIN_RELEVANT_SHARE_OF_GAIN
from study.analysis.statistics.trials_frame import param_key_columns, trial_label, trial_param_text
from study.ranking import Candidate, Results
from study.ranking.arms import Arm, arm_of_candidate
from study.ranking.difference import Difference
from study.ranking.json_documents import Statement
from study.spec import StudySpec, objective
from study.spec.objective import TrialScore
from study.text import pluralise, sentence_case, study_command

if TYPE_CHECKING:
    import pandas as pd

CandidateAndScore = tuple[Candidate, TrialScore]
"""A configuration, and what it was judged by."""


class ConfigurationsOnFront(Statement):
    """The configurations on the front.

    Attributes:
        front: the best in the first metric first.
        chosen: of the front.
        judged: how many configurations it is taken from.
        broken: how many of these break the limits.
        is_first: whether the front has one point, which is better in every metric than all else, references too.
    """

    spec: StudySpec
    front: Sequence[CandidateAndScore]
    chosen: CandidateAndScore
    judged: int
    broken: int
    is_first: bool

    @property
    def verdict(self) -> Literal["none keeps the limits", "one point", "several points"]:
        if self.front[0][1].total_violation > 0:
            return "none keeps the limits"
        return "one point" if len({score.values_to_maximise for _, score in self.front}) == 1 else "several points"

    def __str__(self) -> str:
        spec = self.spec
        chosen = _configuration_name(self.chosen[0])
        where = _judged_configurations_text(self.spec, self.front, self.judged)
        if self.verdict == "none keeps the limits":
            limits = " and ".join(map(str, spec.objective.constraints))
            missed = spec.objective.broken_constraints_text(self.chosen[1])
            return (
                f"Of {where} none keeps {limits}, so that there is no front. {sentence_case(chosen)} comes closest: it "
                f"misses {missed}."
            )
        if self.verdict == "one point":
            others = [_configuration_name(each) for each, _ in self.front if each is not self.chosen[0]]
            tied = f", level with {formatting.join_with_and(others)}" if others else ""
            best = f"{chosen} is the best in every metric"
            said = best if self.is_first else f"none is better than {chosen} in any metric"
            of, limits = f"Of {where}", " and ".join(map(str, spec.objective.constraints))
            if self.judged == 1:
                of, said = "The front is", f"{chosen} alone, of {where.removesuffix(',')}"
            elif self.broken == self.judged - 1:
                said = f"{chosen} alone keeps {limits}"
            elif self.broken:
                of = f"{self.judged - self.broken} of {where} keep {limits}; of these"
            return f"{of} {said}{tied}: {_candidate_metrics_text(spec, *self.chosen)}."
        names = formatting.join_with_and(_configuration_name(each) for each, _ in self.front)
        return f"No configuration is best in every metric: of {where} the front is {names}."


class ChosenFromFront(Statement):
    """Which configuration of the front is chosen, by which rule.

    Attributes:
        is_result: whether it is the study's result, which what needs no search may be.
    """

    spec: StudySpec
    chosen: CandidateAndScore
    is_result: bool

    def __str__(self) -> str:
        verb = "is chosen and in best.yaml" if self.is_result else "comes first"
        return (
            f"Of the front {_configuration_name(self.chosen[0])} {verb}, as it has "
            f"{self.spec.objective.front_choice_text}."
        )


class FrontGainsOverBaseline(Statement):
    """The best of the search against the baseline in the study's metrics: the differences, of the deciding split first.

    Attributes:
        gains: by metric; on validation, then on test where it was read.
        is_chosen: whether it is the best of the study.
        is_guess: whether it is not told from guessing: a clear gain is then no achievement, and left to the table.
    """

    baseline: Arm
    best: Arm
    gains: Mapping[str, Difference]
    is_chosen: bool
    is_guess: bool = False

    def __str__(self) -> str:
        head = f"{self.best.label.capitalize()} against the baseline"
        if not self.is_chosen:
            choice = self.best.spec.objective.front_choice_text
            head = f"Of the search {self.best.label} has {choice}; against the baseline"
        is_doubted = any(self._is_gain_doubted(name, gain) for name, gain in self.gains.items())
        though = f", though this does not say that {self.best.label} has learned the class" * is_doubted
        told, on_test = f"{head}: {self._gains_text('val')}{though}.", self._gains_text("test")
        return f"{told} On the test split, which was not used to choose: {on_test}." if on_test else told

    def _gains_text(self, split: Literal["val", "test"]) -> str:
        """Return the differences on a split; empty without any."""
        found = {name: gain for name, gain in self.gains.items() if name.split("/")[0] == split}
        return "; ".join(self._gain_text(name, gain) for name, gain in found.items())

    def _gain_text(self, name: str, gain: Difference) -> str:
        means = " against ".join(formatting.format_arm_mean(arm, name) for arm in (self.best, self.baseline))
        if self._is_gain_doubted(name, gain):
            return f"{name} {means}"
        over, is_better = self.best.interval_over_text(name), self._is_better(name, gain)
        return f"{name} {means}, {formatting.difference_with_verdict(name, gain, is_better, over)}"

    def _is_better(self, name: str, gain: Difference) -> bool:
        return (gain.value < 0) == (self.best.spec.direction(name) == "min")

    def _is_gain_doubted(self, name: str, gain: Difference) -> bool:
        return self.is_guess and bool(gain.is_clear) and self._is_better(name, gain)


MAX_ALTERNATIVE_COST_SHARE = 0.5
"""Share of what the chosen one has of a metric that is to be low, up to which another of the front is pointed out."""


class CheaperAlternative(Statement):
    """A configuration of the front that the chosen one is not told from, and that has half of another metric or less.

    Attributes:
        difference: of the chosen one to it in the first metric.
        cost: the metric that is to be low.
    """

    chosen: Arm
    other: Arm
    difference: Difference
    cost: str

    @property
    def command(self) -> str:
        return study_command("export", self.chosen.spec.name, "--trial", self.other.trial_number)

    def __str__(self) -> str:
        name = self.chosen.spec.metric
        less, more = (formatting.format_arm_mean(arm, self.cost) for arm in (self.other, self.chosen))
        by, other = formatting.difference_with_interval(name, self.difference), self.other.label_in_sentence
        return (
            f"Consider {other} ({self.command}): {self.chosen.label_in_sentence} differs from it in {name} by {by}, "
            f"little beside the gain over the baseline, and {other} has at most half the {self.cost}: {less} against "
            f"{more}."
        )


def _cheaper_alternative_statements(results: Results) -> Iterator[CheaperAlternative]:
    """Yield the one of the front with the least of a metric, where the chosen one's seeds allow to say so.

    The interval of the difference in the first metric, which allows for the choice of the best, holds zero and reaches
    less far than `MIN_RELEVANT_SHARE_OF_GAIN` of the gain over the baseline; and the other metric is less beyond its
    interval.
    """
    spec, (baseline, chosen) = results.spec, results.baseline_and_best_arms
    gain = chosen.difference_to(baseline, spec.metric) if chosen and baseline else None
    if chosen is None or gain is None or not spec.is_better(gain.value, 0.0):
        return
    others = [arm_of_candidate(spec, each) for each, _ in results.front if each.trial.number != chosen.trial_number]
    near = {
        other.trial_number: gap
        for other in others
        if (gap := chosen.difference_to(other, spec.metric))
        and gap.interval
        and gap.is_clear is False
        and max(map(abs, gap.interval)) < MIN_RELEVANT_SHARE_OF_GAIN * abs(gain.value)
    }
    for cost in (name for name in spec.objective.metrics[1:] if spec.direction(name) == "min"):
        most, found = chosen.metric_statistics(cost), list[tuple[float, Arm]]()
        for other in (each for each in others if each.trial_number in near):
            less, saved = other.metric_statistics(cost), chosen.difference_to(other, cost)
            if most and less and saved and saved.is_clear and 0 <= less.mean <= MAX_ALTERNATIVE_COST_SHARE * most.mean:
                found.append((less.mean, other))
        if found:
            _, other = min(found, key=lambda pair: pair[0])
            yield CheaperAlternative(chosen, other, near[other.trial_number], cost)
            return


def front_statements(results: Results, is_guess: bool = False) -> Iterator[Statement]:
    """Yield what is on the front, which of it was chosen by which rule, and how that differs from the baseline.

    Args:
        is_guess: see `FrontGainsOverBaseline`.
    """
    spec, front, best, judged = results.spec, results.front, results.ranked_all[0], results.scored_candidates
    chosen, first = next(pair for pair in front if pair[0] is best), front[0][1]
    rest = [
        score.values_to_maximise
        for _, score in judged
        if not score.total_violation and score.values_to_maximise != first.values_to_maximise
    ]
    is_first = all(
        ours > theirs for gains in rest for ours, theirs in zip(first.values_to_maximise, gains, strict=True)
    )
    is_first &= not results.record.reference_events  # one of these may be better in a metric
    broken = sum(score.total_violation > 0 for _, score in judged)
    on_front = ConfigurationsOnFront(spec, front, chosen, len(judged), broken, is_first)
    baseline, of_search = results.baseline_and_best_arms
    gained: list[Statement] = []
    if baseline and of_search:
        names = [*spec.objective.metrics, *_test_metric_names(spec)]
        if gains := {name: gain for name in names if (gain := of_search.difference_to(baseline, name))}:
            gained = [FrontGainsOverBaseline(baseline, of_search, gains, best.trial.stage != "baseline", is_guess)]
    if on_front.verdict == "several points":
        choice = [on_front, ChosenFromFront(spec, chosen, not results.reference_as_result)]
        yield from [*choice, *gained] if best.trial.stage == "baseline" else [*gained, *choice]
        yield from () if is_guess or results.reference_as_result else _cheaper_alternative_statements(results)
    else:
        yield from [on_front, *gained]


def _judged_configurations_text(spec: StudySpec, front: Sequence[CandidateAndScore], judged: int) -> str:
    """Return which configurations were judged, by which seeds."""
    candidate, score = front[0]
    number = pluralise(judged, "configuration")
    if score is candidate.confirmed_score:
        by = f"mean over {formatting.arm_folds_and_seeds_text(arm_of_candidate(spec, candidate), spec.metric)}"
        by = "samples of all folds together" if candidate.joined_folds else by
        return f"the {number} that ran on {formatting.fresh_seeds_text(spec)}, by the {by},"
    return f"the {number} of the search, on {formatting.seeds_text(spec.seeds)},"


def _configuration_name(candidate: Candidate) -> str:
    return "the baseline" if candidate.trial.stage == "baseline" else f"trial {candidate.trial.number}"


def _candidate_metrics_text(spec: StudySpec, candidate: Candidate, score: TrialScore) -> str:
    arm = _judged_arm(spec, candidate, score)
    return ", ".join(f"{name} {formatting.format_arm_mean(arm, name)}" for name in spec.objective.metrics)


def _judged_arm(spec: StudySpec, candidate: Candidate, score: TrialScore) -> Arm:
    """Return a configuration with the trials that it was judged by."""
    trials = candidate.confirm_trials if score is candidate.confirmed_score else candidate.replicates
    joined = candidate.joined_folds if score is candidate.confirmed_score else None
    return Arm(_configuration_name(candidate), candidate.trial.number, trials, spec, joined_folds=joined)


def front_table(results: Results) -> "pd.DataFrame":
    """Return the front as text, the best in the first metric first; empty with one metric.

    Columns: the trial, and whether it is the chosen one; each metric as it was judged, on fresh seeds or in the search;
    on test, over the seeds on which it was read; the parameters.
    """
    import pandas as pd  # here, so that sentences alone are told at once

    if not results.spec.objective.has_several_metrics or results.spec.final_seeds is not None:
        return pd.DataFrame()
    front = results.front
    keys = param_key_columns(results.spec, results.record.trials.values())
    best = None if results.reference_as_result else results.best
    again = f"on {formatting.fresh_seeds_text(results.spec)}"
    where = again if front and front[0][1] is front[0][0].confirmed_score else "in the search"
    rows = []
    read = _candidates_read_on_test(results.spec, front)
    arms = [arm_of_candidate(results.spec, candidate) for candidate, _ in front]
    tests = [name for name in _test_metric_names(results.spec) if any(arm.metric_statistics(name) for arm in arms)]
    where_read = f" {again}" if all(each.confirm_statistics for each in read) else ""
    for (candidate, score), tested in zip(front, arms, strict=True):
        judged = _judged_arm(results.spec, candidate, score)
        mark = ", chosen" * (candidate is best)
        mark = ", misses the limits by least" if score.total_violation > 0 else mark
        row = {"trial": trial_label(candidate.trial) + mark}
        for name in results.spec.objective.metrics:
            title = f"{formatting.metric_with_direction(results.spec, name)} {where}"
            row[title] = formatting.format_mean_and_deviation(name, judged.metric_statistics(name))
        for name in tests:
            row[f"{name}{where_read}"] = formatting.format_mean_and_deviation(name, tested.metric_statistics(name))
        rows.append(row | {key: trial_param_text(results.spec, candidate.trial, key) for key in keys})
    return pd.DataFrame(rows)


def pareto_front_section(results: Results, picture: FigureBlock | None) -> PageSection | None:
    """Return the front as figure, table and note; None with one metric, or before a configuration is complete."""
    table = front_table(results)
    if table.empty:
        return None
    return PageSection("Front", [*([picture] if picture else []), TableBlock(table), front_table_note(results)])


def front_table_note(results: Results) -> str:
    """Return what the columns are, what of the search's front is missing, and for how many test was read."""
    spec = results.spec
    front, limits = results.front, ", ".join(spec.search.constraints)
    kept = f", of those that keep {limits}" if limits else ""
    note = [f"No other configuration beats one of these in every metric on the validation split{kept}."]
    if front[0][1].total_violation > 0:
        note = [f"There is no front, as none of those it is taken from keeps {limits}: this one misses by least."]
    note += [*_why_left_front(results, front), "Nothing is chosen on test."]
    read = len(_candidates_read_on_test(spec, front))
    if read < len(front):
        several = f"Every metric was read on test for {read or 'none'} of these {len(front)}."
        note.append(several if front[1:] else "Not every metric of it was read on test.")
    if read < len(front) and (top := _smallest_top_with_whole_front(results)):
        command = command_as_code(f"study confirm {spec.name} --top {top}")
        note.append(f"{command} runs them on {formatting.fresh_seeds_text(spec)}.")
    if front[1:]:
        one, whole = "--trial N -o best.yaml", f"--pareto {','.join(spec.objective.metrics)} -o front.yaml"
        commands = [command_as_code(f"study export {spec.name} {options}") for options in (one, whole)]
        note.append(f"To export another of them: {commands[0]}; all: {commands[1]}.")
    return " ".join(note)


def _smallest_top_with_whole_front(results: Results) -> int | None:
    """Return how many of the best of the search hold all of its front, where some of it did not run on fresh seeds."""
    searched = results.ranked_by_search_value
    on_front = [searched[place] for place in objective.front_positions([candidate.score for candidate in searched])]
    return len(on_front) if any(not candidate.confirm_trials for candidate in on_front) else None


def _why_left_front(results: Results, front: list[CandidateAndScore]) -> Iterator[str]:
    """Yield which configurations were on the front of the search and are not on that of the fresh seeds, and why."""
    same, on_it = results.ranked_all, {candidate.trial.number for candidate, _ in front}
    if not front or front[0][1] is not front[0][0].confirmed_score:
        return
    before = [same[place] for place in objective.front_positions([candidate.score for candidate in same])]
    gone = [candidate for candidate in before if candidate.trial.number not in on_it]
    again = formatting.fresh_seeds_text(results.spec)
    fell = [_configuration_name(each) for each in gone if each.confirmed_score]
    if fell:
        yield f"On the front of the search, and beaten on {again}: {formatting.join_with_and(fell)}."
    if never := [_configuration_name(each) for each in gone if not each.confirmed_score]:
        yield f"On the front of the search, and not run on {again}: {formatting.join_with_and(never)}."


def _test_metric_names(spec: StudySpec) -> list[str]:
    return [f"test/{name.split('/')[1]}" for name in spec.objective.metrics]


def _candidates_read_on_test(spec: StudySpec, front: list[CandidateAndScore]) -> list[Candidate]:
    """Return the configurations of which every metric was read on test."""
    names = _test_metric_names(spec)
    arms = [(candidate, arm_of_candidate(spec, candidate)) for candidate, _ in front]
    return [candidate for candidate, arm in arms if all(arm.metric_statistics(name) for name in names)]
