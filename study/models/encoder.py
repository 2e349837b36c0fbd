"""What every network of this package is."""

from torch import nn

from study.data.dataset import Facts

# What a network takes: the checks that its module offers as `unsuited`.


def not_images(facts: Facts) -> str | None:
    """What is wrong with the data for a network of images; None if nothing is."""
    return f"takes images, not rows of {facts.shape[0]} numbers" if facts.is_table else None


def not_a_table(facts: Facts) -> str | None:
    """What is wrong with the data for a network of a table's rows; None if nothing is."""
    return None if facts.is_table else f"takes the rows of a table, not images of {size(facts)} pixels"


def size(facts: Facts) -> str:
    """Height and width of the images, in words."""
    return " x ".join(str(side) for side in facts.shape[1:])


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
