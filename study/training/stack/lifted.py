"""Modules of N rows that are called, row by row, inside `torch.vmap`, and work on all rows at once there."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from study.losses.batched import outside_vmap
from study.models import Encoder
from study.training.stack.layers import LAYERS, Joiner, StackedLayer, can_stack, stacked


class Lifted(Encoder):
    """In the place of a module of one row. Under `torch.vmap` over rows it maps a row's inputs to the row's outputs.
    Inputs that are the same for all rows are told by having no batch: they stay one until a layer tells rows apart.

    Args:
        modules: the rows' own, of one structure.
    """

    def __init__(self, modules: Sequence[nn.Module], joiner: Joiner) -> None:
        super().__init__()
        first, self.rows = modules[0], len(modules)
        if isinstance(first, Encoder):
            self.features = first.features
        self.whole = stacked(modules, joiner) if can_stack(first) else _OneByOne(modules, joiner)
        self._layers = [layer for layer in self.whole.modules() if isinstance(layer, StackedLayer)]

    def forward(self, x: Tensor) -> Tensor:
        value: Tensor = outside_vmap(self._rule, x)
        return value

    def _rule(self, info: Any, places: tuple[int | None, ...], x: Tensor) -> tuple[Tensor, int]:
        """The module's own differentiable code, for all rows."""
        return self.of_shared(x) if places[0] is None else self.together(x.movedim(places[0], 0)), 0

    def together(self, x: Tensor) -> Tensor:
        """Inputs (N, B, ...) of all rows to outputs (N, B, ...)."""
        return self._apart(x.flatten(0, 1), 0)

    def of_shared(self, x: Tensor) -> Tensor:
        """Inputs (B, ...) that are the same for all rows to outputs (N, B, ...)."""
        if isinstance(self.whole, _OneByOne):
            return self.together(x.expand(self.rows, *x.shape))
        return self._apart(x, len(x))

    def _apart(self, x: Tensor, shared: int) -> Tensor:
        for layer in self._layers:
            layer.shared = shared
        outputs: Tensor = self.whole(x)
        if len(outputs) == shared:  # no layer has told rows apart
            return outputs.expand(self.rows, *outputs.shape)
        return outputs.unflatten(0, (self.rows, -1))


class _OneByOne(nn.Module):
    """Any module of each row, called one after the other: (N * B, ...) to (N * B, ...)."""

    def __init__(self, modules: Sequence[nn.Module], joiner: Joiner) -> None:
        super().__init__()
        self._own, self._names = list(modules), [name for name, _ in modules[0].named_parameters()]
        joined = [joiner.parameter([module.get_parameter(name) for module in modules]) for name in self._names]
        self._joined = nn.ParameterList([tensor for tensor in joined if tensor is not None])

    def forward(self, x: Tensor) -> Tensor:
        parts = zip(*(tensor.unbind() for tensor in self._joined), strict=True)
        outputs = [
            functional_call(module, dict(zip(self._names, values, strict=True)), (part,))
            for module, values, part in zip(self._own, parts, x.chunk(len(self._own)), strict=True)
        ]
        return torch.cat(outputs)

    def train(self, mode: bool = True) -> "_OneByOne":
        super().train(mode)
        for module in self._own:
            module.train(mode)
        return self


def lift(template: nn.Module, rows: Sequence[nn.Module], joiner: Joiner) -> Iterator[str]:
    """Replace the parts of `template` that have parameters by those of all rows.

    Args:
        template: of the rows' structure.

    Yields:
        Names of buffers that stay: those beside the parts, `MODULE.NAME`.
    """
    for name, child in list(template.named_children()):
        children = [row.get_submodule(name) for row in rows]
        if isinstance(child, Encoder) or type(child) in LAYERS or (can_stack(child) and _has_parameters(child)):
            template._modules[name] = Lifted(children, joiner)
        else:
            yield from (f"{name}.{inner}" for inner in lift(child, children, joiner))
    if next(template.parameters(recurse=False), None) is not None:
        raise TypeError(f"{type(template).__name__} has parameters beside its layers")
    yield from (name for name, _ in template.named_buffers(recurse=False))


def _has_parameters(module: nn.Module) -> bool:
    return next(module.parameters(), None) is not None
