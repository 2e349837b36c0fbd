"""What a method needs of data and batch; checked before anything starts."""

from collections.abc import Iterator
from dataclasses import dataclass

from study.data.dataset import Facts

UNKNOWN_LABEL = -1
"""Label of a sample whose label is unknown."""

PLAIN_CROSS_ENTROPY, BALANCED_CROSS_ENTROPY = "cross_entropy", "bias_balanced_cross_entropy"
"""Methods that a classifier's loss is named after."""


@dataclass(frozen=True)
class MethodNeeds:
    """Requirements of a method.

    Attributes:
        labels_key: the key that asks for the class of every training sample.
        bias_key: the key that asks for bias labels, None: they are not needed.
        condition_key: the key that asks for a continuous attribute or, in its place, bias labels.
        views_key: the key that asks for several views of a sample, which must differ.
        min_epochs: the key that asks for a least number of epochs, and this number.
        only_tables, only_binary: it works only on rows of numbers, only on two classes.
        varying_key: the key that makes a step's operations depend on its batch, or change state other than in place, so
            that `train.graph` cannot record it; None: it can.
        total_epochs_key: the key by which what it does in an epoch depends on the number of all epochs;
            None: it does not.
        bias_to_predict: whether its predictions, too, need bias labels, so that scores alone do not decide.
        receptive_field: side in pixels of what a bias-capturing network sees of an image at once, which must have room
            for it.
    """

    labels_key: str | None = None
    bias_key: str | None = None
    condition_key: str | None = None
    views_key: str | None = None
    only_tables: bool = False
    only_binary: bool = False
    varying_key: str | None = "name"
    receptive_field: int | None = None
    min_epochs: tuple[str, int] | None = None
    total_epochs_key: str | None = None
    bias_to_predict: bool = False

    def unmet_by(self, facts: Facts) -> Iterator[tuple[str, str]]:
        """Yield the keys whose requirement a data set does not meet, and why."""
        if self.labels_key and facts.unlabelled:
            yield self.labels_key, "needs the class of every training sample"
        if self.bias_key and facts.bias_classes is None:
            yield self.bias_key, "needs bias labels"
        if self.condition_key and facts.condition is None and facts.bias_classes is None:
            yield self.condition_key, "needs a continuous attribute or bias labels"
        if self.only_tables and not facts.is_table:
            yield "name", "needs a table"
        if self.receptive_field and (facts.is_table or min(facts.shape[1:]) < self.receptive_field):
            yield "bias_field", f"needs images of at least {self.receptive_field} x {self.receptive_field} pixels"
        if self.only_binary and facts.classes != 2:
            yield "name", f"needs two classes, not {facts.classes}"
