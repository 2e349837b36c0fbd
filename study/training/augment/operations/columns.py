"""Random changes of the rows of tables (..., B, F)."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Corruption:
    """Each value replaced with a probability by that of another random row of the batch in the same column.

    A value of the batch is a draw from the column's own distribution, which is what SCARF (Bahri et al., 2022, Alg. 1)
    asks for; every value, not a fixed number of columns per row, is drawn independently.
    """

    probability: float = 0.3

    def __call__(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        batch, device = rows.shape[-2], rows.device
        if batch < 2:
            return rows.clone()
        step = torch.randint(1, batch, rows.shape, generator=generator, device=device)  # never the row itself
        source = step.add_(torch.arange(batch, device=device)[:, None]).remainder_(batch)
        replaced = torch.empty(rows.shape, dtype=torch.bool, device=device).bernoulli_(
            self.probability, generator=generator
        )
        return torch.where(replaced, rows.gather(-2, source), rows)


@dataclass(frozen=True)
class Noise:
    """Gaussian noise of this standard deviation added to every value, in units of the standardised columns."""

    deviation: float = 0.1

    def __call__(self, rows: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.randn(rows.shape, generator=generator, device=rows.device)
        return rows.add(noise, alpha=self.deviation)
