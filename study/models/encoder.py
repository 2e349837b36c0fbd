"""What every network of this package is."""

from torch import nn


class Encoder(nn.Module):
    """A module from normalised images (B, C, H, W), or rows of a table (B, F), to features (B, `features`).

    Attributes:
        lr_factor: its parameters' learning rate, as a multiple of the trial's.
    """

    features: int
    lr_factor: float = 1.0


def kaiming(module: nn.Module) -> None:
    """Draw the weights of every convolution anew, as He et al. 2015 by the number of outputs (fan-out)."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
