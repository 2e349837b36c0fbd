"""The machines of a simulated study."""

import math
from dataclasses import dataclass

from study.errors import UserError


@dataclass(frozen=True)
class Nodes:
    """Nodes of one kind.

    Attributes:
        count: how many.
        slots: trials that run on one at once.
        start: seconds until one is there.
        process: seconds until a slot's first trial begins; later ones find its process.
        preempted: how often one is taken away, per hour; another one comes after `start`.
        straggling: standard deviation of the logarithm of what an epoch takes; a trial keeps its factor until it is
            cut off. The median is 1.
        speed: by which epochs are divided.
        price: of one slot for an hour, from the moment that its node is asked for.
    """

    count: int = 1
    slots: int = 1
    start: float = 0.0
    process: float = 0.0
    preempted: float = 0.0
    straggling: float = 0.0
    speed: float = 1.0
    price: float = 0.0

    def __post_init__(self) -> None:
        for name, low in {"count": 1, "slots": 1}.items():
            if getattr(self, name) < low:
                raise UserError(f"nodes: {name} {getattr(self, name)} given, allowed is at least {low}")
        for name in ("start", "process", "preempted", "straggling", "price"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise UserError(f"nodes: {name} {value} given, allowed is a number from 0 on")
        if not (math.isfinite(self.speed) and self.speed > 0):
            raise UserError(f"nodes: speed {self.speed} given, allowed is a number above 0")


@dataclass(frozen=True)
class Cluster:
    """Nodes of some kinds, and what a study takes besides its epochs.

    Attributes:
        nodes: of each kind.
        begins: seconds until the first node is asked for.
        trial: seconds of a slot for each trial, besides its epochs.
        checkpoint: seconds at least between two checkpoints of a trial, to which one that is cut off goes back.
        ends: seconds from the last trial's end to the study's.
    """

    nodes: tuple[Nodes, ...] = (Nodes(),)
    begins: float = 0.0
    trial: float = 0.0
    checkpoint: float = 1.0
    ends: float = 0.0

    @classmethod
    def of(cls, slots: int) -> "Cluster":
        """So many slots, which are there at once and for ever and cost nothing."""
        return cls((Nodes(slots=slots),))

    @property
    def slots(self) -> int:
        """Trials that run at once."""
        return sum(kind.count * kind.slots for kind in self.nodes)
