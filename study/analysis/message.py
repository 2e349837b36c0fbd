"""What a study found, in sentences computed from its trials; no more than the numbers carry."""

from study.analysis import words
from study.analysis.compare import Difference, Side, difference, final_side, on_test, sides
from study.record import StudyRecord
from study.spec import StudySpec


def message(spec: StudySpec, record: StudyRecord) -> list[str]:
    """One or two sentences: what the search gained over the baseline, chosen by which split, on which seeds."""
    reference, chosen = sides(spec, record)
    final = final_side(record)
    if final and not chosen and not reference:
        return _final(spec, final)
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
    missing = "trial of the search" if reference or any(record.by_stage("search")) else "trial"
    return [f"{known}No {missing} has run to the end yet, so nothing can be said about what it gives."]


def _final(spec: StudySpec, final: Side) -> list[str]:
    said = [f"The final training reaches {_said(spec.metric, final)}."]
    test = on_test(spec)
    if final.spread(test):
        said.append(f"On the test split it reaches {_said(test, final)}.")
    return said


def _gained(spec: StudySpec, reference: Side, chosen: Side) -> list[str]:
    name, test = spec.metric, on_test(spec)
    found = difference(chosen.spread(name), reference.spread(name))
    assert found is not None  # both sides are complete and have the metric
    after, before = (words.mean(name, side.spread(name)) for side in (chosen, reference))
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
    after, before = (words.mean(test, side.spread(test)) for side in (chosen, reference))
    on_which = "" if chosen.seeds(test) == chosen.seeds(name) else f" ({_on(test, reference, chosen)})"
    second = f"On the test split, which chose nothing, {test} is {after} against {before} of the baseline{on_which}"
    return [said, f"{second}: {_carries(spec, test, tested)}."]


def _carries(spec: StudySpec, name: str, found: Difference) -> str:
    """A difference on either split, and whether it stands out of the spread over seeds."""
    amount = words.change(name, found.value)
    if found.clear is None:
        return f"{amount}, and one seed is too few to tell this from luck"
    amount += f" (95% interval {words.interval(name, found)})"
    if found.clear:
        return f"{amount}, {'better' if spec.better(found.value, 0.0) else 'worse'} beyond the spread over seeds"
    return f"{amount}, too little to stand out of the spread over seeds"


def _said(name: str, side: Side) -> str:
    return f"{name} {words.mean(name, side.spread(name))} ({words.seeds(side.seeds(name))})"


def _on(name: str, reference: Side, chosen: Side) -> str:
    """The seeds of both, once where they are the same."""
    before, after = reference.seeds(name), chosen.seeds(name)
    if before == after:
        return f"both on {words.seeds(after)}"
    return f"the baseline on {words.seeds(before)}, {chosen.label} on {words.seeds(after)}"
