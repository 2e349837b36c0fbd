"""The steps of Adam, SGD and LARS for all rows at once, each with the rate, decay and momentum of its own optimizer.

All that moves is one matrix, (N, elements): few operations, whatever the number of tensors.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from study.training.eager import SGD, Adam
from study.training.lars import LARS, TINY
from study.training.stack.layers import Joined

STATE = {Adam: ("exp_avg", "exp_avg_sq"), SGD: ("momentum_buffer",), LARS: ("momentum_buffer",)}
"""What each kind of optimizer keeps of a tensor, of the tensor's shape; Adam also counts its steps."""

NUMBERS = ("lr", "weight_decay", "momentum", "eps", "trust")


class StackedOptimizer:
    """Steps the parameters of all rows.

    The state of each row's optimizer becomes a view of the stacked state: its `state_dict` is as after steps alone.

    Args:
        parameters: of all rows; those that the rows' optimizers do not have are left out.
        optimizers: the rows' own, of one kind. Their groups say each row's numbers at each `take_rates`.
    """

    def __init__(self, parameters: Sequence[Joined], optimizers: Sequence[Optimizer]) -> None:
        self._optimizers, self._kind = optimizers, type(optimizers[0])
        places = {id(row): at for at, group in enumerate(optimizers[0].param_groups) for row in group["params"]}
        self._joined = [joined for joined in parameters if id(joined.rows[0]) in places]
        self._groups = [places[id(joined.rows[0])] for joined in self._joined]
        self._moving: list[int] = []
        self._numbers: Numbers | None = None

    def take_rates(self) -> None:
        """Read the numbers of each row's groups anew before the next step: a schedule has changed them."""
        self._numbers = None

    def zero_grad(self) -> None:
        for joined in self._joined:
            joined.stacked.grad = None

    @torch.no_grad()
    def clip(self, norms: Tensor, tiny: float) -> None:
        """Scale the gradient of each row down to a length, (N,), as `torch.nn.utils.clip_grad_norm_` does."""
        slopes = [_slope(joined.stacked, len(norms)) for joined in self._joined if joined.stacked.grad is not None]
        lengths = torch.stack([torch.linalg.vector_norm(slope, dim=1) for slope in slopes])
        share = (norms.to(lengths.dtype) / (torch.linalg.vector_norm(lengths, dim=0) + tiny)).clamp(max=1.0)
        for slope in slopes:
            slope *= share[:, None]

    @torch.no_grad()
    def step(self) -> None:
        """One step of every row; parameters without a gradient stay."""
        moving = [at for at, joined in enumerate(self._joined) if joined.stacked.grad is not None]
        if not moving:
            return
        if moving != self._moving:
            self._lay_out(moving)
        if self._numbers is None:
            self._numbers = self._read()
        rows, stacked = len(self._optimizers), [self._joined[at].stacked for at in moving]
        values = [_by_row(tensor.detach(), rows) for tensor in stacked]
        slope = torch.cat([_slope(tensor, rows) for tensor in stacked], 1)
        moved = _STEPS[self._kind](values, slope, self._state, self._numbers)
        torch._foreach_add_(values, list(moved.split(self._sizes, 1)))

    def _lay_out(self, moving: list[int]) -> None:
        """Bring the state of these parameters together, that of the rows' optimizers; zeros where they have none."""
        self._moving, self._numbers = moving, None
        self._sizes = [self._joined[at].rows[0].numel() for at in moving]
        rows, width, like = len(self._optimizers), sum(self._sizes), self._joined[moving[0]].rows[0]
        self._state = {name: like.new_zeros(rows, width) for name in STATE[self._kind]}
        counts = torch.zeros(rows, len(moving), device=like.device)
        for row, optimizer in enumerate(self._optimizers):
            begin = 0
            for place, at in enumerate(moving):
                tensor = self._joined[at].rows[row]
                state, offset = optimizer.state[tensor], row * width + begin
                for name, matrix in self._state.items():
                    _move(state, name, matrix.as_strided(tensor.shape, tensor.stride(), offset))
                if self._kind is Adam:
                    _move(state, "step", counts[row, place])
                begin += self._sizes[place]
        self._even = bool((counts == counts[:, :1]).all())
        if self._kind is Adam:
            self._state["step"] = counts

    def _read(self) -> "Numbers":
        groups = [self._groups[at] for at in self._moving]
        one = self._even and len(set(groups)) == 1
        columns = [
            _numbers([optimizer.param_groups[group] for optimizer in self._optimizers])
            for group in (groups[:1] if one else groups)
        ]
        exact = {name: torch.tensor([column[name] for column in columns], dtype=torch.float64).T for name in columns[0]}
        like = self._joined[self._moving[0]].stacked
        return Numbers(exact, like, self._sizes)


class Numbers:
    """The numbers of a step: (N, 1), or (N, elements) where tensors of a row differ in them.

    Args:
        exact: by name, float64 (N, tensors), or (N, 1) for all.
        like: a parameter: its device and type are theirs.
        sizes: elements of each tensor of a row.
    """

    def __init__(self, exact: Mapping[str, Tensor], like: Tensor, sizes: list[int]) -> None:
        self.exact, self._like = {name: values.to(like.device) for name, values in exact.items()}, like
        self._repeats, self._width = torch.tensor(sizes, device=like.device), sum(sizes)
        self._one = exact["lr"].shape[1] == 1
        self.decays = bool(exact["weight_decay"].any())
        self._wide = {name: self.wide(values) for name, values in self.exact.items()}

    def __getitem__(self, name: str) -> Tensor:
        return self._wide[name]

    def wide(self, of_tensors: Tensor) -> Tensor:
        """As `spread`, in the parameters' type; (N, 1) where the tensors do not differ."""
        values = of_tensors.to(self._like.dtype)
        return values[:, :1] if self._one else self.spread(values.expand(-1, len(self._repeats)))

    def spread(self, of_tensors: Tensor) -> Tensor:
        """For each element, (N, elements), what (N, tensors) says of its tensor."""
        return of_tensors.repeat_interleave(self._repeats, 1, output_size=self._width)


def _numbers(groups: list[dict[str, Any]]) -> dict[str, list[float]]:
    """By name, the numbers that a step needs, of each row."""
    numbers: dict[str, list[float]] = {
        name: [float(group[name]) for group in groups] for name in NUMBERS if name in groups[0]
    }
    if "betas" in groups[0]:
        first, second = ([float(group["betas"][at]) for group in groups] for at in (0, 1))
        numbers |= {"beta1": first, "beta2": second}
        numbers |= {"to_mean": [1 - beta for beta in first], "to_square": [1 - beta for beta in second]}
    return numbers


def _move(state: dict[str, Any], name: str, place: Tensor) -> None:
    """Let a part of a state lie there."""
    if state.get(name) is not None:
        place.copy_(state[name])
    state[name] = place


def _by_row(tensor: Tensor, rows: int) -> Tensor:
    """The elements in the order of memory, (N, elements): those of a row lie together."""
    size = tensor.numel() // rows
    return tensor.as_strided((rows, size), (size, 1))


def _slope(tensor: Tensor, rows: int) -> Tensor:
    gradient = tensor.grad
    assert gradient is not None
    if gradient.stride() != tensor.stride():
        gradient = tensor.grad = torch.empty_like(tensor).copy_(gradient)
    return _by_row(gradient, rows)


def _adam(values: list[Tensor], slope: Tensor, state: Mapping[str, Tensor], numbers: Numbers) -> Tensor:
    mean, square, steps = state["exp_avg"], state["exp_avg_sq"], state["step"]
    steps += 1
    rate = numbers.wide(-numbers.exact["lr"] / (1 - numbers.exact["beta1"] ** steps))
    scale = numbers.wide((1 - numbers.exact["beta2"] ** steps).sqrt())
    slope = _decayed(values, slope, numbers)
    mean.lerp_(slope, numbers["to_mean"])
    square.mul_(numbers["beta2"]).addcmul_(slope, slope * numbers["to_square"])
    return (mean / square.sqrt().div_(scale).add_(numbers["eps"])).mul_(rate)


def _sgd(values: list[Tensor], slope: Tensor, state: Mapping[str, Tensor], numbers: Numbers) -> Tensor:
    velocity = state["momentum_buffer"]
    velocity.mul_(numbers["momentum"]).add_(_decayed(values, slope, numbers))
    return velocity * -numbers["lr"]


def _lars(values: list[Tensor], slope: Tensor, state: Mapping[str, Tensor], numbers: Numbers) -> Tensor:
    velocity, sizes = state["momentum_buffer"], [value.shape[1] for value in values]
    lengths, steepness = (
        torch.stack([torch.linalg.vector_norm(part, dim=1) for part in parts], 1)
        for parts in (values, slope.split(sizes, 1))
    )
    trust, decay = (numbers.exact[name].to(slope.dtype) for name in ("trust", "weight_decay"))
    shares = trust * lengths / (steepness + decay * lengths + TINY)
    velocity.mul_(numbers["momentum"]).addcmul_(_decayed(values, slope, numbers), numbers.spread(shares))
    return velocity * -numbers["lr"]


def _decayed(values: list[Tensor], slope: Tensor, numbers: Numbers) -> Tensor:
    return torch.addcmul(slope, torch.cat(values, 1), numbers["weight_decay"]) if numbers.decays else slope


Step = Callable[[list[Tensor], Tensor, Mapping[str, Tensor], Numbers], Tensor]

_STEPS: dict[type[Optimizer], Step] = {Adam: _adam, SGD: _sgd, LARS: _lars}
