"""Whether the trials that a search can give are valid as a whole, asked before anything starts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from study.data import Facts
from study.methods import OWN
from study.spec import own_function
from study.spec.checks import params_text
from study.spec.document import Key
from study.spec.resources import Resources
from study.spec.schema import Domain
from study.spec.sections import Params, Sections
from study.spec.space import Space
from study.training import compatibility

Describe = Callable[[Mapping[str, Any]], Facts]


def faults(trial: Mapping[str, Mapping[str, Any]], facts: Facts) -> Iterator[tuple[tuple[str, str], str]]:
    """What is wrong with the complete sections of a trial: the key to change, as (section, key), and why."""
    method = trial["method"]
    if apart := list(own_function.faults(trial)):
        yield from apart
        return
    if method["name"] == OWN:
        return
    if "epsilon" in method and method["epsilon"] > 2.0 / method["temperature"]:
        limit = 2.0 / method["temperature"]
        why = f"{method['epsilon']!r} given, allowed is at most 2/temperature = {limit:g} (FairKL paper A.2)"
        yield ("method", "epsilon"), why
    yield from compatibility.problems(trial, facts)


def check_trials(
    sections: Sections, describe: Describe, space: Space, cases: Iterable[Params], configurations: Mapping[Key, Params]
) -> Iterator[tuple[Key, str]]:
    """The problems of the search's trials, each once: the place in the search that causes it, and what is wrong.

    Checked are all combinations of the keys that decide on others, and in each the ends of ranges and the choices of
    the other keys. Problems of the file's own configuration are left out.

    Args:
        sections: complete and valid, each for itself.
        describe: gives the facts about a data section.
        configurations: those that the search is given, by their place.
    """
    own = sections.trial({})
    seen: set[Any] = {why for _, why in faults(own, describe(own["data"]))}
    searched = ((("search", "space"), params) for case in cases for params in _ends(space, case))
    for at, params in [*configurations.items(), *searched]:
        trial = sections.trial(params)
        for (section, name), why in faults(trial, describe(trial["data"])):
            suspects = _suspects(f"{section}.{name}", space, params)
            place = (*at, *list(suspects)[:1])
            others = {key: value for key, value in suspects.items() if not why.startswith(f"{value!r} given")}
            if not {why, (place, why)} & seen:
                seen.add((place, why))
                yield place, f"with {params_text(others)}: {why}" if others else why


def _ends(space: Space, case: Params) -> Iterator[dict[str, Any]]:
    """Trials of one case: all keys at their lowest end, each in turn at its others, all at the highest."""
    domains = {key: domain for key, domain in space.domains.items() if key not in case and space.applies(key, case)}
    lowest = {**case, **{key: domain.ends()[0] for key, domain in domains.items()}}
    yield lowest
    for key, domain in domains.items():
        yield from ({**lowest, key: end} for end in domain.ends()[1:] if not isinstance(end, float))
    yield {**case, **{key: _highest(domain) for key, domain in domains.items()}}


def _highest(domain: Domain) -> Any:
    ends = domain.ends()
    numbers = [end for end in ends if isinstance(end, int | float)]
    return max(numbers) if len(numbers) == len(ends) else ends[-1]


def _suspects(key: str, space: Space, params: Params) -> dict[str, Any]:
    """The parameters that may cause a problem with a key, the likeliest first.

    The key itself and all that vary, floats aside; if there are none, all of its section.
    """
    own = {key: params[key]} if key in params else {}
    constant = {other for other, domain in space.domains.items() if len(domain.ends()) == 1}
    varied = {other: value for other, value in params.items() if other not in constant and not isinstance(value, float)}
    section = key.split(".")[0]
    return own | varied or {other: value for other, value in params.items() if other.startswith(f"{section}.")}


def resources(taken: Resources) -> Iterator[tuple[Key, str]]:
    """What is wrong with what a trial takes, with the place of it: more than one GPU, a kind of none."""
    if taken.gpu > 1:
        yield (
            ("resources", "gpu"),
            f"{taken.gpu:g} given, allowed is at most 1: a trial trains on one card, further ones would idle",
        )
    if taken.accelerator is not None and taken.gpu == 0:
        why = f"{taken.accelerator!r} given, but a trial takes no GPU: resources.gpu is 0"
        yield ("resources", "accelerator"), why
