"""What a column says of the split of each sample: the words, and the numbers of Waterbirds."""

from collections.abc import Iterable, Mapping, Sequence

ALIASES = {"training": "train", "valid": "val", "validation": "val", "dev": "val", "testing": "test"} | {
    name: name for name in ("train", "val", "test")
}
"""Names that a split may have in the user's files."""

NUMBERS = {"0": "train", "1": "val", "2": "test"}
"""Numbers that splits have where a column holds nothing else, as the table of Waterbirds."""

COLUMNS = ("split", "partition", "subset", "set")
"""Names that a column of splits has, in any letters."""


def splits_of(values: Sequence[str]) -> list[str]:
    """train, val or test for each value; empty for one that is no word for a split."""
    texts = [str(value).strip().lower() for value in values]
    words: Mapping[str, str] = NUMBERS if "0" in texts and {*texts} <= {*NUMBERS} else ALIASES
    return [words.get(text, "") for text in texts]


def is_split(name: str, values: Iterable[object]) -> bool:
    """Whether a column has the name of one of splits and holds two or more of them, and nothing else."""
    if name.strip().lower() not in COLUMNS:
        return False
    found = {*splits_of([str(value) for value in {*values}])}
    return "" not in found and "train" in found and len(found) > 1
