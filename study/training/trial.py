"""One trial of a study."""

from study.methods import Labels
from study.training.bias import known_labels
from study.training.loop import TrainingLoop


class Trial(TrainingLoop):
    """The training loop with labels as the `method` section lets its method know them; see `TrainingLoop`."""

    def _labels(self) -> Labels:
        return known_labels(self.config, self.dataset, self.device)
