"""Which trials of a study one process trains together, and why others run by themselves."""

from collections.abc import Mapping
from typing import Any

from study.spec import StudySpec
from study.training.stack.together import apart

MOST_CASES = 32
"""Configurations that are looked at."""


def stacks(spec: StudySpec) -> dict[str, Any] | None:
    """What `resources.stack` does to a study's trials, as plain values; None where it asks for nothing.

    Returns:
        `trials`, `draws`: as the study file says; `alone`: reasons, each with a configuration that has to be trained by
        itself; `divides`: searched keys in which the trials of one stack are equal.
    """
    stack = spec.resources.stack
    if stack.trials == "none":
        return None
    cases = list(spec.space.cases())[:MOST_CASES]
    alone: dict[str, Mapping[str, Any]] = {}
    divides: set[str] = set()
    for case in cases:
        config = spec.trial_config(case)
        if (why := apart(config, config)) is not None:
            alone.setdefault(why, case)
            continue
        for key, domain in spec.space.domains.items():
            low, *_, high = [*domain.ends(), domain.ends()[-1]]
            if key not in case and low != high and spec.space.applies(key, case):
                ends = [spec.trial_config({**case, key: end}) for end in (low, high)]
                divides |= {key} if apart(*ends) else set()
    if len(cases) > 1:
        divides |= {key for case in cases for key in case if len({str(other.get(key)) for other in cases}) > 1}
    return {"trials": stack.trials, "draws": stack.draws, "alone": alone, "divides": sorted(divides)}


def lines(document: Mapping[str, Any] | None) -> list[str]:
    """The same for people."""
    if document is None:
        return []
    trials = document["trials"]
    many = "as many trials as show to be fastest" if trials == "auto" else f"up to {trials} trials"
    draws = "its own" if document["draws"] == "own" else "a shared"
    told = [f"stacks: one process trains {many} together, each with {draws} order of samples (resources.stack)"]
    if document["divides"]:
        told.append(f"  trials of one stack are equal in {', '.join(document['divides'])}")
    for why, case in document["alone"].items():
        which = ", ".join(f"{key} = {value}" for key, value in case.items()) or "every trial"
        told.append(f"  by itself: {which}, as {why}")
    return told
