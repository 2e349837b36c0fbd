"""What a plan says of the samples: the cells of each split, and how exactly a metric can be measured on them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from study.data import user_data
from study.data.dataset import Facts
from study.metrics import METRICS, group_names
from study.metrics.rules import RULES
from study.spec import StudySpec

if TYPE_CHECKING:
    import numpy as np

# Standard errors of metrics on the cells of a split, by simulation.

DRAWS = 400
"""Simulated splits: the standard error itself is then known to within 4%."""


@cache
def simulated(
    names: tuple[str, ...], counts: tuple[tuple[int, ...], ...], has_bias: bool, accuracy: float
) -> dict[str, dict[str, float] | None]:
    """What metrics are of a model that is right with one probability in each cell, over `DRAWS` splits of these cells.

    Wrong outputs are equally frequent.

    Args:
        names: of the metrics, those of counts alone.
        counts: samples of each (class, bias class) cell, (Y, S); of each class, (Y, 1), without bias labels.
        has_bias: which of the two.
        accuracy: that probability.

    Returns:
        By metric: its `expected` value and `standard_error`, and `ties`, the probability that two such models get the
        same value; None where the split does not have it.
    """
    import numpy as np
    import torch

    from study.training.counts import Counts
    from study.training.metrics import COMPUTED, Outcome

    classes = len(counts)
    right = np.eye(classes, dtype=bool)
    outputs = np.where(right, accuracy, (1 - accuracy) / (classes - 1))[:, None]
    unknown = np.zeros((classes, 1 if has_bias else 0, classes))  # samples without a bias label
    generator = np.random.default_rng(0)
    drawn: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(DRAWS):
        table = np.concatenate([generator.multinomial(np.array(counts), outputs), unknown], axis=1)
        outcome = Outcome(Counts(torch.from_numpy(table).double()), None, torch.empty(0))
        for name, values in drawn.items():
            values.append(float(COMPUTED[name](outcome)))
    return {name: _summary(np.array(values)) for name, values in drawn.items()}


def _summary(values: "np.ndarray") -> dict[str, float] | None:
    import numpy as np

    if not np.isfinite(values).all():
        return None
    _, times = np.unique(values, return_counts=True)
    ties = float((times * (times - 1)).sum() / (len(values) * (len(values) - 1)))
    return {"expected": float(values.mean()), "standard_error": float(values.std(ddof=1)), "ties": ties}


ACCURACY = 0.75
"""In each cell, of the imagined model for which the standard errors are stated."""

FEW = 10
"""Samples of a cell below which its accuracy is hardly more than chance."""

MOST_ROWS = 16
"""Cells up to which people are shown the count of each; the JSON document always has them all."""

MANY_TIES = 0.1
"""Share of pairs with the same value from which on it is said."""

BY_CELL = ("unbiased_accuracy", "worst_group_accuracy", "equalized_odds", "equal_opportunity")
"""Metrics to which a cell of few samples counts as much as one of many, or alone."""


def standard_errors(spec: StudySpec, cells: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """The standard errors of the study's metrics on validation and test, for a model of `ACCURACY` in each cell.

    Returns:
        By split and metric: what `simulated_errors.simulated` gives; None for what cannot be simulated, as a ranking of
        scores, or groups that are inferred.
    """
    names = [name.split("/")[1] for name in spec.objective.needed]
    found = {
        name: _of_split(cells["splits"][name], facts.on(name), names)
        for name in ("val", "test")
        if name in cells["splits"]
    }
    return {"accuracy": ACCURACY, **found}


def _of_split(contents: Mapping[str, Any], facts: Facts, names: Sequence[str]) -> dict[str, Any]:
    countable = tuple(name for name in names if _countable(name, facts))
    has_bias = bool(contents["cells"])
    counts = contents["cells"] or [[count] for count in contents["classes"]]
    figures = simulated(countable, tuple(map(tuple, counts)), has_bias, ACCURACY)
    return {name: figures.get(name) for name in names}


def _countable(name: str, facts: Facts) -> bool:
    metric = METRICS[name]
    return metric.possible(facts) and not metric.needs_scores and not metric.of_inferred


def warnings(spec: StudySpec, cells: Mapping[str, Any], errors: Mapping[str, Any], facts: Facts) -> list[str]:
    """Which of the study's metrics would be noise on the small cells of validation, and what would be better."""
    val, own = cells["splits"]["val"], facts.on("val")
    if val["smallest"] is None or val["smallest"] >= FEW:
        return []
    plain = math.sqrt(ACCURACY * (1 - ACCURACY) / val["samples"])
    better = [
        f"val/{rule.metric}"
        for rule in RULES
        if rule.needs == "bias labels" and not rule.limit and rule.metric not in BY_CELL and rule.possible(own)
    ]
    remedies = [*([f"search by {' or '.join(better)}"] if better else []), "give validation more samples"]
    return [
        f"val/{name} tells configurations badly apart: the smallest cell of val has {_samples(val['smallest'])}, fewer "
        f"than {FEW}. {_figures(figures, f' (that of val/accuracy: {plain:.3f})')}. Better: {', or '.join(remedies)}"
        for name, figures in errors["val"].items()
        if name in BY_CELL and figures and (figures["ties"] >= MANY_TIES or figures["standard_error"] >= 2 * plain)
    ]


def groups(spec: StudySpec) -> dict[str, str]:
    """The class and bias class, by name, of each metric of one group that the study needs."""
    facts = spec.facts
    told = {name: group_names.words(name, facts.class_names, facts.bias_names) for name in spec.objective.needed}
    return {name: words for name, words in told.items() if words}


def lines(cells: Mapping[str, Any], errors: Mapping[str, Any]) -> Iterator[str]:
    """The same for people."""
    if positive := user_data.positive_class(cells["class_names"]):
        yield f"positive class: {positive}"
    if cells["unknown"]:
        yield f"samples: not counted: {cells['unknown']}"
        return
    splits = cells["splits"]
    rows = list(_rows(cells))
    if len(rows) <= MOST_ROWS:
        yield from _table([("samples", splits), *rows], list(splits))
    else:
        yield from (f"{name}: {_compact(split)}" for name, split in splits.items())
    figures_of = {
        f"{name}/{metric}": figures for name in ("val", "test") for metric, figures in errors.get(name, {}).items()
    }
    if any(figures_of.values()):
        yield f"a model that is right in {ACCURACY:.0%} of each cell:"
        yield from (
            f"  {metric} {figures['expected']:.2f}. {_figures(figures)}"
            for metric, figures in figures_of.items()
            if figures
        )


def _rows(cells: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A label and the count of each split for each cell, or each class where no split has bias labels."""
    splits = cells["splits"]
    biased = next((split["cells"] for split in splits.values() if split["cells"]), None)
    classes = cells["class_names"] or [f"class {code}" for code in range(len(splits["train"]["classes"]))]
    for y, of_class in enumerate(classes):
        if biased is None:
            yield of_class, {name: split["classes"][y] for name, split in splits.items()}
        for s in range(len(biased[0]) if biased else 0):
            of_bias = cells["bias_names"][s] if cells["bias_names"] else f"bias {s}"
            yield (
                f"{of_class}, {of_bias}",
                {name: split["cells"][y][s] if split["cells"] else "-" for name, split in splits.items()},
            )


def _table(rows: Sequence[tuple[str, Mapping[str, Any]]], names: Sequence[str]) -> Iterator[str]:
    width = max(len(label) for label, _ in rows) + 2
    yield f"{'':<{width}}" + "".join(f"{name:>9}" for name in names)
    for label, row in rows:
        counts = (row[name]["samples"] if isinstance(row[name], Mapping) else row[name] for name in names)
        yield f"{label:<{width}}" + "".join(f"{count:>9}" for count in counts)


def _compact(split: Mapping[str, Any]) -> str:
    text = _samples(split["samples"])
    text += f" ({split['unlabelled']} without a class)" if split["unlabelled"] else ""
    if split["conflicting"] is not None:
        text += f", {split['aligned']} aligned, {split['conflicting']} conflicting"
    if split["cells"] is None:
        return f"{text}; classes of {min(split['classes'])} to {max(split['classes'])}"
    number = len(split["cells"]) * len(split["cells"][0])
    empty = f", {split['empty']} of {number} empty" if split["empty"] else ""
    return f"{text}; cells of {split['smallest']} to {split['largest']}{empty}"


def _figures(figures: Mapping[str, float], beside: str = "") -> str:
    ties = f"; two such models have the same value in {figures['ties']:.0%}" if figures["ties"] >= MANY_TIES else ""
    return f"Its standard error is {figures['standard_error']:.3f}{beside}{ties}"


def _samples(count: int) -> str:
    return f"{count} sample" if count == 1 else f"{count} samples"
