"""A network of one layer and a batch that every method can be tried on."""

import torch
from torch import Tensor, nn

from study import methods
from study.data import Facts
from study.methods import Batch, BatchLabels, Method
from study.models import Encoder, Network
from study.models.network_keys import HeadOptions

FACTS = Facts(classes=3, bias_classes=2, shape=(5,), condition=4)


class Layer(Encoder):
    features = 6

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 6)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.layer(inputs).tanh()


def section(name: str, **given: object) -> dict[str, object]:
    """A complete method section."""
    found = {"name": name, **given}
    return {key: knob.default for key, knob in methods.method_knobs(found).items()} | found


def build(name: str, facts: Facts = FACTS, head: str = "none", **given: object) -> Method:
    torch.manual_seed(0)
    return methods.build_method(section(name, **given), facts, lambda: Network(Layer(), HeadOptions(head, 7, 4)))


def batch_for(method: Method, size: int = 12) -> Batch:
    generator = torch.Generator().manual_seed(1)
    index = torch.arange(size)
    labels = BatchLabels(index % 3, index % 2, torch.rand(size, 4, generator=generator))
    method.prepare_training(labels)
    return Batch(torch.randn(method.views, size, 5, generator=generator), labels, index)
