"""Batches that do not fit: the network sees them in parts, the loss as a whole (`train.micro_batch`).

GradCache, Gao et al. 2021 (arXiv 2101.06983): every part is embedded without keeping what its gradient needs, the loss
is taken of all embeddings at once, and for each embedding's gradient its part goes through the network again. So a
contrastive loss sees all negatives of the batch. Loss and gradients are those of the whole batch, to rounding.

Batch normalisation is the exception: its statistics are those of a part. Running statistics take each part once.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import checkpoint

from study.methods import Method
from study.models import Encoder, Network
from study.training.config import TrainOptions
from study.training.optimization import plain

NORMS = nn.modules.batchnorm._BatchNorm


def split(method: Method, options: TrainOptions) -> None:
    """Have the networks of a method take the views of `train.micro_batch` samples at a time; without it, of all."""
    if options.micro_batch is None or options.micro_batch >= options.batch_size:
        return
    for module in list(method.modules()):
        if isinstance(module, Network | Encoder):
            module.forward = InParts(module, options.micro_batch * method.views)  # type: ignore[method-assign]


class InParts:
    """The forward pass of a module, part by part where its input has more rows than one.

    Args:
        module: gives a tensor, or a tuple of them, a row for each row of its input.
        rows: of a part at most.
    """

    def __init__(self, module: nn.Module, rows: int) -> None:
        self._forward, self._rows = module.forward, rows
        self._norms = [part for part in module.modules() if isinstance(part, NORMS)]

    def __call__(self, inputs: Tensor) -> Any:
        if len(inputs) <= self._rows or not torch.is_grad_enabled():
            return self._forward(inputs)
        parts = inputs.tensor_split(-(-len(inputs) // self._rows))
        outputs = [self._again_later(part) for part in parts]
        if isinstance(outputs[0], Tensor):
            return torch.cat(outputs)
        return tuple(torch.cat(each) for each in zip(*outputs, strict=True))

    def _again_later(self, part: Tensor) -> Any:
        """Return what it gives for a part; what its gradient needs is computed when it is asked for, with the same
        chance."""
        return plain(checkpoint.checkpoint)(self._forward, part, use_reentrant=False, context_fn=self._contexts)

    def _contexts(self) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), _not_counted(self._norms)


@contextmanager
def _not_counted(norms: Sequence[Any]) -> Iterator[None]:
    """Running statistics stay as they are: they have had this part before."""
    kept = [(norm, norm.momentum, norm.num_batches_tracked) for norm in norms]
    for norm in norms:
        norm.momentum, norm.num_batches_tracked = 0.0, None
    try:
        yield
    finally:
        for norm, momentum, count in kept:
            norm.momentum, norm.num_batches_tracked = momentum, count
