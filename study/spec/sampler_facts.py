"""What each sampler can search and what it is good for, known before a study begins.

A sampler is an entry here and the module of its name in `study/sweep/samplers`, which suggests parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from study.spec.schema import SamplerName


@dataclass(frozen=True)
class SamplerFacts:
    """What a sampler can search, and how it does.

    Attributes:
        good_for: the searches to choose it for, for the guide.
        limits: what it does not do, for the guide.
        metrics: how many it can search at once; None: any number.
        independent: whether its draws do not depend on the trials before.
        guided: whether it looks at the values of trials.
        foreseeable: whether the forecast of what more trials gain (`study.ranking.remaining_gain`) was tested with it.
        every_key: whether each trial must have every key of the space.
        ranges_only: whether it searches no choices.
        every_cell: whether it tries each cell of a grid once.
        most_values: most values of a range with steps or of whole numbers; None: any number.
    """

    good_for: str
    limits: str
    metrics: int | None = None
    independent: bool = False
    guided: bool = True
    foreseeable: bool = False
    every_key: bool = False
    ranges_only: bool = False
    every_cell: bool = False
    most_values: int | None = None


GENERATION = 20
"""Trials per generation of the genetic samplers: studies of networks have hundreds of trials, Optuna's 50 is for
thousands."""

_GENETIC = SamplerFacts(
    "a front of several metrics, hundreds of trials", f"random for the first {GENERATION} complete trials"
)

SAMPLERS: Mapping[SamplerName, SamplerFacts] = {
    "cmaes": SamplerFacts(
        "ranges alone, hundreds of trials",
        "one metric; every trial must have every key",
        metrics=1,
        every_key=True,
        ranges_only=True,
    ),
    "gp": SamplerFacts(
        "few, expensive trials; constraints",
        "every trial must have every key; tenths of a second per suggestion",
        every_key=True,
        most_values=1_000_000,  # it has all of them in memory
    ),
    "grid": SamplerFacts(
        "every cell, in the file's order",
        "choices, whole numbers, or ranges with a `step`; at most 100,000 cells",
        guided=False,
        every_cell=True,
    ),
    "nsga2": _GENETIC,
    "nsga3": _GENETIC,
    "qmc": SamplerFacts(
        "covering the space evenly (Sobol), as for a table of two knobs",
        "learns nothing",
        guided=False,
        foreseeable=True,
    ),
    "random": SamplerFacts(
        "covering the space, statements about chance",
        "learns nothing",
        independent=True,
        guided=False,
        foreseeable=True,
    ),
    "tpe": SamplerFacts(
        "most searches; conditions, several metrics, constraints",
        "looks at the 100 best and the 200 newest trials",
        foreseeable=True,
    ),
}
"""Samplers by name, as in `search.sampler`."""
