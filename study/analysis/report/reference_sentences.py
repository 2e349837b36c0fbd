"""What the report says of a search beside what needs none: in the sentences on the result, and in the table of both."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from study.analysis.statistics import formatting
from study.home.record import StudyRecord
from study.ranking import Reference, Results
from study.ranking.difference import Side, side_of
from study.spec import StudySpec

if TYPE_CHECKING:  # brings the library, which sentences do not need
    import pandas as pd

TITLE = "With and without a search"


def reference_result(results: Results) -> Iterator[str]:
    """Yield how what the search found stands beside what needs none; nothing without references or configurations."""
    won = results.best
    if won is None or results.spec.varied_data:
        return
    side, stays = side_of(results.spec, won), results.unbeaten
    if stays is not None:
        yield from _stays(results, side, stays)
    elif best := results.best_reference:
        yield from _beaten(results, side, best)
    for other in results.above:
        if other.kind.needs_group:
            yield f"{other.words} is better ({_values(results.spec, other)}) and not chosen: {NEEDS}."
    unjudged = [one.words for one in results.references if one.score is None]
    if unjudged:
        names = formatting.listed(results.spec.objective.needed)
        yield f"Not compared, as {names} is not known of them: {formatting.listed(unjudged)}."


NEEDS = "it needs the group of whom it judges, and draws by chance"


def _values(spec: StudySpec, of: Reference) -> str:
    return ", ".join(f"{name} {formatting.value(name, of.metrics.get(name))}" for name in spec.objective.needed)


def _stays(results: Results, side: Side, stays: Reference) -> Iterator[str]:
    """Yield that a reference is the result."""
    spec = results.spec
    head = f"The result needs no search: {stays.words}, with {_values(spec, stays)}"
    tested = stays.metrics.get(spec.test_metric)
    head += "" if tested is None else f" ({spec.test_metric} {formatting.value(spec.test_metric, tested)})"
    held = results.ahead_of
    if held is not None and held.ahead and (lead := held.ahead[0]).error is not None:
        ahead, margin = (formatting.change(spec.metric, of, False) for of in (lead.gain, held.margin * lead.error))
        leading = side_of(spec, lead.candidate).words
        yield (
            f"{head}. {leading[0].upper()}{leading[1:]} is {ahead} ahead of it, within the margin of {margin} "
            f"({held.margin:g} times the standard error): it stays."
        )
        return
    own, name = side.spread(spec.metric), spec.metric
    value = stays.metrics[name]
    if spec.objective.several or own is None or value is None:
        yield f"{head}: no worse than {side.words} in any metric, and better in one."
        return
    gap = abs(own.mean - value)
    limits = " and ".join(spec.search.constraints)
    if spec.better(own.mean, value):
        yield f"{head}. {side.words[0].upper()}{side.words[1:]} is better in {name}, and misses {limits}."
    elif formatting.change(name, gap) == formatting.change(name, 0.0):
        yield f"{head}; no configuration is better, {side.words} is as good."
    else:
        yield f"{head}, {formatting.change(name, gap, signed=False)} better than {side.words}."


def _beaten(results: Results, side: Side, best: Reference) -> Iterator[str]:
    """Yield by how much the result gains over the baseline and over the best reference, on validation and on test; of
    several metrics, the values beside those of the reference."""
    needs = "neither a search nor the group" if results.above else "no search"
    without, who = f"the best that needs {needs} ({best.words})", f"{side.words[0].upper()}{side.words[1:]}"
    reference, _ = results.sides
    for split in ("val", "test"):
        names = [f"{split}/{name.split('/')[1]}" for name in results.spec.objective.metrics]
        known = {name: value for name in names if (value := best.metrics.get(name)) is not None and side.spread(name)}
        if results.spec.objective.several and known:
            pairs = (f"{name} {_mean(name, side)} against {formatting.value(name, known[name])}" for name in known)
            yield f"{who if split == 'val' else 'The same on the test split'} beside {without}: {', '.join(pairs)}."
        elif known:
            gains = list(_gains(results.spec, names[0], side, reference, known[names[0]]))
            is_more = all(gain >= 0 for gain in gains)
            told = [formatting.change(names[0], gain, signed=not is_more) for gain in gains]
            over = " and ".join(map(" over ".join, zip(told, ["the baseline", without][-len(told) :], strict=True)))
            verb = "gains" if is_more else "has"
            yield f"{who} {verb} {over}." if split == "val" else f"On the test split it {verb} {over}."


def _gains(spec: StudySpec, name: str, side: Side, reference: Side | None, value: float) -> Iterator[float]:
    """By how much a side is better in a metric than the baseline, where that is another, and than a value."""
    own = side.spread(name)
    before = reference.spread(name) if reference and reference.number != side.number else None
    assert own
    for other in [*([before.mean] if before else []), value]:
        yield other - own.mean if spec.direction(name) == "min" else own.mean - other


def _mean(name: str, side: Side) -> str:
    return formatting.mean(name, side.spread(name))


def reference_notes(results: Results) -> Iterator[str]:
    """A sentence on each reference that could not be fitted."""
    for name, reason in results.failed_references.items():
        yield f"The reference {name} could not be fitted: {reason}"


def printed_references(results: Results, metrics: list[str]) -> "pd.DataFrame":
    """The baseline, what needs no search and what the search found, a row each, with these metrics; empty without
    references."""
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
    return {"what": words, **{name: formatting.mean(name, of.spread(name)) for name in metrics}}


def references_frame(record: StudyRecord) -> "pd.DataFrame":
    """A row per reference: its name, whether it was fitted, why not, the seconds that took, and every metric."""
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
