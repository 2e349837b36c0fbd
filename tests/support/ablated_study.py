"""A study's ablation, written into its ledger."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Protocol

from study.home.events import AblationRequested, Event

PARAMS = {"method.alpha": 0.01, "method.lambda": 1.5, "method.epsilon": 0.25}
BASELINE = {"method.alpha": 1.0, "method.lambda": 0.0, "method.epsilon": 0.0}


class Writer(Protocol):
    """Writes a study's ledger."""

    def append(self, event: Event) -> None: ...

    def trial(self, stage: str, values: Sequence[float | None], **given: Any) -> int: ...


WORTH = {"method.alpha": 0.20, "method.lambda": 0.05, "method.epsilon": 0.0}


def write_ablation(
    study: Writer,
    best: int,
    end: Mapping[str, Any] = PARAMS,
    seeds: Sequence[int] = (7, 8, 9),
    both: float = 0.0,
    **given: Any,
) -> None:
    """The ablation of a trial, every step worth its `WORTH`, alpha and lambda together `both` more."""
    study.append(AblationRequested(trial=best, steps=tuple((key,) for key in WORTH), first=seeds[0], seeds=len(seeds)))
    for count in range(len(WORTH) + 1):
        for moved in combinations(WORTH, count):
            params = {key: (end if key in moved else BASELINE)[key] for key in WORTH}
            value = 0.5 + sum(WORTH[key] for key in moved) + both * ({"method.alpha", "method.lambda"} <= set(moved))
            repeats = {0: 0, len(WORTH): best}.get(count)
            for seed in seeds:
                luck = 0.01 * (seed % 3) + 0.002 * ((seed * (1 + len(str(moved)))) % 5)
                named = {"params": params, "seed": seed} | ({"repeats": repeats} if repeats is not None else {})
                study.trial("ablation", [0.3, value + luck], test=value + luck - 0.1, **named, **given)
