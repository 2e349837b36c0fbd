"""How many samples of each class are recognised, in words."""

import math
from collections.abc import Sequence
from statistics import NormalDist

from study.text import list_few_names, quoted

MAX_LISTED_RECALLS = 20
"""Number of other classes of which a sentence says how many are right."""

MIN_THRESHOLD_LOSS = 0.1
"""Balanced accuracy that a threshold must lose, against the best one for this area under the curve, to be told."""


def class_recall_sentences(names: Sequence[str], confusion: Sequence[Sequence[int]], auc: float | None) -> list[str]:
    """Say which class is recognised least, how many of the others are right, and of two if the threshold is off.

    It is off where far fewer are right, of both classes alike, than the best threshold would get: about Phi(d / 2) for
    an area under the curve of Phi(d / sqrt(2)), if the scores of both classes are normal and as wide.

    Args:
        confusion: samples of each class by what they are called, (classes, classes).
        auc: area under the ROC curve, of two classes.
    """
    there = [number for number, row in enumerate(confusion) if sum(row)]
    recall = {number: confusion[number][number] / sum(confusion[number]) for number in there}
    if len(set(recall.values())) < 2:
        return []
    worst = min(there, key=recall.__getitem__)
    right, samples = confusion[worst][worst], sum(confusion[worst])
    instead = max((number for number in range(len(names)) if number != worst), key=confusion[worst].__getitem__)
    told = f"Of the classes, {quoted(names[worst])} is recognised least: {right} of {samples} right"
    others = [
        f"{quoted(names[number])} {confusion[number][number]} of {sum(confusion[number])}"
        for number in there
        if number != worst
    ]
    called = f"{confusion[worst][instead]} called {quoted(names[instead])}"
    sentences = [f"{told}, {called}. Right of the others: {list_few_names(others, MAX_LISTED_RECALLS)}."]
    if len(names) == len(there) == 2 and auc is not None and 0.5 < auc < 1:
        normal = NormalDist()
        best = normal.cdf(normal.inv_cdf(auc) / math.sqrt(2))
        if best - sum(recall.values()) / 2 > MIN_THRESHOLD_LOSS:
            sentences.append(
                f"The scores tell the classes apart (area under the curve {auc:.2f}), but the threshold between them "
                f"is off on these data: a better one would get about {best:.0%} of each class. No command sets a "
                "threshold on data of a new place: choose one on labelled samples of it, from the columns p(CLASS) of "
                "study predict."
            )
    return sentences
