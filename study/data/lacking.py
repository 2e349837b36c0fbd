"""What training lacks that is measured: classes, bias classes and groups without a training sample, by name."""

from collections.abc import Iterator, Mapping
from typing import Any

from study.text.quoted import quoted, some


def warnings(counts: Mapping[str, Any]) -> list[str]:
    """Sentences about the counts of `study.data.cells.count`; none for data without names, or that are not counted."""
    if counts["unknown"] or not counts["class_names"]:
        return []
    train = counts["splits"]["train"]
    found = [*_bias(counts)]
    for name, split in counts["splits"].items():
        if name != "train":
            found += _unseen(counts, train, name, split)
    return found


def _bias(counts: Mapping[str, Any]) -> Iterator[str]:
    """A bias that nothing can be told from: of one value, or known for no training sample."""
    names, cells = counts["bias_names"], counts["splits"]["train"]["cells"]
    if names and len(names) == 1:
        yield f"the bias is {quoted(names[0])} in every row: no group differs from another. Leave out data.bias"
    elif cells and not any(map(sum, cells)):
        yield "the bias is known for no training sample: nothing can be learned of it"


def _unseen(counts: Mapping[str, Any], train: Mapping[str, Any], name: str, split: Mapping[str, Any]) -> Iterator[str]:
    """What a split has and training has not; of a class that is unseen its groups are not told again."""
    classes, biases = counts["class_names"], counts["bias_names"]
    unseen = [y for y, count in enumerate(split["classes"]) if count and not train["classes"][y]]
    if unseen:
        told = [f"{quoted(classes[y])} ({split['classes'][y]} in {name})" for y in unseen]
        yield f"class {some(told)} has no training sample: it cannot be learned, and all of it counts as wrong"
    if not biases or not split["cells"] or not train["cells"] or not any(map(sum, train["cells"])):
        return
    pairs = [(y, s) for y in range(len(classes)) for s in range(len(biases)) if y not in unseen]
    groups = [
        f"class {quoted(classes[y])} with bias class {quoted(biases[s])} ({split['cells'][y][s]} in {name})"
        for y, s in pairs
        if split["cells"][y][s] and not train["cells"][y][s]
    ]
    if groups:
        yield f"no training sample of {some(groups)}: nothing is learned of such samples"
