"""Find inputs that predict the class alone: a copy of it with errors, a number thresholded into it, telling gaps.

Find also those that go with the class in many rows and far more than any other input, as a bias does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

MAX_TESTED_ROWS, MAX_ROWS_TIMES_CLASSES = 10_000, 500_000
"""Maximum number of rows that are looked at, and of rows times classes."""

MAX_DISCRETE_VALUES = 50
"""Number of different values up to which each is looked at by itself, as a code; with more, thresholds are looked for.
"""

MAX_LEAVES, MIN_LEAF_ROWS = 12, 3
"""Limits of the tree of one column: maximum number of leaves, and least rows of a leaf."""

MIN_LEAK_ACCURACY, MIN_LEAK_SKILL = 0.95, 0.8
"""Accuracy from which on a column is right in nearly all rows; and the part that it must get right of the rows that the
most frequent class gets wrong, so that a rare class does not make any column look good.
"""

MIN_BIAS_SKILL = 0.5
"""The same part, of a column of few values that may be a bias: it goes with the class in many rows, not nearly all."""

MAX_LEAK_ERROR_RATIO = 0.5
"""A copy of the class has at most this part of the errors of the best other column: several measurements of one thing,
as of a petal, are each good alone.
"""

MIN_AGREEMENT = 0.995
"""Share of equal predictions from which on two columns count as saying the same."""

ClassCodes = NDArray[np.int64]

FitAndPredict = Callable[[NDArray[np.float64], ClassCodes, NDArray[np.float64], NDArray[np.float64]], ClassCodes]
"""Function that fits classes to values, with a weight for each class, and predicts those of other values."""


@dataclass(frozen=True)
class PredictiveColumn:
    """A column that predicts the class alone, as a copy of the class does, a bias, or what is known only after it.

    Attributes:
        predicted: the class of each row (N,), predicted by a tree that was fitted to the other half of the rows.
        accuracy: of these predictions.
        chance_accuracy: share of the most frequent class.
        is_balanced: whether both are means over the classes, one of which is rare.
        is_discrete: whether the column has few values.
        by_missing_values: whether it is enough to know where the column is empty.
        stands_out: whether it is far above all other columns, as a copy of the class is, or a bias.
    """

    predicted: ClassCodes
    accuracy: float
    chance_accuracy: float
    is_balanced: bool = False
    is_discrete: bool = False
    by_missing_values: bool = False
    name: str = ""
    stands_out: bool = False

    def __str__(self) -> str:
        if not self.is_leak:
            return f"goes with the class in {100 * self.accuracy:.0f}% of the rows, far more than any other column"
        what = "tells the class by where it is empty" if self.by_missing_values else "alone tells the class"
        of = "of each class on average" if self.is_balanced else "of the training rows"
        most_frequent = f"the most frequent class in {100 * self.chance_accuracy:.1f}%"
        return f"{what}: right in {100 * self.accuracy:.1f}% {of}, {most_frequent}"

    @property
    def skill(self) -> float:
        """Part of what chance gets wrong that the column gets right."""
        return (self.accuracy - self.chance_accuracy) / max(1 - self.chance_accuracy, 1e-9)

    @property
    def is_leak(self) -> bool:
        """Whether it predicts nearly all rows."""
        return self.accuracy >= MIN_LEAK_ACCURACY and self.skill >= MIN_LEAK_SKILL

    @property
    def has_few_values(self) -> bool:
        """Whether it has few values, and they count, not its gaps alone."""
        return self.is_discrete and not self.by_missing_values


def find_predictive_columns(
    columns: Mapping[str, NDArray[np.float64]],
    kinds: Sequence[str],
    codes: ClassCodes,
    groups: ClassCodes | None = None,
) -> list[PredictiveColumn]:
    """Find the columns that predict the class alone, the best first.

    A tree of one column is fitted to one half of the rows and judged by the other, both ways. A gap is a value of its
    own.

    Args:
        columns: of the training rows, each (N,), NaN where a value is missing.
        kinds: names of the columns whose values are codes of words, not numbers.
        codes: the class of each row (N,), from 0.
        groups: numbers of the rows that belong together, (N,): they are in one half, unless all rows belong together.
    """
    count = int(codes.max(initial=0)) + 1
    if len(codes) < 2 * MAX_LEAVES or count < 2:
        return []
    draw = np.random.default_rng(0)
    chosen = draw.permutation(len(codes))[: max(2 * MAX_LEAVES, min(MAX_TESTED_ROWS, MAX_ROWS_TIMES_CLASSES // count))]
    codes, halves = codes[chosen], np.arange(len(chosen)) % 2
    if groups is not None and len(there := np.unique(groups[chosen])) > 1:
        halves = draw.permutation(len(there))[np.searchsorted(there, groups[chosen])] % 2
    judged = {
        name: _predict_by_column(values[chosen], name in kinds, codes, count, halves)
        for name, values in columns.items()
    }
    others = {name: one for name, one in judged.items() if not (one.is_leak and one.is_discrete)}
    found = []
    for name, one in judged.items():
        may_be_bias = one.has_few_values and one.skill >= MIN_BIAS_SKILL
        rest = [
            other.skill
            for key, other in (others if one.is_leak else judged).items()
            if key != name and not (other.is_leak and np.mean(other.predicted == one.predicted) >= MIN_AGREEMENT)
        ]
        is_far = len(judged) > 1 and 1 - one.skill <= MAX_LEAK_ERROR_RATIO * (1 - max(rest, default=0.0))
        if one.is_leak or (may_be_bias and is_far):
            found.append(replace(one, name=name, stands_out=is_far))
    return sorted(found, key=lambda one: -one.accuracy)


def _predict_by_column(
    values: NDArray[np.float64], is_words: bool, codes: ClassCodes, count: int, halves: ClassCodes
) -> PredictiveColumn:
    """Return the best prediction of a column: by its values one by one, by thresholds, or by its gaps alone."""
    gaps = np.isnan(values)
    kinds = len(np.unique(values[~gaps]))
    found = []
    if gaps.any() and not gaps.all():
        by_gaps = _best_weighted_prediction(gaps.astype(np.float64), _predict_by_value, codes, count, halves)
        found.append(replace(by_gaps, by_missing_values=True))
    if is_words or kinds <= MAX_DISCRETE_VALUES:
        found.append(_best_weighted_prediction(values, _predict_by_value, codes, count, halves))
    if not is_words:
        found.append(_best_weighted_prediction(values, _predict_by_thresholds, codes, count, halves))
    best = max(found, key=lambda one: (one.is_leak, one.skill))
    if found[0].by_missing_values and found[0].is_leak and found[0].accuracy >= best.accuracy - (1 - MIN_AGREEMENT):
        best = found[0]
    return replace(best, is_discrete=best.by_missing_values or is_words or kinds <= 2 * count)


def _best_weighted_prediction(
    values: NDArray[np.float64], fit: FitAndPredict, codes: ClassCodes, count: int, halves: ClassCodes
) -> PredictiveColumn:
    """Return the better of two judgements, one with all rows weighted alike and one with all classes alike."""
    sizes = np.bincount(codes, minlength=count)
    is_there = sizes >= MIN_LEAF_ROWS
    found = []
    for is_balanced in (False, True):
        weights = np.where(is_there, 1 / np.maximum(sizes, 1), 0.0) if is_balanced else np.ones(count)
        predicted = np.empty_like(codes)
        for half in (0, 1):
            seen = halves != half
            predicted[~seen] = fit(values[seen], codes[seen], weights, values[~seen])
        hits = np.bincount(codes[predicted == codes], minlength=count)
        right = float((hits[is_there] / sizes[is_there]).mean()) if is_balanced else float(hits.sum() / len(codes))
        chance = 1 / max(int(is_there.sum()), 1) if is_balanced else float(sizes.max() / len(codes))
        found.append(PredictiveColumn(predicted, right, chance, is_balanced))
    plain, balanced = found
    return balanced if balanced.is_leak and not plain.is_leak else plain


def _predict_by_value(
    values: NDArray[np.float64], codes: ClassCodes, weights: NDArray[np.float64], asked: NDArray[np.float64]
) -> ClassCodes:
    """Predict the class that each value goes with most often; for unseen values, the most frequent class."""
    known, place = np.unique(values, return_inverse=True)  # NaN is one value, and the last
    counts = np.zeros((len(known), len(weights)))
    np.add.at(counts, (place, codes), 1.0)
    counts *= weights
    best = np.append(counts.argmax(1), counts.sum(0).argmax())
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    is_known = (known[at] == asked) | (np.isnan(known[at]) & np.isnan(asked))
    return best[np.where(is_known, at, len(known))].astype(np.int64)


def _predict_by_thresholds(
    values: NDArray[np.float64], codes: ClassCodes, weights: NDArray[np.float64], asked: NDArray[np.float64]
) -> ClassCodes:
    """Predict by a tree of thresholds, grown where the Gini impurity falls most; gaps have a leaf of their own."""
    from sklearn.tree import DecisionTreeClassifier  # slow to import

    gaps = np.isnan(values)
    overall = np.bincount(codes, minlength=len(weights)) * weights
    of_gaps = np.bincount(codes[gaps], minlength=len(weights)) * weights if gaps.any() else overall
    predicted = np.full(len(asked), of_gaps.argmax(), np.int64)
    there, is_asked = codes[~gaps], ~np.isnan(asked)
    if not is_asked.any() or not weights[there].any():
        return predicted
    known, rank = np.unique(values[~gaps], return_inverse=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=MAX_LEAVES, min_samples_leaf=MIN_LEAF_ROWS, random_state=0)
    tree.fit(rank[:, None], there, sample_weight=weights[there])  # ranks: it keeps but float32, which values exceed
    places = np.interp(asked[is_asked], known, np.arange(len(known)))
    predicted[is_asked] = tree.predict(places[:, None])
    return predicted
