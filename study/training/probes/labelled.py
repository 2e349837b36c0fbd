"""The samples that a classifier can be fitted to."""

from torch import Tensor

from study.errors import UserError


def labelled(features: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Features (n, F), float32 without a gradient, and classes (n,) of the samples whose class is known.

    Raises:
        UserError: there is none.
    """
    known = target >= 0
    if not known.any():
        raise UserError(
            f"none of {len(target)} samples has a class, so that no classifier can be fitted to their features: "
            "name a target, or a split that has one"
        )
    return features.detach()[known].float(), target[known]
