"""What each sampler can search and what it is good for, known before a study begins.

A sampler is an entry here and a class in `study/sweep/samplers.py`, which suggests parameters.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from study.spec.schema import SamplerName


@dataclass(frozen=True)
class SamplerCapabilities:
    """What a sampler can search, and how it does.

    Attributes:
        good_for: the searches to choose it for, for the guide.
        limits: what it does not do, for the guide.
        learns_from_results: whether it looks at the values of trials.
        needs_every_key: whether each trial must have every key of the space.
        tries_every_cell: whether it tries each cell of a grid once.
        max_values_per_key: most values of a range with steps or of whole numbers; None: any number.
    """

    good_for: str
    limits: str
    learns_from_results: bool = True
    needs_every_key: bool = False
    tries_every_cell: bool = False
    max_values_per_key: int | None = None


SAMPLER_CAPABILITIES: Mapping[SamplerName, SamplerCapabilities] = {
    "gp": SamplerCapabilities(
        "few, expensive trials; constraints",
        "every trial must have every key; tenths of a second per suggestion",
        needs_every_key=True,
        max_values_per_key=1_000_000,  # it has all of them in memory
    ),
    "grid": SamplerCapabilities(
        "every cell, in the file's order",
        "choices, whole numbers, or ranges with a `step`; at most 100,000 cells",
        learns_from_results=False,
        tries_every_cell=True,
    ),
    "qmc": SamplerCapabilities(
        "covering the space evenly (Sobol), as for a table of two knobs", "learns nothing", learns_from_results=False
    ),
    "random": SamplerCapabilities(
        "covering the space, statements about chance", "learns nothing", learns_from_results=False
    ),
    "tpe": SamplerCapabilities(
        "most searches; conditions, several metrics, constraints", "looks at the 100 best and the 200 newest trials"
    ),
}
"""Samplers by name, as in `search.sampler`."""
