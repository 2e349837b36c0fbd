"""What every method is: networks, and the loss that trains them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable

from torch import Tensor, nn

from study.methods.batch import Batch, Labels
from study.models import Encoder, Network

NewNetwork = Callable[[], Network]
"""Gives the trial's network, initialised anew at each call."""


class Method(nn.Module, ABC):
    """A module whose `forward` gives the value to minimise for one batch; one optimizer trains all its parameters.

    State that must survive a stop is in buffers.

    Attributes:
        network: what a trial is about: its encoder is probed, evaluated and kept.
        views: how many views of each sample a batch must hold.
        equalizes_odds: its predictions are made by a threshold of each bias class, fitted to the training split.
    """

    network: Network
    views: int = 1
    equalizes_odds: bool = False

    def begin(self, train: Labels) -> None:
        """Called once before the first epoch with the labels of the whole training split."""

    def begin_epoch(self, epoch: int, epochs: int) -> None:
        """Called before each epoch, the first is 1, `epochs` is the last."""

    def recording(self) -> Hashable | None:
        """What decides which operations a step of a full batch has, None: the batch does, or what a step left behind.

        As long as it stays the same, one step can be recorded and given to the device again (`train.graph`): nothing
        is asked of the device, and state changes in place.
        """
        return None

    @abstractmethod
    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss, a scalar, and for each of `encoders()` its features of the first view, (B, F)."""

    def encoders(self) -> dict[str, Encoder]:
        """The encoders that are probed, by name: `encoder` is what the method is for."""
        return {"encoder": self.network.encoder}

    def own_classifier(self) -> nn.Module | None:
        """From the encoder's features (B, F) to scores (B, classes), as of this epoch; None: a probe is trained."""
        return None

    def diagnose(self, batch: Batch) -> dict[str, Tensor]:
        """Scalars about the method's inner workings, measured on one batch an epoch."""
        return {}
