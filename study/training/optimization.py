"""The optimizer and learning-rate schedule that a `train` section asks for, and batches in parts (`micro_batch`)."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.optimizer import ParamsT
from torch.utils import checkpoint

from study.methods import Method
from study.models import Encoder, Network
from study.training.config import TrainOptions

# PyTorch wraps the methods of optimizers for its compiler, and each call imports `torch._dynamo`: some 900 modules,
# SymPy and Triton among them, seconds of each process's first epoch. Here nothing is compiled, so the wrappers
# are taken off.

FunctionType = TypeVar("FunctionType", bound=Callable[..., Any])


def unwrap_function(function: FunctionType) -> FunctionType:
    """Return the function inside PyTorch's wrapper, where it has one."""
    return getattr(function, "__wrapped__", function)


class EagerOptimizer(Optimizer):
    """Optimizer whose calls do not import the compiler; it must be the first base class."""

    state_dict = unwrap_function(Optimizer.state_dict)
    load_state_dict = unwrap_function(Optimizer.load_state_dict)
    add_param_group = unwrap_function(Optimizer.add_param_group)
    zero_grad = unwrap_function(Optimizer.zero_grad)


class Adam(EagerOptimizer, torch.optim.Adam):
    """`torch.optim.Adam`, bit for bit."""

    step = torch.no_grad()(unwrap_function(torch.optim.Adam.step))


class SGD(EagerOptimizer, torch.optim.SGD):
    """`torch.optim.SGD`, bit for bit."""

    step = torch.no_grad()(unwrap_function(torch.optim.SGD.step))


class LBFGS(EagerOptimizer, torch.optim.LBFGS):
    """`torch.optim.LBFGS`, bit for bit."""


LARS_EPSILON = 1e-8  # keeps 0/0 from a tensor that has no gradient


class LARS(EagerOptimizer):
    """Layer-wise adaptive rate scaling (You et al. 2017): each tensor moves by a set share of its own length.

    A tensor w with gradient g is given to momentum SGD as r (g + weight_decay w), with
    r = trust |w| / (|g| + weight_decay |w|). Applied to every tensor, biases and batch normalisation included, as in
    the CCL-K protocol: one that starts at zero stays there.

    Args:
        params: tensors, or groups of them.
        lr: the rate that all tensors share; the protocol's base rate times batch size / 256.
        momentum, weight_decay: as of SGD.
        trust: the trust coefficient.
    """

    def __init__(
        self, params: ParamsT, lr: float, momentum: float = 0.9, weight_decay: float = 0.0, trust: float = 1e-3
    ) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay, "trust": trust})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step, without waiting for the device; return what `closure` returns, if there is one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            moving = [tensor for tensor in group["params"] if tensor.grad is not None]
            if moving:
                self._update_tensors(moving, *(group[key] for key in ("lr", "momentum", "weight_decay", "trust")))
        return loss

    def _update_tensors(
        self, moving: list[Tensor], rate: float | Tensor, momentum: float, decay: float, trust: float
    ) -> None:
        grads = [tensor.grad for tensor in moving if tensor.grad is not None]
        # computing all norms at once copies from the host, which a recorded step (its rate is a tensor) must not do
        norms = _norms_of_tensors if isinstance(rate, Tensor) else torch._foreach_norm
        length, slope = (torch.stack(list(norms(tensors))) for tensors in (moving, grads))
        rates = trust * length / (slope + decay * length + LARS_EPSILON)
        velocity = [self._momentum_buffer(tensor) for tensor in moving]
        torch._foreach_mul_(velocity, momentum)
        torch._foreach_addcmul_(velocity, grads, list(rates.unbind()))
        torch._foreach_addcmul_(velocity, moving, list((rates * decay).unbind()))
        if isinstance(rate, Tensor):  # of a step that is recorded
            torch._foreach_sub_(moving, torch._foreach_mul(velocity, rate))
        else:
            torch._foreach_add_(moving, velocity, alpha=-rate)

    def _momentum_buffer(self, tensor: Tensor) -> Tensor:
        state = self.state[tensor]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(tensor)
        velocity: Tensor = state["momentum_buffer"]
        return velocity


def _norms_of_tensors(tensors: list[Tensor]) -> list[Tensor]:
    return [torch.linalg.vector_norm(tensor) for tensor in tensors]


def learning_rate_at(rate: float, epoch: int, options: TrainOptions) -> float:
    """Return the learning rate of an epoch, counted from 0, where the largest is `rate`.

    It is the schedule's or that of a line through rate / warmup_epochs in the first epoch and `rate` in the epoch
    number warmup_epochs, whichever is smaller (CCL-K protocol). Rates are functions of the epoch alone, so that a trial
    resumed at an epoch continues exactly.
    """
    scheduled = rate
    match options.schedule:
        case "steps":  # times `lr_decay` for each of `lr_milestones`, rounded to whole epochs, that has passed
            for share in options.lr_milestones:
                if max(1, round(share * options.epochs)) <= epoch:
                    scheduled *= options.lr_decay
        case "cosine":  # half a cosine from `rate` in the first epoch to `lr_floor` times it in that after the last
            floor = rate * options.lr_floor
            scheduled = floor + (rate - floor) * (1 + math.cos(math.pi * min(epoch / options.epochs, 1.0))) / 2
    if epoch >= options.warmup_epochs:
        return scheduled
    return min(scheduled, rate * (epoch + 1) / options.warmup_epochs)


def make_adam(
    parameters: ParamsT, rate: float, options: TrainOptions, device: torch.device, decay: float = 0.0
) -> Optimizer:
    """Build Adam; on CUDA with one launch for all parameters."""
    on_gpu = device.type == "cuda"
    return Adam(
        parameters, lr=rate, weight_decay=decay, fused=on_gpu or None, capturable=on_gpu and options.graph is not False
    )


def make_optimizer(parameters: ParamsT, options: TrainOptions, device: torch.device) -> Optimizer:
    """Build the optimizer of `train.optimizer` for these parameters on a device."""
    rate, momentum, decay = options.learning_rate, options.momentum, options.weight_decay
    match options.optimizer:
        case "adam":
            return make_adam(parameters, rate, options, device, decay)
        case "sgd":
            fused = device.type == "cuda" or None
            return SGD(parameters, lr=rate, momentum=momentum, weight_decay=decay, fused=fused)
        case "lars":
            return LARS(parameters, lr=rate, momentum=momentum, weight_decay=decay)


def parameter_groups(networks: nn.Module, options: TrainOptions) -> ParamsT:
    """Group the parameters for `make_optimizer`: encoders with an `lr_factor` or no decay have groups of their own.

    Of encoders within encoders the inner one decides.
    """
    own = {
        id(tensor): (encoder.lr_factor, encoder.uses_weight_decay)
        for encoder in networks.modules()
        if isinstance(encoder, Encoder)
        for tensor in encoder.parameters()
    }
    alike: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for tensor in networks.parameters():
        alike.setdefault(own.get(id(tensor), (1.0, True)), []).append(tensor)
    if alike.keys() == {(1.0, True)}:
        return alike[1.0, True]
    rate = options.learning_rate
    return [
        {"params": part, "lr": rate * factor, "lr_factor": factor, **({} if decays else {"weight_decay": 0.0})}
        for (factor, decays), part in alike.items()
    ]


def make_lr_scheduler(of: Optimizer, options: TrainOptions) -> LambdaLR:
    """Build the schedule of `train.schedule` for an optimizer: step it once after each epoch.

    Its state dict, and the optimizer's, hold all that a trial resumed at an epoch needs to continue with the same
    rates.
    """
    for group in of.param_groups:
        # what LambdaLR multiplies by: so the rates are those of `learning_rate_at` to the last bit
        group["initial_lr"] = 1.0

    def rates(factor: float) -> Callable[[int], float]:
        return lambda epoch: factor * learning_rate_at(options.learning_rate, epoch, options)

    return LambdaLR(of, [rates(group.get("lr_factor", 1.0)) for group in of.param_groups])


BATCH_NORM_CLASS = nn.modules.batchnorm._BatchNorm


def use_micro_batches(method: Method, options: TrainOptions) -> None:
    """Have the networks of a method take the views of `train.micro_batch` samples at a time; without it, of all.

    GradCache, Gao et al. 2021 (arXiv 2101.06983): every part is embedded without keeping what its gradient needs, the
    loss is taken of all embeddings at once, and for each embedding's gradient its part goes through the network again.
    So a contrastive loss sees all negatives of the batch. Loss and gradients are those of the whole batch, to rounding.
    Batch normalisation is the exception: its statistics are those of a part. Running statistics take each part once.
    """
    if options.micro_batch is None or options.micro_batch >= options.batch_size:
        return
    for module in list(method.modules()):
        if isinstance(module, Network | Encoder):
            module.forward = MicroBatchedForward(module, options.micro_batch * method.views)  # type: ignore[method-assign]


class MicroBatchedForward:
    """The forward pass of a module, part by part where its input has more rows than one part.

    Args:
        module: returns a tensor, or a tuple of them, a row for each row of its input.
        rows: of a part at most.
    """

    def __init__(self, module: nn.Module, rows: int) -> None:
        self._forward, self._rows = module.forward, rows
        self._norms = [part for part in module.modules() if isinstance(part, BATCH_NORM_CLASS)]

    def __call__(self, inputs: Tensor) -> Any:
        if len(inputs) <= self._rows or not torch.is_grad_enabled():
            return self._forward(inputs)
        parts = inputs.tensor_split(-(-len(inputs) // self._rows))
        outputs = [self._forward_with_recomputation(part) for part in parts]
        if isinstance(outputs[0], Tensor):
            return torch.cat(outputs)
        return tuple(torch.cat(each) for each in zip(*outputs, strict=True))

    def _forward_with_recomputation(self, part: Tensor) -> Any:
        """Return the output for a part; recompute later what its gradient needs, with the same random numbers."""
        recompute = unwrap_function(checkpoint.checkpoint)
        return recompute(self._forward, part, use_reentrant=False, context_fn=self._recomputation_contexts)

    def _recomputation_contexts(self) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), _keep_running_statistics(self._norms)


@contextmanager
def _keep_running_statistics(norms: Sequence[BATCH_NORM_CLASS]) -> Iterator[None]:
    """Keep running statistics as they are: they have had this part before."""
    kept = [(norm, norm.momentum, norm.num_batches_tracked) for norm in norms]
    for norm in norms:
        norm.momentum, norm.num_batches_tracked = 0.0, None
    try:
        yield
    finally:
        for norm, momentum, count in kept:
            norm.momentum, norm.num_batches_tracked = momentum, count
