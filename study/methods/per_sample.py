"""What a method remembers of each training sample."""

from typing import Any

import torch
from torch import Tensor, nn


class PerSample(nn.Module):
    """A value of each training sample, part of a method's state.

    Its length comes with `begin`, or with a state that is loaded: also a method that never began can take one.

    Args:
        fill: the value that every sample has at first; its type is that of the values.
    """

    values: Tensor

    def __init__(self, fill: float | bool) -> None:
        super().__init__()
        self.fill = fill
        self.register_buffer("values", torch.full((0,), fill))
        self.register_load_state_dict_pre_hook(_take_length)

    def begin(self, samples: int) -> None:
        """As many values, on the device where they are, all `fill`."""
        self.values = torch.full((samples,), self.fill, device=self.values.device)


def _take_length(module: PerSample, state: dict[str, Any], prefix: str, *_: Any) -> None:
    if (loaded := state.get(f"{prefix}values")) is not None and loaded.shape != module.values.shape:
        module.begin(len(loaded))
