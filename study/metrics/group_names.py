"""Name the class and bias class of a cell's metric, such as `val/group_0_3_accuracy`."""

import re
from collections.abc import Sequence

from study.metrics import CELLS_BY_GROUP_METRIC
from study.text import list_few_names, quoted

OptionalClassNames = Sequence[str] | None


def group_metric_in_words(metric: str, classes: OptionalClassNames, biases: OptionalClassNames) -> str | None:
    """Describe the group of a metric, `class 'no', bias class 'f'`; None for other metrics and where names are unknown.

    Args:
        metric: with or without its split and prefix.
        classes, biases: names in the order of their numbers.
    """
    found = re.search(r"(?:^|[/_])group_(\d+)_(\d+)_accuracy$", metric)
    if not found or not classes or not biases:
        return None
    target, bias = map(int, found.groups())
    if target >= len(classes) or bias >= len(biases):
        return None
    return f"class {classes[target]!r}, bias class {biases[bias]!r}"


def group_in_words(of_class: int, of_bias: int, classes: OptionalClassNames, biases: OptionalClassNames) -> str:
    """Describe a group in a sentence, `class 'no' with bias class 'f'`; by number where names are unknown.

    Args:
        classes, biases: names in the order of their numbers.
    """
    told = (
        quoted(class_name(names, code)) if names else code for names, code in ((classes, of_class), (biases, of_bias))
    )
    return "class {} with bias class {}".format(*told)


def class_name(names: OptionalClassNames, code: int) -> str:
    """Return the name of a class or bias class; its number where names are unknown."""
    return names[code] if names and code < len(names) else str(code)


def groups_compared_by_gaps_sentence(cells: Sequence[Sequence[int]], classes: OptionalClassNames) -> str:
    """Say in a sentence which classes' groups the gaps between groups compare.

    Args:
        cells: samples of each class with each bias class.
        classes: their names in the order of their numbers.
    """
    names = [quoted(name) for name in classes] if classes else [str(number) for number in range(len(cells))]
    alone = [y for y, row in enumerate(cells) if sum(count > 0 for count in row) < 2]
    told = f"equalized_odds compares groups of the classes {list_few_names(names)}"
    if alone:
        several = "classes" if len(alone) > 1 else "class"
        named = list_few_names([names[y] for y in alone])
        told = f"equalized_odds is no number: of {several} {named} no two groups have samples"
    if len(cells) != 2:
        return f"{told}."
    of_one = "compares groups of the class" if 1 not in alone else "is no number without two groups of the class"
    return f"{told}; equal_opportunity {of_one} {names[1]}."


def group_sizes_by_metric(split: str, cells: Sequence[Sequence[int]]) -> dict[str, int]:
    """Return the size of each group by the reported name of its accuracy, `val/group_0_3_accuracy`.

    Args:
        cells: samples of each class with each bias class.
    """
    return {f"{split}/group_{y}_{s}_accuracy": size for y, row in enumerate(cells) for s, size in enumerate(row)}


def group_size_text(size: int | None) -> str:
    """Return of how many samples the accuracy before it is, ` of 112`; empty of none, or where that is not known."""
    return f" of {size}" if size else ""


def group_legend(classes: OptionalClassNames, biases: OptionalClassNames) -> dict[str, str]:
    """Describe every group that has a metric of its own, by its number, `group_0_3`."""
    told = {
        name.removesuffix("_accuracy"): group_metric_in_words(name, classes, biases) for name in CELLS_BY_GROUP_METRIC
    }
    return {name: text for name, text in told.items() if text}
