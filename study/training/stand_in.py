"""A network that stands in for labels that the data do not have.

It is trained once on a machine: its outputs are kept beside the prepared data, by all that they depend on. The other
trials of a study wait for it and read it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from study import models
from study.data.cache import cached
from study.data.dataset import Dataset, Facts, Split
from study.training.config import TrialConfig
from study.training.diverged import Diverged
from study.training.loop import TrainingLoop

PLAIN = {"name": "cross_entropy"}
BATCH = 256


@dataclass(frozen=True)
class StandIn:
    """A classifier that is trained to stand in for labels.

    Attributes:
        config, dataset: what it is trained by and on.
        made_from: what the data set is, for the name under which the result is kept.
        splits: of the samples whose outputs are asked for.
        keeps_features: the outputs are its features, else its logits.
    """

    config: TrialConfig
    dataset: Dataset
    made_from: str
    splits: tuple[str, ...]
    keeps_features: bool

    def outputs(self, device: torch.device) -> Mapping[str, Split]:
        """As tables, by split: features or logits as rows, float32 (N, F), predictions as classes (N,).

        The state of torch's generators stays as it is, whether a network was trained for this or not.

        Raises:
            UserError: no folder for data can be written.
            Diverged: the loss of the network is not finite.
        """
        config = self.config
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            features = models.build(config.model, self.dataset.facts, False).features
            classes = self.dataset.facts.classes
            facts = Facts(classes, None, (features if self.keeps_features else classes,), splits=self.splits)
            key: dict[str, Any] = {"model": dict(config.model), "train": asdict(config.train), "device": device.type}
            key |= {"method": dict(config.method), "facts": asdict(self.dataset.facts)}
            key |= {"made_from": self.made_from, "torch": torch.__version__}
            key |= {"weights": begun} if (begun := models.weights(config.model)) else {}
            name = "bias_features" if self.keeps_features else "bias_guess"
            return cached(name, key, facts, lambda: self._train(device)).splits

    def _train(self, device: torch.device) -> dict[str, Split]:
        loop = TrainingLoop(self.config, self.dataset, str(device))
        try:
            for _ in loop.run():
                pass
        except Diverged as problem:
            raise Diverged(f"the network that stands in for bias labels: {problem}") from None
        return {split: self._outputs(loop, split) for split in self.splits}

    def _outputs(self, loop: TrainingLoop, split: str) -> Split:
        features = loop.evaluate.features(split)
        logits = loop.evaluate.scores("encoder", features)
        kept = features if self.keeps_features else logits
        return Split(kept.float().cpu().numpy(), logits.argmax(1).cpu().numpy())
