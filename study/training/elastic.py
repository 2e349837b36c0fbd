"""Whether a trial can go on beyond its last epoch: not where what it does in an epoch depends on how many there are."""

from collections.abc import Mapping
from typing import Any

from study import methods


def bound(sections: Mapping[str, Mapping[str, Any]]) -> tuple[str, str] | None:
    """The key that ties a trial to its number of epochs, and what would not; None: nothing does.

    A trial that nothing ties computes in each epoch what a longer one computes in it, bit for bit.

    Args:
        sections: complete, of one trial.
    """
    train, method = sections["train"], sections["method"]
    if train["schedule"] == "cosine":
        return "train.schedule", "cosine falls to lr_floor at the last epoch; constant does not depend on it"
    if train["schedule"] == "steps" and train["lr_milestones"]:
        return "train.lr_milestones", "they are shares of all epochs; without them the learning rate stays constant"
    if (key := methods.needs(method).total) is not None:
        return f"method.{key}", f"what {method['name']} does in an epoch depends on how many there are"
    return None


def identity(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The sections as a checkpoint knows them: without the number of epochs where nothing ties the trial to it."""
    if bound(sections) is not None:
        return dict(sections)
    return {**sections, "train": {key: value for key, value in sections["train"].items() if key != "epochs"}}
