"""What every network of this package is."""

from torch import nn


class Encoder(nn.Module):
    """A module from normalised images (B, C, H, W) to features (B, `features`)."""

    features: int
