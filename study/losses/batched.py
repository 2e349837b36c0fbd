"""Gradients of our own that go on working under `torch.func`, `torch.vmap` and second derivatives."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class BatchedFunction(torch.autograd.Function):
    """A function written once for tensors with any leading dimensions; `torch.vmap` adds one to all of them.

    What `forward` computes beside its value and `backward` needs is an output, too, and `backward` takes gradients of
    all outputs: each derivative of a derivative is then right. `backward` is made of operations that can themselves be
    differentiated: without `out=`, and in place on new tensors only. A gradient is None where it is not asked for.
    """

    def __init_subclass__(cls) -> None:
        # PyTorch asks for it at each call; worked out anew it takes a third of a call's overhead.
        cls.forward.__signature__ = inspect.signature(cls.forward)  # type: ignore[attr-defined]

    @classmethod
    def apply(cls, *inputs: Any) -> Any:
        """As PyTorch's own, without what that does under `torch.vmap` besides: half a millisecond of Python a call."""
        if not torch.compiler.is_compiling() and under_vmap():
            return outside_vmap(cls.vmap, *inputs)
        return super().apply(*inputs)

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Any, int | None]:
        """The function of the inputs with the batch in front; inputs without one are repeated, without a copy, and
        where none has one neither has the value."""
        if all(dim is None for dim in in_dims):
            return cls.apply(*inputs), None
        batched = [_with_batch(value, dim, info.batch_size) for value, dim in zip(inputs, in_dims, strict=True)]
        return cls.apply(*batched), 0


def under_vmap() -> bool:
    """Whether the innermost transform of `torch.func` that runs is `torch.vmap`."""
    if not torch._C._are_functorch_transforms_active():
        return False
    innermost = torch._C._functorch.peek_interpreter_stack()
    return innermost is not None and innermost.key() == torch._C._functorch.TransformType.Vmap


def outside_vmap(rule: Callable[..., tuple[Any, int | None]], *inputs: Any) -> Any:
    """What a rule for batches makes of the inputs of a call under `torch.vmap`, which it is called outside of.

    Args:
        rule: as `torch.autograd.Function.vmap`; all its outputs have their batch in the same place, or none has one.
    """
    from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter

    interpreter: Any = retrieve_current_functorch_interpreter()
    level = interpreter.level()
    pairs = [
        torch._C._functorch._unwrap_batched(value, level) if isinstance(value, Tensor) else (value, None)
        for value in inputs
    ]
    values, places = zip(*pairs, strict=True)
    with interpreter.lower():
        outputs, place = rule(_Info(interpreter.batch_size(), interpreter.randomness()), places, *values)
    if place is None:
        return outputs
    if isinstance(outputs, Tensor):
        return torch._C._functorch._add_batch_dim(outputs, place, level)
    return tuple(torch._C._functorch._add_batch_dim(one, place, level) for one in outputs)


class _Info(NamedTuple):
    """As PyTorch gives to a rule."""

    batch_size: int
    randomness: str


def add_product_(matrix: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """matrix + x * y, in the memory of a new matrix; in memory of its own where the sum is to be differentiated.

    For the sum in place PyTorch has no rule under `torch.vmap`, whose gradients are always differentiable.
    """
    return matrix + x * y if torch.is_grad_enabled() else matrix.addcmul_(x, y)


def _with_batch(value: Any, dim: int | None, size: int) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.expand(size, *value.shape) if dim is None else value.movedim(dim, 0)
