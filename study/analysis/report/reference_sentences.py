"""What the report says of a search beside what needs none: in the sentences on the result, and in the table of both."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from study.analysis.statistics import formatting
from study.home.record import StudyRecord
from study.ranking import Reference, Results
from study.ranking.candidates import Lead
from study.ranking.difference import Side, side_of
from study.ranking.documents import Statement
from study.spec import StudySpec
from study.text import sentence_case

if TYPE_CHECKING:  # brings the library, which sentences do not need
    import pandas as pd

TITLE = "With and without a search"


class Unchosen(Statement):
    """A reference that is better and not chosen."""

    reference: Reference
    spec: StudySpec

    def __str__(self) -> str:
        return f"{self.reference.words} is better ({_values(self.spec, self.reference)}) and not chosen: {NEEDS}."


NEEDS = "it needs the group of whom it judges, and draws by chance"


class NotCompared(Statement):
    """References that are not compared, as they lack one of these metrics of the study."""

    references: Sequence[Reference]
    metrics: Sequence[str]

    def __str__(self) -> str:
        of = formatting.listed(one.words for one in self.references)
        return f"Not compared, as {formatting.listed(self.metrics)} is not known of them: {of}."


class ReferenceStays(Statement):
    """A reference that is the result.

    Attributes:
        side: the configuration that leads.
        baseline: the baseline, where that is another configuration.
        lead: how far what leads is ahead of the reference, where the margin keeps it from being chosen.
        leading: words for what leads.
        margin: in standard errors.
    """

    reference: Reference
    side: Side
    baseline: Side | None
    lead: Lead | None
    leading: str
    margin: float

    @property
    def sides(self) -> list[Side]:
        """What it is compared with: the baseline, and the configuration that leads."""
        return [*([self.baseline] if self.baseline else []), self.side]

    def __str__(self) -> str:
        spec, lead = self.side.spec, self.lead
        head = f"The result needs no search: {self.reference.words}, with {_values(spec, self.reference)}."
        if spec.objective.several:
            return f"{head} It is no worse than {self.side.words} in any metric, and better in one."
        if lead is None or lead.error is None:
            return f"{head} {' '.join(map(self._against, self.sides))}"
        gain, margin = (
            formatting.change(spec.metric, of, signed=False) for of in (lead.gain, self.margin * lead.error)
        )
        return (
            f"{head} {sentence_case(self.leading)} is {gain} ahead of it, within the margin of {margin} "
            f"({self.margin:g} times the standard error): it stays."
        )

    def _against(self, side: Side) -> str:
        spec, name, who = side.spec, side.spec.metric, side.words
        own, value = side.spread(name), self.reference.metrics[name]
        assert own
        assert value is not None
        measured = formatting.measured(side, name)
        gap = formatting.change(name, abs(own.mean - value), signed=False)
        if gap == formatting.change(name, 0.0, signed=False):
            return f"{sentence_case(who)} is as good ({measured})."
        if spec.better(own.mean, value):
            return f"{sentence_case(who)} is better ({measured}), and misses {' and '.join(spec.search.constraints)}."
        return f"{sentence_case(who)} is {gap} worse ({measured})."


class ReferenceOnTest(Statement):
    """A reference that is the result, beside configurations on the test split, by the metrics that all of them have."""

    metrics: Sequence[str]
    reference: Reference
    sides: Sequence[Side]

    def __str__(self) -> str:
        told = []
        for name in self.metrics:
            others = [f"{formatting.measured(side, name)} for {side.words}" for side in self.sides]
            own = f"{formatting.value(name, self.reference.metrics[name])} for {self.reference.words}"
            told.append(f"{name} is {formatting.listed([own, *others])}")
        return f"On the test split, which chose nothing, {'; '.join(told)}."


class BesideReference(Statement):
    """The result beside the best of what needs no search, on one split.

    Attributes:
        names: the study's metrics, as the reference has them.
        baseline: the baseline, where that is another configuration.
        is_surpassed: whether a reference is above it that needs the group.
        ahead: on the test split of one metric, the other references that are better there, the best first.
    """

    names: Sequence[str]
    side: Side
    reference: Reference
    baseline: Side | None
    is_surpassed: bool
    ahead: Sequence[Reference] = ()

    @property
    def ahead_in(self) -> list[str]:
        """Accuracies of test in which the reference is ahead, though the result gains in the study's one metric."""
        if self.names[1:] or not self.names[0].startswith("test/") or self.gains[-1] <= 0:
            return []
        known = [(name, self.side.spread(name), self.reference.metrics.get(name)) for name in ACCURACIES]
        return [name for name, own, other in known if own and other is not None and other > own.mean]

    @property
    def gains(self) -> list[float]:
        """Gain of the side in the first metric over the baseline, if that is another, and over the reference."""
        name = self.names[0]
        own, before = self.side.spread(name), self.baseline.spread(name) if self.baseline else None
        value = self.reference.metrics[name]
        assert own
        assert value is not None
        sign = -1 if self.side.spec.direction(name) == "min" else 1
        return [sign * (own.mean - other) for other in (*([before.mean] if before else []), value)]

    def __str__(self) -> str:
        is_val, who = self.names[0].startswith("val/"), sentence_case(self.side.words)
        needs = "neither a search nor the group" if self.is_surpassed else "no search"
        without = f"the best on validation that needs {needs} ({self.reference.words})"
        if self.side.spec.objective.several:
            pairs = (
                f"{name} {formatting.measured(self.side, name)} against "
                f"{formatting.value(name, self.reference.metrics[name])}"
                for name in self.names
            )
            return f"{who if is_val else 'The same on the test split'} beside {without}: {', '.join(pairs)}."
        is_more = all(gain >= 0 for gain in self.gains)
        told = [formatting.change(self.names[0], gain, signed=not is_more) for gain in self.gains]
        over = " and ".join(map(" over ".join, zip(told, ["the baseline", without][-len(told) :], strict=True)))
        verb = "gains" if is_more else "has"
        if is_val:
            return f"{who} {verb} {over}."
        better = [f"{one.words} ({formatting.value(self.names[0], one.metrics[self.names[0]])})" for one in self.ahead]
        verb_of_all = "is" if len(better) == 1 else "are"
        there = f" {sentence_case(formatting.listed(better))} {verb_of_all} better on it." if better else ""
        behind = [
            f"{name} ({formatting.value(name, self.reference.metrics[name])} against "
            f"{formatting.measured(self.side, name)})"
            for name in self.ahead_in
        ]
        but = f" {sentence_case(self.reference.words)} is ahead in {formatting.listed(behind)}." if behind else ""
        return f"On the test split it {verb} {over}.{there}{but}"


def reference_result(results: Results) -> Iterator[Statement]:
    """Yield how what the search found stands beside what needs none; nothing without references or configurations."""
    won, spec = results.best, results.spec
    if won is None or spec.varied_data:
        return
    side, before, stays, held = side_of(spec, won), results.sides[0], results.unbeaten, results.ahead_of
    baseline = before if before and before.number != side.number else None
    if stays is not None:
        lead = held.ahead[0] if held and held.ahead else None
        leading = side_of(spec, lead.candidate).words if lead else ""
        said = ReferenceStays(stays, side, baseline, lead, leading, held.margin if held else 0.0)
        yield said
        tests = [f"test/{name.split('/')[1]}" for name in spec.objective.metrics]
        measured = [name for name in tests if stays.metrics.get(name) is not None]
        if known := [name for name in measured if all(each.spread(name) for each in said.sides)]:
            yield ReferenceOnTest(known, stays, said.sides)
    elif best := results.best_reference:
        for split in ("val", "test"):
            names = [f"{split}/{name.split('/')[1]}" for name in spec.objective.metrics]
            if known := [name for name in names if best.metrics.get(name) is not None and side.spread(name)]:
                ahead = _ahead(results, known, side) if split == "test" else ()
                yield BesideReference(known, side, best, baseline, bool(results.above), ahead)
    yield from (Unchosen(other, spec) for other in results.above if other.kind.needs_group)
    if unjudged := [one for one in results.references if one.score is None]:
        yield NotCompared(unjudged, spec.objective.needed)


ACCURACIES = (
    "test/shrunk_unbiased_accuracy",
    "test/worst_group_accuracy",
    "test/worst_class_accuracy",
    "test/accuracy",
)
"""Accuracies of a result in which a reference may be ahead though the result is ahead in the study's metric."""


def _ahead(results: Results, metrics: Sequence[str], side: Side) -> list[Reference]:
    """Return the references that need no group and are better on a split, the best first; none with several metrics."""
    [name, *others], own = metrics, side.spread(metrics[0])
    if others or own is None:
        return []
    known = [(value, one) for one in results.references if (value := one.metrics.get(name)) is not None]
    better = [pair for pair in known if results.spec.better(pair[0], own.mean) and not pair[1].kind.needs_group]
    return [one for _, one in sorted(better, key=lambda pair: pair[0], reverse=results.spec.mode == "max")]


def _values(spec: StudySpec, of: Reference) -> str:
    return ", ".join(f"{name} {formatting.value(name, of.metrics.get(name))}" for name in spec.objective.needed)


class NotFitted(Statement):
    """Why a reference could not be fitted."""

    reference: str
    why: str

    def __str__(self) -> str:
        return f"The reference {self.reference} could not be fitted: {self.why}"


def reference_notes(results: Results) -> Iterator[NotFitted]:
    """Yield each reference that could not be fitted."""
    yield from (NotFitted(name, why) for name, why in results.failed_references.items())


def printed_references(results: Results, metrics: list[str]) -> "pd.DataFrame":
    """Return a row of text for the baseline, each reference and the search's best; empty without references."""
    import pandas as pd

    found = results.references
    if not found:
        return pd.DataFrame()
    reference, best = results.sides
    stays = results.unbeaten
    baseline = [("the baseline", reference)] if reference else []
    searched = [(f"the search: {best.label}", best)] if best else []
    rows = [_row(words, metrics, side) for words, side in baseline]
    rows += [_row(one.label + (" (the result)" if one == stays else ""), metrics, one) for one in found]
    return pd.DataFrame(rows + [_row(words, metrics, side) for words, side in searched])


def _row(words: str, metrics: list[str], of: Side | Reference) -> dict[str, str]:
    if isinstance(of, Reference):
        return {"what": words, **{name: formatting.value(name, of.metrics.get(name)) for name in metrics}}
    return {"what": words, **{name: formatting.measured(of, name) for name in metrics}}


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
        for event in record.references.values()
    ]
    return pd.DataFrame(rows)
