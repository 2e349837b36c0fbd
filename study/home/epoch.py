"""What a trial reported after one epoch, small in memory: a study of 10,000 trials of 50 epochs has half a million."""

from array import array
from collections.abc import Iterator, Mapping
from typing import Any

NAN = float("nan")

_PLACES: dict[tuple[str, ...], dict[str, int]] = {}
"""Where each metric stands, by the names of an epoch's metrics; the same for most epochs of a study."""


LARGEST = 1e100
"""A number beyond it, either way, counts as infinite: sums of squares of such are."""


def finite(metrics: Mapping[str, float]) -> dict[str, float | None]:
    """Metrics as a ledger keeps them: None for what is not a number, or infinite, see `LARGEST`."""
    return {name: value if abs(value) <= LARGEST else None for name, value in metrics.items()}


class Epoch(Mapping[str, Any]):
    """Metrics by name, and `epoch`, from 1; None for one that is not a number.

    A mapping that holds numbers alone: the names are shared by all epochs that have the same ones.
    """

    __slots__ = ("_places", "_values")

    def __init__(self, epoch: int, metrics: Mapping[str, float | None]) -> None:
        names = tuple(metrics)
        if names not in _PLACES:
            _PLACES[names] = {name: place for place, name in enumerate(("epoch", *names))}
        self._places = _PLACES[names]
        self._values: array[float]
        try:
            self._values = array("d", (epoch, *metrics.values()))  # type: ignore[arg-type]
        except TypeError:  # rare: one of them is None
            self._values = array("d", [epoch, *(NAN if value is None else value for value in metrics.values())])

    @property
    def names(self) -> Mapping[str, int]:
        """The names, in order; one object for all epochs that have the same ones."""
        return self._places

    def __getitem__(self, name: str) -> Any:
        value = self._values[self._places[name]]
        if name == "epoch":
            return int(value)
        return value if value == value else None  # nan is not itself

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return f"Epoch({dict(self)})"
