"""Why `study init` drafts the methods that it drafts: the sentence that it says, as in the guide's page on own data."""

from collections.abc import Mapping, Sequence
from typing import Literal

from study.commands.draft_parts import Bias, default_methods, section

Situation = Literal["labels", "some_labels", "colour", "texture", "unknown"]
"""What is known of the bias: labels of all samples or of some; without labels, what may betray the class."""

WHY: Mapping[Situation, str] = {
    "labels": "the bias of every sample is known: FairKL makes samples of a class as alike across biases as within one",
    "some_labels": "the bias of some samples is known: a network guesses that of the others, then FairKL is used as if "
    "all were known",
    "colour": "colour may betray the class: strong colour changes take it away, and need no bias labels",
    "texture": "a small pattern may betray the class: a network that sees nothing larger stands for the bias labels",
    "unknown": "nothing is known of the bias: learning_from_failure gives weight to what a network that follows easy "
    "signs gets wrong, and cross entropy shows whether that is needed",
}
"""The reason for the methods of each situation."""


def situation(bias: Bias) -> Situation:
    """The one of a user who knows this."""
    return bias.guess if bias.known == "none" else bias.known


def advice(bias: Bias, chosen: Sequence[str]) -> str:
    """One line: the methods of a drafted file, and why.

    Args:
        chosen: the file's methods.
    """
    default = default_methods(bias)
    reason = f"{_words(default, bias)}, as {WHY[situation(bias)]}"
    if set(chosen) == set(default):
        return f"method: {reason}"
    return f"method: {_words(chosen, bias)}, as you said; without --method it would be {reason}"


def _words(names: Sequence[str], bias: Bias) -> str:
    """Names of methods, with what is added to them."""
    with_fair_kl = [name for name in names if section(name, bias).get("regulariser") == "fair_kl"]
    return " and ".join(f"{name} with fair_kl" if name in with_fair_kl else name for name in names)
