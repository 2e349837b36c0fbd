"""The next step with a study, by a stated rule over its numbers.

The steps that apply, in this order; the first is the one to take. Where what needs no search is the study's result,
to take that comes before what more search may bring:

1. `resume`: the study is not over.
2. `learn`: the result is not told from guessing, so that nothing is left to choose.
3. `loosen`: nothing keeps the limits.
4. `confirm`: what ran on fresh seeds breaks the limits, and configurations that keep them in the search did not.
5. `widen`: the best configuration lies at the edge of a range, in more than chance (`find_range_edges`).
6. `search`: the best configuration came, or with several metrics the front last grew, in the last
   `LATE_SHARE_OF_SEARCH` of the search's trials.
7. `confirm`: the best configurations have not run on fresh seeds, not even as a rule's pick.
8. `seeds`: it is open whether the best is better than the baseline, or, if it is, than the runner-up; and it ran on
   one or two seeds, or `MAX_SEEDS_NEEDED` paired seeds are more likely enough to tell than not. Not where the answer
   would change nothing: both have every validation sample right, or the interval of their difference reaches less far
   than `MIN_RELEVANT_SHARE_OF_GAIN` of the gain over the baseline; nor where the samples of all folds judged both.
9. `enough`: none of these. How many seeds a difference may take is said all the same, and that few trials do not tell
   whether more of them or wider ranges are needed.
"""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from study.analysis.statistics import formatting
from study.analysis.statistics.debiasing_metrics import find_no_better_than_chance
from study.analysis.statistics.range_edges import (
    MIN_BETTER_CONFIGURATIONS,
    MIN_WORSE_CONFIGURATIONS,
    RangeEdge,
    find_range_edges,
)
from study.analysis.statistics.rivals import find_rivals
from study.analysis.statistics.seeds_needed import (
    MAX_SEEDS_NEEDED,
    PROPOSED_CONFIRM_COUNT,
    SEEDS_CONFIDENCE,
    TARGET_POWER_IN_WORDS,
    SeedsNeeded,
    estimate_seeds_needed,
)
from study.analysis.statistics.unkept_constraints import find_unkept_constraints
from study.ranking import FittedReference, Results
from study.ranking.arms import Arm, arm_of_candidate
from study.ranking.difference import Difference
from study.ranking.json_documents import Statement
from study.spec import StudySpec, objective
from study.spec.constraints import MetricConstraint
from study.spec.objective import Objective
from study.spec.sampler_capabilities import SAMPLER_CAPABILITIES
from study.spec.search_checks import count_configurations
from study.text import pluralise, sentence_case, study_command

LATE_SHARE_OF_SEARCH = 0.25
"""Share of a search, at its end, in which a best trial is taken as a sign that more trials would find better ones."""

MIN_TRIALS_TO_JUDGE_LATE = 8
"""Smallest number of trials for that sign: of fewer, the best is among the last by chance alone too often."""


NextStepKind = Literal["resume", "learn", "loosen", "widen", "search", "confirm", "seeds", "enough"]


@dataclass(frozen=True)
class NextStep:
    """One thing to do.

    Attributes:
        kind: which rule gave it.
        why: the numbers that it follows from.
        command: that does it, as it is typed; None where a study file has to be changed first.
    """

    kind: NextStepKind
    why: Statement
    command: str | None

    @property
    def may_train_instead(self) -> bool:
        """Whether the result may be trained finally all the same: it has learned the class and keeps the limits."""
        return self.kind not in ("learn", "loosen")


class NextStepReason(Statement):
    """Why a step is to be taken, where that needs no numbers."""

    why: Literal["not over", "own seeds alone", "baseline on own seeds alone"]

    def __str__(self) -> str:
        return NEXT_STEP_REASON_TEXTS[self.why]


class TrialFailed(Statement):
    """A trial without which the study cannot go on, and why it failed."""

    study: str
    trial: int
    why: str

    def __str__(self) -> str:
        more = study_command("logs", self.study, "--trial", self.trial)
        return (
            f"Trial {self.trial} failed: {self.why.rstrip('.')} ({more}). Once its cause is mended, it can run again."
        )


NEXT_STEP_REASON_TEXTS = {
    "not over": "The study is not over.",
    "own seeds alone": "The search's own seeds alone chose the best, so it is not known how much of its value is luck.",
    "baseline on own seeds alone": "The baseline ran on the search's own seeds alone, so the gain is known on these "
    "only.",
}


class LoosenConstraints(Statement):
    """The advice to loosen constraints that nothing keeps."""

    goal: Objective

    def __str__(self) -> str:
        constraints = self.goal.constraints
        what = f"limit{'s' * (len(constraints) > 1)}"
        return (
            f"Nothing that was tried keeps {formatting.join_with_and(map(str, constraints))}. Loosen the {what} "
            "(search.constraints) and run the study under another name, or search where more can be reached."
        )


MAX_NAMED_KEEPING_CONSTRAINTS = 3
"""Largest number of configurations that are proposed for fresh seeds because they keep the limits in the search."""


class ConstraintsKeptInSearchOnly(Statement):
    """The result breaks the limits on fresh seeds; configurations that did not run on these keep them in the search."""

    spec: StudySpec
    broken: Sequence[MetricConstraint]
    keeping: Sequence[Arm]

    def __str__(self) -> str:
        fresh = formatting.fresh_seeds_text(self.spec)
        names = dict.fromkeys(constraint.metric for constraint in self.spec.objective.constraints)
        told = [
            f"{arm.label} ({', '.join(f'{name} {formatting.format_arm_mean(arm, name)}' for name in names)})"
            for arm in self.keeping
        ]
        broken = formatting.join_with_and(map(str, self.broken))
        return (
            f"The result breaks {broken} on {fresh}. Kept in the search, and not run on {fresh} yet: "
            f"{formatting.join_with_and(told)}."
        )


class NotBetterThanGuessing(Statement):
    """The result is not told from guessing.

    Attributes:
        can_begin_pretrained: whether a trial could begin from pretrained weights, and none does.
        can_enlarge: whether the images are scaled to a size that the study sets.
    """

    can_begin_pretrained: bool
    can_enlarge: bool

    @classmethod
    def from_spec(cls, spec: StudySpec) -> "NotBetterThanGuessing":
        """Return it with what the study does not use yet."""
        data, is_used = spec.base["data"], any(section.get("weights") for section in spec.model_sections)
        return cls(not is_used and data["name"] != "table", "size" in data)

    def __str__(self) -> str:
        pretrained = " or pretrained weights" * self.can_begin_pretrained
        larger = " larger images (`data.size`)," * self.can_enlarge
        return (
            "Nothing here has learned the class, so there is nothing to train yet: give trials more to learn it with "
            f"(another network{pretrained} under `model`,{larger} more `train.epochs`, more data)."
        )


class BestCameLate(Statement):
    """The leading configuration came late, or the front still grew."""

    came: "PositionInSearch"
    is_front: bool

    def __str__(self) -> str:
        what = "The front still grew with" if self.is_front else "The leading configuration came late, as"
        return f"{what} the {formatting.ordinal(self.came.place)} of {self.came.of} of the search: more may be better."


class BestAtRangeEdge(Statement):
    """The best lies at the edge of a range."""

    edge: RangeEdge

    def __str__(self) -> str:
        edge = self.edge
        return (
            f"The best {edge.key}, {formatting.format_setting(edge.value)}, lies at the {edge.end} end of its range, "
            f"and "
            "better configurations lie nearer to that end than others: search beyond "
            f"{formatting.format_setting(edge.limit)}, too."
        )


class UndecidedBySeeds(Statement):
    """Two configurations that their seeds do not tell apart.

    Attributes:
        seeds: that both ran on.
        needed: to tell them apart; None: the seeds do not even tell that.
        command: to type, where that is no step of its own.
    """

    best: Arm
    other: Arm
    seeds: int
    needed: SeedsNeeded | None
    command: str | None = None

    def __str__(self) -> str:
        pair = f"{self.best.label_in_sentence} and {self.other.label_in_sentence}"
        needed = self.needed
        if needed is None:
            common = f"ran on {pluralise(self.seeds, 'seed')} in common"
            return f"{sentence_case(pair)} {common}, which cannot tell which is better by {self.best.spec.metric}."
        what = (
            f"By {self.best.spec.metric} it is open after {self.seeds} seeds which of {pair} is better. To tell in "
            f"{TARGET_POWER_IN_WORDS} takes"
        )
        if needed.fewest is None:
            return f"{what} more than {max(MAX_SEEDS_NEEDED, self.seeds)} seeds ({SEEDS_CONFIDENCE:.0%} confidence)."
        most = f"more than {MAX_SEEDS_NEEDED}" if needed.most is None else str(needed.most)
        between = (
            f"{needed.fewest} seeds" if most == str(needed.fewest) else f"between {needed.fewest} and {most} seeds"
        )
        command = f" ({self.command})" if self.command else ""
        following = f"{needed.next_batch} is a good next step{command}."
        return f"{what} {between} in all ({SEEDS_CONFIDENCE:.0%} confidence); {following}"


class UndecidedBySamples(Statement):
    """Two configurations that the samples of all folds do not tell apart, on which more seeds hardly tell more."""

    best: Arm
    other: Arm

    def __str__(self) -> str:
        return (
            f"By {self.best.spec.metric} it is open which of {self.best.label_in_sentence} and "
            f"{self.other.label_in_sentence} is better: they were judged by the samples of all folds, whose error more "
            "seeds do not take away. More data would tell."
        )


MIN_RELEVANT_SHARE_OF_GAIN = 0.1
"""Share of the gain over the baseline below which it does not matter which of two configurations is better."""


class MoreSeedsNotNeeded(Statement):
    """Two configurations that are not told apart, and need not be.

    Attributes:
        reach: the largest difference that is in its interval; None: both have every validation sample right.
        gain: of the best over the baseline.
    """

    best: Arm
    other: Arm
    reach: float | None
    gain: float

    def __str__(self) -> str:
        name = self.best.spec.metric
        pair = f"{self.best.label_in_sentence} and {self.other.label_in_sentence}"
        if self.reach is None:
            return f"{sentence_case(pair)} are right in every validation sample: more seeds would tell of {name} alone."
        most, gain = (formatting.format_difference(name, abs(one), signed=False) for one in (self.reach, self.gain))
        return (
            f"By {name} it is open which of {pair} is better, and it hardly matters: the 95% interval of their "
            f"difference ends at {most}, and the gain over the baseline is {gain}."
        )


class UseReference(Statement):
    """What needs no search is the result."""

    reference: FittedReference

    def __str__(self) -> str:
        return f"Take what needs no search, which best.yaml holds: {self.reference.name_in_sentence}."


class NoStepLeft(Statement):
    """No step is left that the measurements ask for.

    Attributes:
        trials: number of the search's trials.
        is_space_exhausted: whether every configuration was tried.
        is_confirmed: whether the seeds were measured, too.
        keep: whether the baseline is to be kept, and whether by the margin.
    """

    trials: int
    is_space_exhausted: bool
    is_confirmed: bool
    keep: Literal["", "better", "margin"]

    def __str__(self) -> str:
        by = " by more than search.margin" if self.keep == "margin" else ""
        keep = f"Keep the baseline: the search found nothing better{by}. " if self.keep else ""
        seeds = " Nothing that was measured asks for more seeds." if self.is_confirmed else ""
        if self.is_space_exhausted:
            return f"{keep}Every configuration of the space was tried.{seeds}"
        if self.trials <= MIN_BETTER_CONFIGURATIONS + MIN_WORSE_CONFIGURATIONS:
            few = f"{pluralise(self.trials, 'trial')} of the search {'is' if self.trials == 1 else 'are'} too few"
            return f"{keep}{few} to say whether more trials, or wider ranges, would find better ones.{seeds}"
        more = ", more trials or more seeds" if seeds else " or more trials"
        return f"{keep}Nothing that was measured asks for a wider range{more}."


@dataclass(frozen=True)
class PositionInSearch:
    """The place of the best configuration among the `of` that the search began, from 1.

    With several metrics, the place of the one with which the front last grew.
    """

    place: int
    of: int

    @property
    def is_late(self) -> bool:
        """Whether the place is among the last ones of a search that is long enough."""
        return self.of >= MIN_TRIALS_TO_JUDGE_LATE and self.place > (1 - LATE_SHARE_OF_SEARCH) * self.of


def position_of_best(results: Results) -> PositionInSearch | None:
    """Return when the best searched configuration came; None without one, or in a search of a single one."""
    _, best = results.baseline_and_best_arms
    numbers = [trial.number for trial in results.record.trials_of_stages("search") if trial.has_started]
    if best is None or len(numbers) < 2:
        return None
    last = best.trial_number if len(results.spec.objective.metrics) == 1 else last_front_growth_trial(results)
    return None if last is None else PositionInSearch(numbers.index(last) + 1, len(numbers))


def last_front_growth_trial(results: Results) -> int | None:
    """Return the last trial that came onto the front of those that keep the constraints with values of its own.

    As none came after it, it is still on the front. None where no configuration keeps the constraints.
    """
    kept = [candidate for candidate in results.ranked_by_search_value if candidate.score.total_violation == 0]
    by_values: dict[Sequence[float], list[int]] = {}
    for place in objective.front_positions([candidate.score for candidate in kept]):
        by_values.setdefault(kept[place].score.values_to_maximise, []).append(kept[place].trial.number)
    return max(map(min, by_values.values()), default=None)


def next_steps(results: Results) -> list[NextStep]:
    """Return the steps that apply, the one to take first.

    Empty for a final training, while a driver is at work, and for a complete study whose trials have different data.
    """
    if results.spec.final_seeds is not None or results.record.state == "running":
        return []
    name = results.spec.name
    failed = [trial for trial in results.record.trials.values() if trial.state == "failed"]
    if results.record.state == "failed" and failed:
        cause = TrialFailed(name, failed[0].number, failed[0].end_reason or "")
        return [NextStep("resume", cause, study_command("resume", name, "--failed"))]
    if results.record.state != "complete":
        return [NextStep("resume", NextStepReason("not over"), study_command("resume", name))]
    baseline, best = results.baseline_and_best_arms
    if best is None or results.spec.varied_data_keys:
        return []
    reference = results.reference_as_result
    if find_no_better_than_chance(results.record, arm_of_candidate(results.spec, reference) if reference else best):
        return [NextStep("learn", NotBetterThanGuessing.from_spec(results.spec), None)]
    when = position_of_best(results)
    found = _constraints_step(results) if results.is_confirmed else []
    if find_unkept_constraints(results):
        found.append(NextStep("loosen", LoosenConstraints(results.spec.objective), None))
    found += [NextStep("widen", BestAtRangeEdge(edge), None) for edge in find_range_edges(results) if edge.further]
    if (
        when
        and when.is_late
        and not SAMPLER_CAPABILITIES[results.spec.search.sampler].tries_every_cell
        and not is_space_exhausted(results)
    ):
        late = BestCameLate(when, results.spec.objective.has_several_metrics)
        found.append(NextStep("search", late, study_command("resume", name, "--trials", f"+{math.ceil(when.of / 2)}")))
    if results.is_confirmed:
        found += _seed_steps(results, baseline, best)
    elif any(results.rule_pick_arm(arm) is None for arm in (best, baseline) if arm):
        top = min(PROPOSED_CONFIRM_COUNT, len(results.ranked_by_search_value))
        why = NextStepReason("baseline on own seeds alone" if results.rule_pick_arm(best) else "own seeds alone")
        found.append(NextStep("confirm", why, _confirm_command(results.spec, top, PROPOSED_CONFIRM_COUNT)))
    if reference:
        return [NextStep("enough", UseReference(reference), None), *found]
    further = [step for step in found if step.kind != "enough"]
    return further or found or [NextStep("enough", _no_step_left(results), None)]


def _constraints_step(results: Results) -> list[NextStep]:
    """Return the step to run those on fresh seeds that keep the limits in the search, where the result breaks them."""
    searched, (_, score) = results.ranked_by_search_value, results.scored_candidates[0]
    if results.reference_as_result or not score.total_violation:
        return []
    again = {trial.repeated_trial for trial in results.record.trials_of_stages("confirm", "rule")}
    keeping = [each for each in searched if not each.score.total_violation and each.trial.number not in again]
    named = keeping[:MAX_NAMED_KEEPING_CONSTRAINTS]
    if not named:
        return []
    on_front = len(objective.front_positions([each.score for each in searched]))  # of a larger one not all would run
    top = max(searched.index(named[-1]) + 1, on_front if results.spec.objective.has_several_metrics else 0)
    options = "--top", top, "--seeds", results.confirmation.settings.seeds
    broken = results.spec.objective.broken_constraints(score)
    why = ConstraintsKeptInSearchOnly(results.spec, broken, [arm_of_candidate(results.spec, each) for each in named])
    return [NextStep("confirm", why, study_command("confirm", results.spec.name, *options))]


def predict_command(spec: StudySpec) -> str | None:
    """Return the command that classifies with a final training's models, and names rows as the user's table does.

    None where `study predict` refuses them.
    """
    section = spec.base["data"]
    if not spec.has_models_that_predict:
        return None
    if section["name"] != "table":
        return f"{study_command('predict', spec.name)} INPUTS -o classes.csv"
    named = section.get("key") or section.get("group")
    by = f" --id {shlex.quote(str(named))}" if named else " [--id COLUMN]"
    return f"{study_command('predict', spec.name)} TABLE.csv{by} -o classes.csv"


def evaluate_command(spec: StudySpec) -> str:
    """Return the command that measures a final training's model on the test split."""
    return study_command("evaluate", spec.name, "--split", "test")


def is_best_better_than_baseline(results: Results) -> bool | None:
    """Return whether the search found what is better than the baseline, with several metrics in any, or by the limits.

    None where its seeds do not tell. What ran on one seed is taken as better: whether it is, `confirm` tells.
    """
    baseline, best = results.baseline_and_best_arms
    won = results.best
    if baseline is None or best is None or won is None:
        return True
    if won.trial.stage == "baseline":
        return results.spec.objective.has_several_metrics and len(results.front) > 1
    judged = [each and (each.confirmed_score or each.score) for each in (results.baseline, won)]
    if judged[0] and judged[1] and judged[0].total_violation > judged[1].total_violation:
        return True
    gains = (best.difference_to(baseline, name) for name in results.spec.objective.metrics)
    return None if all(gain is not None and gain.is_clear is False for gain in gains) else True


def _no_step_left(results: Results) -> NoStepLeft:
    """Return the step when nothing asks for more."""
    trials = sum(trial.has_started for trial in results.record.trials_of_stages("search"))
    held = results.incumbent_standing
    keep: Literal["margin", "better"] = "margin" if held and held.held_back_lead else "better"
    is_kept = is_best_better_than_baseline(results) is False
    return NoStepLeft(trials, is_space_exhausted(results), results.is_confirmed, keep if is_kept else "")


def is_space_exhausted(results: Results) -> bool:
    """Return whether every configuration of the space was tried."""
    search = results.spec.search
    if any(domain.is_range_of_reals for domain in search.space.values()):
        return False  # told without PyTorch, which the declarations of keys import
    there = count_configurations(search, results.spec.space)
    return there is not None and results.record.n_configurations_tried >= there


def _seed_steps(results: Results, baseline: Arm | None, best: Arm) -> list[NextStep]:
    """Return the step of more seeds for the best and the baseline, or else for the best and the runner-up.

    Empty where more seeds are not needed.
    """
    gain = best.difference_to(baseline, results.spec.metric) if baseline is not None else None
    if baseline is not None:
        if gain is not None and not results.spec.is_better(gain.value, 0.0):
            return []
        if gain is not None and not gain.is_clear:
            return _more_seeds_step(results, best, baseline, gain)
    others = find_rivals(results)
    if (
        others is None
        or others.runner_up.trial_number not in others.undecided_trials
        or results.spec.is_better(0.0, others.difference_to_runner_up.value)
    ):
        return []  # of a runner-up with the better mean the margin is known, which more seeds hardly change
    reach = max(map(abs, others.difference_to_runner_up.interval or (math.inf,)))
    if baseline is not None and gain is not None and reach < MIN_RELEVANT_SHARE_OF_GAIN * abs(gain.value):
        why = MoreSeedsNotNeeded(best, others.runner_up, reach, gain.value)
        return [NextStep("enough", why, None)]
    return _more_seeds_step(results, best, others.runner_up, others.difference_to_runner_up)


def _confirm_command(spec: StudySpec, top: int, seeds: int) -> str:
    """Return the command that runs the best on so many fresh seeds; with folds, of which each takes one, at least."""
    return study_command("confirm", spec.name, "--top", top, "--seeds", math.ceil(seeds / (spec.folds or 1)))


def _more_seeds_step(results: Results, best: Arm, other: Arm, gap: Difference) -> list[NextStep]:
    seeds = len(best.metric_by_seed(results.spec.metric).keys() & other.metric_by_seed(results.spec.metric).keys())
    order = [candidate.trial.number for candidate in results.ranked_by_search_value]
    top = max(order.index(number) + 1 for number in (best.trial_number, other.trial_number) if number in order)
    ask = partial(_confirm_command, results.spec, top)
    if gap.is_over_samples and gap.standard_error != 0.0:
        return [NextStep("enough", UndecidedBySamples(best, other), None)]
    if gap.interval is None or seeds < 2:
        return [NextStep("seeds", UndecidedBySeeds(best, other, seeds, None), ask(PROPOSED_CONFIRM_COUNT))]
    if not gap.standard_error:
        return []  # alike on every seed, or draw of the samples
    right = [arm.metric_statistics("val/accuracy") for arm in (best, other)]
    if all(one and one.mean == 1.0 for one in right):
        return [NextStep("enough", MoreSeedsNotNeeded(best, other, None, gap.value), None)]
    needed = estimate_seeds_needed(gap, seeds)
    command = None if needed.fewest is None else ask(needed.next_batch)
    if needed.fewest is None or (needed.middle is None and seeds > 2):
        return [NextStep("enough", UndecidedBySeeds(best, other, seeds, needed, command), None)]
    return [NextStep("seeds", UndecidedBySeeds(best, other, seeds, needed), command)]
