"""What every method is, and the part of the data that it sees."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from study.knobs import Value
from study.models import Encoder, Network


@dataclass(frozen=True)
class BatchLabels:
    """Labels of some training samples.

    Attributes:
        target: classes, (B,), `UNKNOWN_LABEL` for an unlabelled sample.
        bias: bias classes, (B,), `UNKNOWN_LABEL` where unknown; None: the data have none.
        condition: continuous attributes, (B, K), or None.
        bias_features: of a bias-capturing model, (B, F), or None where labels are used.
        weight: of each in the loss of a classifier, (B,), see `study.methods.sample_weights`; None: all weigh 1.
    """

    target: Tensor
    bias: Tensor | None = None
    condition: Tensor | None = None
    bias_features: Tensor | None = None
    weight: Tensor | None = None

    def loss_tensors_by_name(self) -> dict[str, Tensor | None]:
        """Return the tensors that a loss may ask for by name: the bias is either classes or features."""
        bias = self.bias if self.bias_features is None else None
        return {"target": self.target, "bias": bias, "bias_features": self.bias_features}

    def select_samples(self, index: Tensor) -> "BatchLabels":
        """Select the labels of the samples at these positions."""
        return self.map_tensors(lambda tensor: tensor[index])

    def map_tensors(self, function: Callable[[Tensor], Tensor]) -> "BatchLabels":
        """Apply a function to each tensor."""
        tensors = (self.target, self.bias, self.condition, self.bias_features, self.weight)
        return BatchLabels(*(None if tensor is None else function(tensor) for tensor in tensors))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Batch:
    """Samples of one step.

    Attributes:
        views: normalised inputs, (V, B, ...).
        labels: of the samples.
        index: their positions in the training split, (B,).
        host_index: a copy of `index` on the host, from which shapes can follow without a wait for the device; None:
            unknown.
    """

    views: Tensor
    labels: BatchLabels
    index: Tensor
    host_index: Tensor | None = None


class PerSampleBuffer(nn.Module):
    """A value that a method remembers for each training sample, part of its state.

    Its length comes with `allocate`, or with a state that is loaded: also a method that never began can load one.

    Args:
        fill: the value that every sample has at first; its type is that of the values.
    """

    values: Tensor

    def __init__(self, fill: float | bool) -> None:
        super().__init__()
        self.fill = fill
        self.register_buffer("values", torch.full((0,), fill))
        self.register_load_state_dict_pre_hook(_resize_to_loaded_state)

    def allocate(self, samples: int) -> None:
        """Allocate a value for each sample, all `fill`, on the device of the values so far."""
        self.values = torch.full((samples,), self.fill, device=self.values.device)


def _resize_to_loaded_state(module: PerSampleBuffer, state: dict[str, Tensor], prefix: str, *_: Value) -> None:
    if (loaded := state.get(f"{prefix}values")) is not None and loaded.shape != module.values.shape:
        module.allocate(len(loaded))


def compute_embeddings(network: Network, views: Tensor) -> tuple[Tensor, Tensor]:
    """Return features (V, B, F) and unit embeddings (V, B, D) of views (V, B, ...)."""
    shape = views.shape[:2]
    features, embeddings = network(views.flatten(0, 1))
    return features.unflatten(0, shape), functional.normalize(embeddings, dim=1).unflatten(0, shape)


NetworkFactory = Callable[[], Network]
"""Function that builds the trial's network, initialised anew at each call."""


class Method(nn.Module, ABC):
    """A module of networks whose `forward` returns the loss of one batch; one optimizer trains all its parameters.

    State that must survive a stop is in buffers.

    Attributes:
        network: what a trial is about: its encoder is probed, evaluated and kept.
        views: number of views of each sample that a batch must hold.
        equalizes_odds: its predictions are made by a threshold of each bias class, fitted to the training split.
        reference_to_fit: name of the model that is fitted at once (`study.methods.reference`); None: it is trained by
            steps.
    """

    network: Network
    views: int = 1
    equalizes_odds: bool = False
    reference_to_fit: str | None = None

    def prepare_training(self, train: BatchLabels) -> None:
        """Prepare for training; called once before the first epoch with the labels of the whole training split."""

    def begin_epoch(self, epoch: int, epochs: int) -> None:
        """Prepare for an epoch; called before each, the first is 1, `epochs` is the last."""

    def cuda_graph_key(self) -> Hashable | None:
        """Return a value that changes when the operations of a step of a full batch change.

        None: they depend on the batch, or on what a step left behind. As long as the value stays the same, one step can
        be recorded as a graph and launched again (`train.graph`): nothing is asked of the device, and state changes in
        place.
        """
        return None

    @abstractmethod
    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss, a scalar, and for each of `encoders()` its features of the first view, (B, F)."""

    def encoders(self) -> dict[str, Encoder]:
        """Return the encoders that are probed, by name: `encoder` is the one that the method is for."""
        return {"encoder": self.network.encoder}

    def own_classifier(self) -> nn.Module | None:
        """Return the classifier of this epoch, from the encoder's features (B, F) to scores (B, classes).

        None: a probe is trained instead.
        """
        return None

    def diagnose(self, batch: Batch) -> dict[str, Tensor]:
        """Return scalars about the method's inner workings, measured on one batch an epoch."""
        return {}
