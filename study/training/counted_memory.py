"""The memory that a trial would take on a GPU, counted without one.

The networks, one training step and one batch of evaluation run on tensors that have shapes and no values. Each storage
counts from when it is made until it is freed, as in PyTorch's allocator. Left out are what CUDA holds for the process,
workspaces of its libraries, and what the allocator loses between tensors.
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from study import models
from study.data.dataset import Facts
from study.methods import Batch, Labels, Method
from study.training import augment, evaluation, optimization
from study.training.config import TrialConfig
from study.training.evaluation import networks
from study.training.optimization import groups, optimizer


class CannotCount(Exception):
    """A network or a loss looks at values where it is built or trained, which are not there."""


@dataclass(frozen=True)
class CountedMemory:
    """Bytes of a trial.

    Attributes:
        step: at the peak of a training step, networks and optimizer included.
        evaluation: at the peak of a batch of evaluation, the same included.
        without_loss: the loss looks at values, so that its own memory could not be counted.
        batch_norm: a network has batch normalisation.
        state: what a checkpoint holds, weights and optimizer.
    """

    step: int
    evaluation: int
    without_loss: bool
    batch_norm: bool
    state: int


class Storages(TorchDispatchMode):
    """Counts the bytes of all storages that operations make, while they live."""

    def __init__(self) -> None:
        super().__init__()
        self.held = self.peak = 0
        self._seen: dict[int, Any] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(given):
            if isinstance(leaf, FakeTensor):
                self._take(leaf.untyped_storage())
        return given

    def _take(self, storage: torch.UntypedStorage) -> None:
        identity = storage._cdata
        if identity in self._seen:
            return
        size = storage.nbytes()
        self._seen[identity] = weakref.finalize(storage, self._free, identity, size)
        self.held += size
        self.peak = max(self.peak, self.held)

    def _free(self, identity: int, size: int) -> None:
        del self._seen[identity]
        self.held -= size


def count(config: TrialConfig, facts: Facts) -> CountedMemory:
    """Count a trial's memory.

    Args:
        facts: of its data.

    Raises:
        CannotCount: its network cannot be built or trained without values.
    """
    shape = augment.output_shape(config.train.augmentation, facts.shape, config.train)
    models.unsuited(config.model, replace(facts.on("train"), shape=shape))  # its answer is kept, and needs values
    for with_loss in (True, False):
        try:
            step, evaluated, batch_norm, state = _counted(config, facts, with_loss)
        except Exception as error:  # whatever an operation says that needs values
            problem = error
        else:
            return CountedMemory(step, evaluated, not with_loss, batch_norm, state)
    raise CannotCount(str(problem)) from problem


def _counted(config: TrialConfig, facts: Facts, with_loss: bool) -> tuple[int, int, bool, int]:
    options = config.train
    with torch.random.fork_rng(devices=[]), FakeTensorMode(allow_non_fake_inputs=True), Storages() as storages:
        with _not_cut_off():
            trained = networks(config, facts, begins=False)
        method: Method = trained["method"]  # type: ignore[assignment]
        optimization.take_in_parts(method, options)
        main = optimizer(groups(method, options), options, torch.device("cpu"))
        batch = _batch(config, facts, method)
        with unset_fake_temporarily():  # methods look at the values of all labels, once
            method.begin(_known(config, facts))
        method.begin_epoch(1, options.epochs)
        method.train()
        with _precision(options.precision):
            parts = [method(batch)[0]] if with_loss else [_first(part).sum() for part in _embedded(method, batch)]
            loss = torch.stack(parts).sum()
        loss.backward()
        main.step()
        del loss, parts
        main.zero_grad()
        step, storages.peak = storages.peak, storages.held
        method.eval()
        size = evaluation.batch_size(options, method.views, facts.shape)
        with torch.no_grad(), _precision(options.precision):
            images = torch.empty(size, *_evaluated(config, facts))
            method.network.encoder(images)
        norms = any(isinstance(part, optimization.NORMS) for part in method.modules())
        kept = tree_leaves([trained.state_dict(), main.state_dict()])
        state = sum(one.nbytes for one in kept if isinstance(one, Tensor))
    return step, storages.peak, norms, state


@contextmanager
def _not_cut_off() -> Iterator[None]:
    """Weights of a normal distribution that is cut off are not drawn: PyTorch draws until it sees none outside."""
    drawn = nn.init.trunc_normal_
    nn.init.trunc_normal_ = lambda tensor, *_, **__: tensor
    try:
        yield
    finally:
        nn.init.trunc_normal_ = drawn


def _embedded(method: Method, batch: Batch) -> Iterator[Any]:
    networks = {id(encoder): encoder for encoder in method.encoders().values()}
    for encoder in networks.values():
        yield encoder(batch.views.flatten(0, 1))


def _first(given: Any) -> Tensor:
    first: Tensor = given[0] if isinstance(given, tuple) else given
    return first.float()


def _batch(config: TrialConfig, facts: Facts, method: Method) -> Batch:
    size, shape = config.train.batch_size, augment.output_shape(config.train.augmentation, facts.shape, config.train)
    labels = torch.zeros(size, dtype=torch.long)
    condition = torch.zeros(size, facts.condition) if facts.condition else None
    bias = None if facts.bias_classes is None else labels
    features = None
    if config.method.get("bias_source") == "model":
        bias, features = None, torch.zeros(size, 512)
    views = torch.empty(method.views, size, *shape)
    return Batch(views, Labels(labels, bias, condition, features), labels)


def _known(config: TrialConfig, facts: Facts) -> Labels:
    """Labels of as many samples as a batch has, each class and group among them."""
    samples = torch.arange(config.train.batch_size)
    bias = None if facts.bias_classes is None else samples // facts.classes % facts.bias_classes
    chance = torch.Generator().manual_seed(0)
    condition = torch.randn(len(samples), facts.condition, generator=chance) if facts.condition else None
    return Labels(samples % facts.classes, bias, condition)


def _evaluated(config: TrialConfig, facts: Facts) -> tuple[int, ...]:
    side = config.train.evaluation_size
    return facts.shape if side is None or facts.is_table else (facts.shape[0], side, side)


@contextmanager
def _precision(precision: str) -> Iterator[None]:
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        yield
