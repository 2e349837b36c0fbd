"""Checks of what a study searches for and limits: its metrics exist, and which direction of them is better is known."""

from study import metrics
from study.errors import nearest
from study.spec import own_function
from study.spec.checks import Problems
from study.spec.document import Key
from study.spec.objective import Constraint
from study.spec.sections import train_knobs
from study.spec.study_spec import StudySpec


def check_metrics(spec: StudySpec, problems: Problems) -> None:
    """Check that every metric that is searched for or limited exists on the validation split of all data sets."""
    search = spec.search
    by_data = [[]] if spec.function else spec.available
    valid = [f"val/{name}" for name in by_data[0] if all(name in others for others in by_data)]
    searched = [search.metric] if isinstance(search.metric, str) else search.metric
    named: list[tuple[Key, str]] = [(("search", "metric"), name) for name in searched]
    if len(set(searched)) < len(searched):
        problems.add(("search", "metric"), f"{searched} given: one is repeated")
    for index, text in enumerate(search.constraints):
        place: Key = ("search", "constraints", str(index))
        try:
            named.append((place, Constraint.parse(text).metric))
        except ValueError as error:
            problems.add(place, str(error))
    _check_directions(spec, searched, problems)
    if spec.function:
        own_function.check_metrics(dict(named), problems)
        return
    for at, name in named:
        if name not in valid:
            problems.add(at, f"{name!r} given. {_hint(name, valid)}Allowed: {', '.join(valid)}")


def _check_directions(spec: StudySpec, searched: list[str], problems: Problems) -> None:
    """Check that it is known of each metric whether a higher or a lower value is better, and that nothing else is
    given."""
    given, at = spec.search.direction, ("search", "direction")
    if isinstance(given, list) and len(given) != len(searched):
        problems.add(at, f"{given} given, allowed is one for each of {len(searched)} metrics: {', '.join(searched)}")
        return
    if unknown := [name for name in searched if spec.function and not spec.direction(name)]:
        allowed = "max or min" if len(searched) == 1 else f"a list of max and min, for {', '.join(searched)}"
        python = "maximize=True or False" if len(searched) == 1 else "maximize=[True, False, ...]"
        problems.add(
            at,
            f"is missing: the name {', '.join(unknown)} does not say whether a higher or a lower value is better. "
            f"Allowed: {allowed} (study.run: {python})",
        )
    for name in searched:
        says = metrics.better(name)
        if says and metrics.is_certain(name) and spec.direction(name) != says:
            word = "higher" if says == "max" else "lower"
            message = f"{spec.direction(name)!r} given for {name}, of which a {word} value is better. Allowed: {says}"
            problems.add(at, f"{message}; what should go the other way needs another name")


def _hint(name: str, valid: list[str]) -> str:
    """What to do about a metric that a study cannot have."""
    metric = metrics.METRICS.get(name.removeprefix("val/"))
    if metric and metric.of_inferred:
        kinds = " or ".join(kind for kind in train_knobs()["inferred_groups"].names if kind != "none")
        return f"It needs train.inferred_groups: {kinds}. "
    note = "test metrics cannot be used to choose. " if name.startswith("test/") else ""
    return f"{note}{nearest(name, valid)}"
