"""One trial of a study."""

from collections.abc import Mapping
from functools import cached_property

from torch import Tensor

from study.methods import Labels
from study.training.bias import known_labels
from study.training.inferred import inferred_groups
from study.training.loop import TrainingLoop


class Trial(TrainingLoop):
    """The training loop with labels as the `method` section lets its method know them, and groups as
    `train.inferred_groups` has them found; see `TrainingLoop`."""

    def _labels(self) -> Labels:
        return known_labels(super()._labels(), self.config, self.dataset)

    @cached_property
    def inferred(self) -> Mapping[str, Tensor]:
        """By split, the class of the group that each sample was found to be in, (N,)."""
        return inferred_groups(self.config, self._apart, self.device)
