"""Which data a recipe suits: a reason why not, or None."""

from study.data.dataset import Facts


def colour_images(facts: Facts) -> str | None:
    """Images whose channels are red, green and blue, or grey alone."""
    if facts.is_table:
        return images(facts)
    return (
        None if facts.shape[0] in (1, 3) else f"changes colours, the data set's images have {facts.shape[0]} channels"
    )


def images(facts: Facts) -> str | None:
    """Images of any channels."""
    return "is for images, the data set is a table" if facts.is_table else None


def tables(facts: Facts) -> str | None:
    """Rows of numbers."""
    return None if facts.is_table else "is for tables, the data set has images"


def anything(facts: Facts) -> str | None:
    """Images and tables."""
    return None
