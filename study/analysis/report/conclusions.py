"""What a study found and what it leaves open, in sentences computed from its trials; no more than the numbers carry."""

from collections import Counter
from collections.abc import Iterator

from study.analysis.statistics import formatting
from study.analysis.statistics.difference import Difference, Side, difference, final_side, sides
from study.home.record import StudyRecord
from study.ranking import candidates
from study.spec import StudySpec


def message(spec: StudySpec, record: StudyRecord) -> list[str]:
    """One or two sentences: what the search gained over the baseline, chosen by which split, on which seeds."""
    reference, chosen = sides(spec, record)
    final = final_side(record)
    if spec.final_seeds is not None:
        return _final(spec, final) if final else ["No seed of the final training has run to the end yet."]
    if chosen and reference:
        return _gained(spec, reference, chosen)
    if chosen:
        return [
            f"The best configuration of the search, {chosen.label}, reaches {_said(spec.metric, chosen)}.",
            "There is no complete baseline to compare it with, so what the search gained is not known.",
        ]
    known = f"The baseline reaches {_said(spec.metric, reference)}. " if reference else ""
    if not record.trials:
        return ["No trial has been started yet."]
    return [f"{known}No trial of the search has run to the end yet, so nothing can be said about what it gives."]


def caveats(spec: StudySpec, record: StudyRecord) -> Iterator[str]:
    """What a reader could take for known and is not."""
    reference, chosen = sides(spec, record)
    final = final_side(record)
    is_search = spec.final_seeds is None
    trials = list(record.trials.values())
    if is_search and chosen and reference is None:
        yield "There is no complete baseline, so what the search gained is not known."
    planned, seen = record.limit(spec.trials), sum(trial.stage in ("baseline", "search") for trial in trials)
    if is_search and seen < planned:
        ended = f": {formatting.LIMITS[record.enough]}" if record.enough in formatting.LIMITS else ""
        yield f"{seen} of the {planned} planned trials of the search were started{ended}."
    for state in ("running", "waiting", "interrupted"):
        if numbers := [trial.number for trial in trials if trial.state == state]:
            yield f"{formatting.count(len(numbers), 'trial')} {state}: {formatting.listed(numbers)}."
    reasons = Counter(trial.why or "no reason given" for trial in trials if trial.state == "failed")
    for reason, count in reasons.items():
        yield f"{formatting.count(count, 'trial')} failed: {reason}"
    blank = [trial.number for trial in trials if trial.state == "complete" and trial.last(spec.metric) is None]
    if blank:
        yield f"{spec.metric} is not a number at the last epoch of {_trials(blank)}, which count for nothing here."
    unconfirmed = sorted(one.trial.number for one in candidates(record, spec) if one.confirmed is None)
    if unconfirmed:
        yield f"{_trials(unconfirmed).capitalize()} ran at full budget, but on one seed only: not confirmed on others."
    yield from _unread(spec, record)
    for trial in trials:
        if trial.untested:
            yield f"The test split could not be read for trial {trial.number}: {trial.untested}"
    if final and len(final.seeds(spec.metric)) < 2:
        yield "There is one seed, so the spread over seeds is not known."


def _unread(spec: StudySpec, record: StudyRecord) -> Iterator[str]:
    """For which configurations the test split was read."""
    if spec.base["train"]["report_test"]:
        yield "The test split was looked at in each epoch of every trial (train.report_test). It chose nothing."
        return
    compared = [side for side in (*sides(spec, record), final_side(record)) if side]
    read = [side.label for side in compared if side.spread(spec.test_metric)]
    if read and spec.final_seeds is None:
        yield f"The test split was read only for {formatting.listed(read)}; no other trial's test metrics are known."
    elif compared and not read:
        yield "The test split was not read."


def _trials(numbers: list[int]) -> str:
    return f"trial{'s' if len(numbers) > 1 else ''} {formatting.listed(numbers)}"


def _final(spec: StudySpec, final: Side) -> list[str]:
    said = [f"The final training reaches {_said(spec.metric, final)}."]
    test = spec.test_metric
    if final.spread(test):
        said.append(f"On the test split it reaches {_said(test, final)}.")
    return said


def _gained(spec: StudySpec, reference: Side, chosen: Side) -> list[str]:
    name, test = spec.metric, spec.test_metric
    found = difference(chosen.spread(name), reference.spread(name))
    assert found is not None  # both sides are complete and have the metric
    after, before = (formatting.mean(name, side.spread(name)) for side in (chosen, reference))
    if spec.better(found.value, 0.0):
        verb = "raised" if spec.mode == "max" else "lowered"
        first = f"The search {verb} {name} from {before} (baseline) to {after} ({chosen.label})"
    else:
        first = f"The search found nothing better than the baseline: {name} is {before} for the baseline"
        first += f" and {after} for the best of the search ({chosen.label})"
    said = f"{first}, chosen by the validation split, {_on(name, reference, chosen)}."
    tested = difference(chosen.spread(test), reference.spread(test))
    if tested is None:
        return [said, f"That is {_carries(spec, name, found)}; the test split was not read for both."]
    after, before = (formatting.mean(test, side.spread(test)) for side in (chosen, reference))
    on_which = "" if chosen.seeds(test) == chosen.seeds(name) else f" ({_on(test, reference, chosen)})"
    second = f"On the test split, which chose nothing, {test} is {after} against {before} of the baseline{on_which}"
    return [said, f"{second}: {_carries(spec, test, tested)}."]


def _carries(spec: StudySpec, name: str, found: Difference) -> str:
    """A difference on either split, and whether it stands out of the spread over seeds."""
    amount = formatting.change(name, found.value)
    if found.clear is None:
        return f"{amount}, and one seed is too few to tell this from luck"
    amount += f" (95% interval {formatting.interval(name, found)})"
    if found.clear:
        return f"{amount}, {'better' if spec.better(found.value, 0.0) else 'worse'} beyond the spread over seeds"
    return f"{amount}, too little to stand out of the spread over seeds"


def _said(name: str, side: Side) -> str:
    return f"{name} {formatting.mean(name, side.spread(name))} ({formatting.seeds(side.seeds(name))})"


def _on(name: str, reference: Side, chosen: Side) -> str:
    """The seeds of both, once where they are the same."""
    before, after = reference.seeds(name), chosen.seeds(name)
    if before == after:
        return f"both on {formatting.seeds(after)}"
    return f"the baseline on {formatting.seeds(before)}, {chosen.label} on {formatting.seeds(after)}"
