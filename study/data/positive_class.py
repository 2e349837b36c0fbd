"""Which of two classes is the positive one: the second, class 1, as every metric with a positive class takes it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typing_extensions import Doc

from study.data.dataset import Facts
from study.data.user_data import Labels
from study.errors import UserError
from study.text.quoted import quoted, some

Positive = Annotated[
    str | None,
    Doc(
        "of two classes the positive one, which `equal_opportunity` and `auc` are of, by its name; null: the second by "
        "number or alphabet"
    ),
]
"""Type of the key `positive`."""

YES = frozenset(
    {
        "yes",
        "y",
        "true",
        "t",
        "1",
        "approved",
        "accepted",
        "granted",
        "hired",
        "admitted",
        "positive",
        "pos",
        "good",
        "passed",
        "pass",
        "successful",
        "success",
        "repaid",
        "paid",
        "on",
    }
)
NO = frozenset(
    {
        "no",
        "n",
        "false",
        "f",
        "0",
        "-1",
        "denied",
        "declined",
        "rejected",
        "refused",
        "negative",
        "neg",
        "bad",
        "failed",
        "fail",
        "unsuccessful",
        "failure",
        "defaulted",
        "unpaid",
        "off",
    }
)
"""Names of classes, in small letters, that are the positive and the negative one to anybody, if they stand together."""


def last(labels: Labels, positive: str | None, path: Path) -> Labels:
    """The labels with the class of this name as the last, so that every metric takes it for the positive one.

    Bias classes that are named like the classes, or are numbers like them, turn round with them.

    Raises:
        UserError: there are more than two classes, they have no names, or none is named so.
    """
    if positive is None:
        return labels
    names = labels.class_names
    if labels.classes != 2 or names is None:
        what = f"{labels.classes} classes" if names else "several columns combined as classes"
        raise UserError(f"data.positive: {quoted(positive)} given, but {path} has {what}; it is for two classes alone")
    if positive not in names:
        raise UserError(f"data.positive: {quoted(positive)} given, no class of {path}. Allowed: {some(names)}")
    if positive == names[1]:
        return labels
    turned = replace(labels, target=1 - labels.target, class_names=names[::-1])
    theirs = labels.bias_names
    if labels.bias is None or theirs is None or len(theirs) != 2 or not _alike(names, theirs):
        return turned
    return replace(turned, bias=np.where(labels.bias < 0, labels.bias, 1 - labels.bias), bias_names=theirs[::-1])


def named(class_names: Sequence[str] | None) -> str | None:
    """The name of the positive class; None: there are not two classes with names."""
    return class_names[1] if class_names and len(class_names) == 2 else None


def likely(class_names: Sequence[str] | None) -> str | None:
    """The class that is the positive one to anybody, by its name; None where names do not tell."""
    if not class_names or len(class_names) != 2:
        return None
    lower = [name.strip().lower() for name in class_names]
    return next((class_names[place] for place in (0, 1) if lower[place] in YES and lower[1 - place] in NO), None)


def warnings(section: Mapping[str, Any], facts: Facts) -> list[str]:
    """Where names look like the other class was the positive one, and no key says which is.

    Args:
        section: `data` of a study.
    """
    taken, better = named(facts.class_names), likely(facts.class_names)
    if better is None or better == taken or section.get("positive") is not None or "positive" not in section:
        return []
    key = f'"{better}"' if better.lower() in ("yes", "y", "true", "1", "on") else better  # YAML reads no text there
    return [
        f"the positive class is {quoted(str(taken))}, the second by alphabet; equal_opportunity and auc are of it. If "
        f"you mean {quoted(better)}, say data.positive: {key}"
    ]


def _alike(ours: Sequence[str], theirs: Sequence[str]) -> bool:
    return set(ours) == set(theirs) or all(name.lstrip("-").isdecimal() for name in (*ours, *theirs))
