"""The networks as they were at the end of the epoch that a rule takes."""

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor, nn


class Choice(Protocol):
    """Says which epoch of a trial is taken; its state is plain values."""

    def hear(self, report: Mapping[str, Any], /) -> bool:
        """Take in the next epoch's metrics. Says whether it is the chosen one now."""

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` goes on from."""

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        """Go on from there."""


class ChosenWeights:
    """A copy of the networks at the end of the epoch chosen so far.

    It is a part of a trial's state and lies in its checkpoint: epochs behind the checkpoint are trained, and chosen
    among, again. A file of weights beside it could be of an epoch that comes out otherwise then.

    Args:
        networks: as they are trained.
        choice: hears each epoch.
    """

    def __init__(self, networks: nn.Module, choice: Choice) -> None:
        self._networks, self._choice = networks, choice
        self._weights: dict[str, Tensor] = {}

    def hear(self, report: Mapping[str, float]) -> None:
        """Take in an epoch's metrics, and copy the networks as they are if it is the chosen one now."""
        if self._choice.hear(report):
            self._weights = {name: tensor.detach().clone() for name, tensor in self._networks.state_dict().items()}

    def put_back(self) -> None:
        """Give the networks the weights of the chosen epoch."""
        self._networks.load_state_dict(self._weights)

    def state_dict(self) -> dict[str, Any]:
        return {"choice": self._choice.state_dict(), "weights": self._weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._choice.load_state_dict(state["choice"])
        self._weights = dict(state["weights"])
