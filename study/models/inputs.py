"""What a network takes: the checks that its module offers as `unsuited`."""

from study.data.dataset import Facts


def not_images(facts: Facts) -> str | None:
    """What is wrong with the data for a network of images; None if nothing is."""
    return f"takes images, not rows of {facts.shape[0]} numbers" if facts.is_table else None


def not_a_table(facts: Facts) -> str | None:
    """What is wrong with the data for a network of a table's rows; None if nothing is."""
    return None if facts.is_table else f"takes the rows of a table, not images of {size(facts)} pixels"


def size(facts: Facts) -> str:
    """Height and width of the images, in words."""
    return " x ".join(str(side) for side in facts.shape[1:])
