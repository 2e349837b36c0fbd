"""Groups without bias labels: a network that was trained to follow the bias gives each sample a class.

A sample's group is its own class with that one, as in uLA (Tsirigotis et al., NeurIPS 2023); where the two differ, the
bias leads away from the class. The network learns from the training split alone and is kept as `StandIn` says. It
depends on the data, `model`, `train.inferred_groups`, `train.bias_model_epochs` and the number of threads, and on
nothing else of a trial: trials that differ in their method and training are judged by the same groups.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from study.data.dataset import Dataset
from study.training.config import TrainOptions, TrialConfig
from study.training.resident import tensor
from study.training.stand_in import BATCH, PLAIN, StandIn

LEARNING_RATE = 0.001

SEED = 0


@dataclass(frozen=True)
class BiasedNetwork:
    """What the network is trained by and on, but for how it is made to follow the bias.

    Attributes:
        config: of the trial.
        dataset: its data, of which bias labels are not looked at.
        device: where it is trained.
    """

    config: TrialConfig
    dataset: Dataset
    device: torch.device

    def predictions(self, method: Mapping[str, object], epochs: int) -> dict[str, Tensor]:
        """By split, the training split aside, the classes that it predicts, (N,).

        Args:
            method: a section of a classification method that needs classes alone.
            epochs: by Adam in batches of 256, unless `train.bias_model_epochs` says otherwise.
        """
        own = self.config.train
        train = TrainOptions(
            epochs=own.bias_model_epochs or epochs,
            batch_size=BATCH,
            learning_rate=LEARNING_RATE,
            seed=SEED,
            threads=own.threads,
            deterministic=own.deterministic,
        )
        splits = {name: replace(split, bias=None, condition=None) for name, split in self.dataset.splits.items()}
        facts = replace(self.dataset.facts, bias_classes=None, condition=None)
        config = TrialConfig({}, self.config.model, method, train)
        judged = tuple(name for name in splits if name != "train")
        network = StandIn(config, Dataset(facts, splits), self.dataset.fingerprint, judged, keeps_features=False)
        outputs = network.outputs(self.device)
        return {name: tensor(split.target, self.device) for name, split in outputs.items()}


def early(network: BiasedNetwork) -> dict[str, Tensor]:
    """Cross entropy, stopped early: what is easy is learned first (JTT, Liu et al. 2021)."""
    return network.predictions(PLAIN, epochs=8)


def gce(network: BiasedNetwork) -> dict[str, Tensor]:
    """Generalised cross entropy, drawn to samples that are easy already (LfF, Nam et al. 2020)."""
    return network.predictions({"name": "generalized_cross_entropy", "q": 0.7}, epochs=12)


KINDS: Mapping[str, Callable[[BiasedNetwork], dict[str, Tensor]]] = {"early": early, "gce": gce}
"""By the name in `train.inferred_groups`: each gives the class of each sample's group, by split."""


def inferred_groups(config: TrialConfig, dataset: Dataset, device: torch.device) -> dict[str, Tensor]:
    """By split, the training split aside, the class of each sample's group, (N,); empty where none are asked for.

    Raises:
        UserError: no folder for data can be written.
        Diverged: the loss of the network is not finite.
    """
    kind = config.train.inferred_groups
    return {} if kind == "none" else KINDS[kind](BiasedNetwork(config, dataset, device))
