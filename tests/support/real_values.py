"""Values on the simulated device: each operation is also done by the CPU, in the device's own memory.

The memory of the simulated device is address space of the process, so that a CPU tensor can lie where a CUDA tensor
lies. What PyTorch does on the device is checked and counted as without this, then the CPU writes the values. Random
numbers are those that a CPU generator of the same seed gives: a trial on such a device is the CPU's to rounding,
wherever both go the same way.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

WITHOUT = ("aten::empty", "aten::new_empty", "aten::set_")
"""Operations that compute no values."""


def log_sigmoid_backward(gradient: Tensor, at: Tensor, buffer: Tensor) -> Tensor:
    """The buffer is the CPU's: on CUDA it is empty."""
    return torch.ops.aten.log_sigmoid_backward(gradient, at, torch.ops.aten.log_sigmoid_forward(at)[1])


OTHERWISE = {torch.ops.aten.log_sigmoid_backward.default: log_sigmoid_backward}
"""Operations that want something else of the CPU than of a CUDA device."""


class RealValues(TorchDispatchMode):
    """While it is entered, results of operations on simulated CUDA tensors have values."""

    def __init__(self) -> None:
        super().__init__()
        self._generators: dict[tuple[int, int], torch.Generator] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = tree_flatten((args, kwargs))[0]
        if func._schema.name.startswith(WITHOUT) or not any(_is_cuda(one) for one in given):
            return func(*args, **kwargs)
        on_device = [one for one in given if isinstance(one, Tensor) and one.is_cuda]
        there_args, there_kwargs = tree_map(self._there, (args, kwargs))
        if torch.Tag.dynamic_output_shape in func.tags and on_device:  # the shape hangs on the values
            devices = {tensor.device for tensor in on_device}
            assert len(devices) == 1, f"{func} of tensors on {devices}"
            return tree_map(lambda value: _to(value, on_device[0].device), func(*there_args, **there_kwargs))
        made = func(*args, **kwargs)
        values = OTHERWISE.get(func, func)(*there_args, **there_kwargs)
        inputs = {tensor.untyped_storage().data_ptr() for tensor in on_device}
        told, shape = tree_flatten(made)
        return tree_unflatten(
            [_filled(one, value, inputs) for one, value in zip(told, tree_flatten(values)[0], strict=True)], shape
        )

    def _there(self, value: Any) -> Any:
        """A value as the CPU's operation takes it."""
        if isinstance(value, Tensor):
            return alias(value) if value.is_cuda else value
        if isinstance(value, torch.device):
            return torch.device("cpu")
        if isinstance(value, torch.Generator) and value.device.type == "cuda":
            same = value._cdata, value.initial_seed()  # the object is made anew for each operation
            if same not in self._generators:
                self._generators[same] = torch.Generator().manual_seed(value.initial_seed())
            return self._generators[same]
        return value


def _is_cuda(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.is_cuda
    return isinstance(value, torch.device) and value.type == "cuda"


def _filled(made: Any, value: Any, inputs: set[int]) -> Any:
    """What an operation gave, with its value; views and what was changed in place have theirs."""
    if not isinstance(made, Tensor) or not made.is_cuda:
        return value
    if value.numel() and made.numel() and made.untyped_storage().data_ptr() not in inputs:
        assert made.shape == value.shape, f"{tuple(made.shape)} on the device, {tuple(value.shape)} on the CPU"
        alias(made).copy_(value)
    return made


def _to(value: Any, device: torch.device) -> Any:
    if not isinstance(value, Tensor):
        return value
    made = torch.empty_like(value, device=device)
    alias(made).copy_(value)
    return made


def alias(tensor: Tensor) -> Tensor:
    """A CPU tensor in the memory of one on the simulated device."""
    storage = tensor.untyped_storage()
    if not storage.nbytes() or not tensor.numel():
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    memory = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
    same = torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()
    return torch.empty(0, dtype=tensor.dtype).set_(same, tensor.storage_offset(), tensor.shape, tensor.stride())


@contextmanager
def real_values() -> Iterator[None]:
    """Values, and operations that both devices have: cuDNN's are done by those that it stands in for."""
    with torch.backends.cudnn.flags(enabled=False), RealValues():
        yield
