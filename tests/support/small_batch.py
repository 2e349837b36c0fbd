"""A small batch for losses: its views, its rows, their scores, and masks of pairs of rows."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

SAMPLES, TEMPERATURE = 12, 0.2
TARGET = torch.arange(SAMPLES) % 3
BIAS = torch.arange(SAMPLES) % 4
VIEWS = normalize(torch.randn(2, SAMPLES, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64), dim=-1)
ROWS, LABEL = VIEWS.flatten(0, 1), TARGET.repeat(2)
SCORES = ROWS @ ROWS.T / TEMPERATURE
SAMPLE = torch.arange(SAMPLES).repeat(2)
OTHER_VIEW = (ROWS * VIEWS.flip(0).flatten(0, 1)).sum(1) / TEMPERATURE
OTHERS = ~torch.eye(2 * SAMPLES, dtype=torch.bool)
NEGATIVES = SAMPLE[:, None] != SAMPLE
INFO_NCE = cross_entropy(SCORES.masked_fill(~OTHERS, -torch.inf), SAMPLE + SAMPLES * (torch.arange(24) < SAMPLES))


def log_sum(mask: Tensor) -> Tensor:
    return SCORES.masked_fill(~mask, -torch.inf).logsumexp(1)


def close(ours: Tensor, theirs: Tensor | float) -> None:
    torch.testing.assert_close(ours, torch.as_tensor(theirs, dtype=ours.dtype))
