"""The networks of a trial."""

from dataclasses import replace

import torch
from torch import nn

from study import methods, models
from study.data.dataset import Facts
from study.training import augment
from study.training.config import TrialConfig


def networks(config: TrialConfig, facts: Facts, begins: bool = True) -> nn.ModuleDict:
    """`method`: the method with its networks; `probes`: a linear probe for each of its encoders, by name. Freshly
    initialised from `train.seed`.

    Args:
        facts: of the data set.
        begins: from the weights that `model.weights` names; False: others will be put in.
    """
    torch.manual_seed(config.train.seed)
    trained = facts.on("train")
    seen = replace(trained, shape=augment.output_shape(config.train.augmentation, facts.shape, config.train))
    method = methods.build(config.method, trained, lambda: models.network(config.model, seen, begins))
    encoders = method.encoders().items()
    probes = nn.ModuleDict({name: nn.Linear(encoder.features, facts.classes) for name, encoder in encoders})
    return nn.ModuleDict({"method": method, "probes": probes})
