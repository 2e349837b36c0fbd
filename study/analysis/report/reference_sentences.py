"""What the report says of a search beside what needs none: in the sentences on the result, and in the table of both."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from study.analysis.statistics import formatting
from study.home.record import StudyRecord
from study.metrics.intervals import Z_95
from study.ranking import FittedReference, Results
from study.ranking.arms import Arm, arm_of_candidate
from study.ranking.incumbents import CandidateLead
from study.ranking.json_documents import Statement
from study.spec import StudySpec
from study.text import sentence_case

if TYPE_CHECKING:  # brings the library, which sentences do not need
    import pandas as pd


class BetterReferenceNotChosen(Statement):
    """A reference that is better than the result, and not chosen."""

    reference: FittedReference
    spec: StudySpec

    def __str__(self) -> str:
        values = _reference_metrics_text(self.spec, self.reference)
        return f"{self.reference.name_in_sentence} is better ({values}) and not chosen: {NEEDS_GROUP_TEXT}."


NEEDS_GROUP_TEXT = "it needs the group of whom it judges, and draws by chance"


class ReferencesNotCompared(Statement):
    """References that are not compared, as they lack one of these metrics of the study."""

    references: Sequence[FittedReference]
    metrics: Sequence[str]

    def __str__(self) -> str:
        of = sentence_case(formatting.join_with_and(one.name_in_sentence for one in self.references))
        why = "is not compared: it has no" if len(self.references) == 1 else "are not compared: they have no"
        return f"{of} {why} {formatting.join_with_and(self.metrics)}."


class ReferenceIsResult(Statement):
    """A reference that is the result.

    Attributes:
        arm: the configuration that leads.
        baseline: the baseline, where that is another configuration.
        lead: how far what leads is ahead of the reference, where the margin keeps it from being chosen.
        leading: words for what leads.
        margin: in standard errors.
    """

    reference: FittedReference
    arm: Arm
    baseline: Arm | None
    lead: CandidateLead | None
    leading: str
    margin: float

    @property
    def arms(self) -> list[Arm]:
        """What it is compared with: the baseline, and the configuration that leads."""
        return [*([self.baseline] if self.baseline else []), self.arm]

    def __str__(self) -> str:
        spec, lead = self.arm.spec, self.lead
        head = (
            f"The result needs no search: {self.reference.name_in_sentence}, with "
            f"{_reference_metrics_text(spec, self.reference)}"
        )
        if spec.objective.has_several_metrics:
            return f"{head}. It is no worse than {self.arm.label_in_sentence} in any metric, and better in one."
        if lead is None or lead.standard_error is None:
            return f"{'; '.join([head, *map(self._comparison_text, self.arms)])}."
        gain, margin = (
            formatting.format_difference(spec.metric, of, signed=False)
            for of in (lead.gain, self.margin * lead.standard_error)
        )
        return (
            f"{head}. {sentence_case(self.leading)} is {gain} ahead of it in {spec.metric}, within the margin of "
            f"{margin} ({self.margin:g} times the standard error): it stays."
        )

    def is_clear_against(self, arm: Arm) -> bool | None:
        """Return whether the interval of the difference to one of the `arms` leaves out 0; None: it has none."""
        difference = arm.difference_to(arm_of_candidate(arm.spec, self.reference), arm.spec.metric)
        return difference.is_clear if difference else None

    def _comparison_text(self, arm: Arm) -> str:
        spec, name, who = arm.spec, arm.spec.metric, arm.label_in_sentence
        own, value = arm.metric_statistics(name), self.reference.metrics[name]
        assert own
        assert value is not None
        measured = formatting.format_arm_mean(arm, name)
        gap = formatting.format_difference(name, abs(own.mean - value), signed=False)
        if gap == formatting.format_difference(name, 0.0, signed=False):
            return f"{who} is as good ({measured})"
        if spec.is_better(own.mean, value):
            means = {each: arm.metric_statistics(each.metric) for each in spec.objective.constraints}
            broken = [str(each) for each, of in means.items() if of and each.violation_of(of.mean) > 0]
            return f"{who} is better ({measured}), and misses {' and '.join(broken)}"
        though = ", which may be luck" if self.is_clear_against(arm) is False else ""
        return f"{who} is {gap} worse ({measured}){though}"


class ReferenceResultOnTest(Statement):
    """A reference that is the result, beside configurations on the test split, by the metrics that all of them have.

    Attributes:
        arms: the reference first.
    """

    metrics: Sequence[str]
    arms: Sequence[Arm]

    def __str__(self) -> str:
        told = []
        for name in self.metrics:
            values = (f"{formatting.format_arm_mean(arm, name)} for {arm.label_in_sentence}" for arm in self.arms)
            told.append(f"{name} is {formatting.join_with_and(values)}")
        return f"On the test split, which was not used to choose, {'; '.join(told)}."


class ResultBesideReference(Statement):
    """The result beside the best of what needs no search, on one split.

    Attributes:
        names: the study's metrics, as the reference has them.
        is_surpassed: whether a reference is above it that needs the group.
        ahead: on the test split of one metric, the other references that are better there, the best first.
    """

    names: Sequence[str]
    arm: Arm
    reference: FittedReference
    is_surpassed: bool
    ahead: Sequence[FittedReference] = ()

    @property
    def accuracies_ahead_and_behind(self) -> tuple[list[str], list[str]]:
        """Accuracies of test in which the arm is ahead, and behind, of a study with one metric.

        Both are empty where all say the same as that metric.
        """
        if self.names[1:] or not self.names[0].startswith("test/"):
            return [], []
        known = [
            (name, own.mean - other)
            for name in COMPARED_TEST_ACCURACIES
            if (own := self.arm.metric_statistics(name)) and (other := self.reference.metrics.get(name)) is not None
        ]
        if all(lead * self.gain >= 0 for _, lead in known):
            return [], []
        return [name for name, lead in known if lead > 0], [name for name, lead in known if lead < 0]

    @property
    def gain(self) -> float:
        """Gain of the arm over the reference in the first metric."""
        own, value = self.arm.metric_statistics(self.names[0]), self.reference.metrics[self.names[0]]
        assert own
        assert value is not None
        return (own.mean - value) * (-1 if self.arm.spec.direction(self.names[0]) == "min" else 1)

    @property
    def is_lead_within_sampling_error(self) -> bool:
        """Whether the lead is less than two standard errors, as if the two were judged by different samples.

        As both are judged by the same, that is too large rather than too small. False where an error is unknown.
        """
        name = self.names[0]
        own, error = self.arm.metric_statistics(name), self.arm.metric_statistics(f"{name}_standard_error")
        other = self.reference.metrics.get(f"{name}_standard_error")
        if own is None or error is None or other is None:
            return False
        of_seeds = (own.standard_deviation or 0.0) / math.sqrt(own.count)
        return abs(self.gain) < Z_95 * math.hypot(error.mean, other, of_seeds)

    def _interval_text(self) -> str:
        """Return the interval of the lead, where both were judged on all folds, and whether it may be luck."""
        found = self.arm.difference_to(arm_of_candidate(self.arm.spec, self.reference), self.names[0])
        if found is None or found.interval is None or not self.gain:
            return " (within the error of the split's samples)" * (
                self.is_lead_within_sampling_error and self.gain != 0
            )
        ends = sorted(end if found.value > 0 else -end for end in found.interval)
        between = formatting.format_difference_interval(self.names[0], replace(found, interval=(ends[0], ends[1])))
        return f" (95% interval {between}){', which may be luck' * (not found.is_clear)}"

    def __str__(self) -> str:
        is_val, who, name = self.names[0].startswith("val/"), self.arm.label_in_sentence, self.names[0]
        needs = "neither a search nor the group" if self.is_surpassed else "no search"
        without = f"{self.reference.name_in_sentence}, the best on validation that needs {needs}"
        if self.reference.score and self.reference.score.total_violation:
            without = f"{self.reference.name_in_sentence}, which of what needs {needs} comes nearest to the limits"
        if self.arm.spec.objective.has_several_metrics:
            pairs = (
                f"{name} {formatting.format_arm_mean(self.arm, name)} against "
                f"{formatting.format_metric_value(name, self.reference.metrics[name])}"
                for name in self.names
            )
            of = sentence_case(who) if is_val else "The same on the test split"
            return f"{of} beside {without}: {', '.join(pairs)}."
        amount = formatting.format_difference(name, abs(self.gain), signed=False)
        lead = f"{amount} {'ahead of' if self.gain > 0 else 'behind'}" if self.gain else "level with"
        if is_val:
            return f"In {name} {who} is {lead} {without}{self._interval_text()}."
        better = [
            f"{one.name_in_sentence} ({formatting.format_metric_value(self.names[0], one.metrics[self.names[0]])})"
            for one in self.ahead
        ]
        verb_of_all = "is" if len(better) == 1 else "are"
        there = f" {sentence_case(formatting.join_with_and(better))} {verb_of_all} better on it." if better else ""
        told = [
            f"{where} in {formatting.join_with_and(map(self._values_text, names))}"
            for where, names in zip(("ahead", "behind"), self.accuracies_ahead_and_behind, strict=True)
            if names
        ]
        but = f" {sentence_case(who)} is {', and '.join(told)}." if told else ""
        return f"On the test split {who} is {lead} it in {name}{self._interval_text()}.{there}{but}"

    def _values_text(self, name: str) -> str:
        """Return an accuracy with its values: `test/accuracy (76.5 ± 1.5% against 70.8%)`."""
        other = formatting.format_metric_value(name, self.reference.metrics[name])
        return f"{name} ({formatting.format_arm_mean(self.arm, name)} against {other})"


def reference_statements(results: Results) -> Iterator[Statement]:
    """Yield how what the search found stands beside what needs none; nothing without references or configurations."""
    won, spec = results.best, results.spec
    if won is None or spec.varied_data_keys or not results.are_references_comparable:
        return
    arm = arm_of_candidate(spec, won)
    before = results.baseline_and_best_arms[0]
    reference = results.reference_as_result
    held = results.reference_standing
    baseline = before if before and before.trial_number != arm.trial_number else None
    if reference is not None:
        lead = held.leads[0] if held and held.leads else None
        leading = arm_of_candidate(spec, lead.candidate).label_in_sentence if lead else ""
        said = ReferenceIsResult(reference, arm, baseline, lead, leading, held.margin if held else 0.0)
        yield said
        arms = [arm_of_candidate(spec, reference), *said.arms]
        tests = (f"test/{name.split('/')[1]}" for name in spec.objective.metrics)
        if known := [name for name in tests if all(each.metric_statistics(name) for each in arms)]:
            yield ReferenceResultOnTest(known, arms)
    elif best := results.best_reference:
        for split in ("val", "test"):
            names = [f"{split}/{name.split('/')[1]}" for name in spec.objective.metrics]
            if known := [name for name in names if best.metrics.get(name) is not None and arm.metric_statistics(name)]:
                ahead = _references_ahead(results, known, arm) if split == "test" else ()
                chosen = replace(arm, n_candidates=results.n_candidates_for(won))
                yield ResultBesideReference(known, chosen, best, bool(results.references_above_best), ahead)
    above = (other for other in results.references_above_best if other.kind.predicts_by_group)
    yield from (
        BetterReferenceNotChosen(other, spec)
        for other in above
        if not reference or _is_reference_better(other, reference)
    )
    if unjudged := [one for one in results.references if one.score is None and not one.kind.is_constant]:
        yield ReferencesNotCompared(unjudged, spec.objective.needed_metrics)


def _is_reference_better(one: FittedReference, other: FittedReference) -> bool:
    return one.score is not None and other.score is not None and one.score.constrained_dominates(other.score)


COMPARED_TEST_ACCURACIES = (
    "test/shrunk_unbiased_accuracy",
    "test/conflicting_accuracy",
    "test/worst_group_accuracy",
    "test/worst_class_accuracy",
    "test/accuracy",
)
"""Accuracies that may say otherwise than the study's metric of a result and a reference."""


def _references_ahead(results: Results, metrics: Sequence[str], arm: Arm) -> list[FittedReference]:
    """Return the references that need no group and are better on a split, the best first; none with several metrics."""
    [name, *others], own = metrics, arm.metric_statistics(metrics[0])
    if others or own is None:
        return []
    known = [(value, one) for one in results.references if (value := one.metrics.get(name)) is not None]
    better = [
        pair for pair in known if results.spec.is_better(pair[0], own.mean) and not pair[1].kind.predicts_by_group
    ]
    in_order = sorted(better, key=lambda pair: pair[0], reverse=results.spec.mode == "max")
    return [one for _, one in in_order if one != results.best_reference]


def _reference_metrics_text(spec: StudySpec, of: FittedReference) -> str:
    return ", ".join(
        f"{name} {formatting.format_metric_value(name, of.metrics.get(name))}" for name in spec.objective.needed_metrics
    )


class ReferenceNotFitted(Statement):
    """Why a reference could not be fitted."""

    reference: str
    why: str

    def __str__(self) -> str:
        return f"The reference {self.reference} could not be fitted: {self.why}"


def references_table(results: Results, metrics: list[str]) -> "pd.DataFrame":
    """Return a row of text for the baseline, each reference and the search's best; empty without references."""
    import pandas as pd

    if not results.references:
        return pd.DataFrame()
    (baseline, best), reference = results.baseline_and_best_arms, results.reference_as_result
    arms = {"the baseline": baseline} | {
        one.name_with_needs + " (the result)" * (one == reference): arm_of_candidate(results.spec, one)
        for one in results.references
    }
    arms |= {f"the search: {best.label}": best} if best else {}
    told = [(words, arm) for words, arm in arms.items() if arm]
    return pd.DataFrame(
        [{"what": words} | {name: formatting.format_arm_mean(arm, name) for name in metrics} for words, arm in told]
    )


def references_frame(record: StudyRecord) -> "pd.DataFrame":
    """Return a row per reference: name, whether it was fitted and why not, seconds, and every metric."""
    import pandas as pd

    rows = [
        {
            "reference": event.name,
            "state": "complete" if event.reason is None else "failed",
            "reason": event.reason,
            "seconds": event.seconds,
            **(event.metrics or {}),
        }
        for event in record.reference_events.values()
    ]
    return pd.DataFrame(rows)
