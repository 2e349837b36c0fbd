"""A batch that goes through the networks in parts: loss, gradients, randomness and batch normalisation."""

import pytest
import torch
from tiny_methods import batch_for, build
from torch import Tensor, nn

from study.methods import Method, method_names
from study.training import optimization
from study.training.config import TrainOptions

IN_PARTS = TrainOptions(batch_size=12, micro_batch=5)
"""Parts of the views of 5, 5 and 2 samples or so: uneven ones."""


def step(method: Method) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a step in float64, and the gradient of each parameter."""
    method.double().train()
    batch = batch_for(method)
    method.begin_epoch(2, 4)
    given = type(batch)(batch.views.double(), batch.labels, batch.index)
    loss, _ = method(given)
    loss.backward()
    return loss, {name: value.grad for name, value in method.named_parameters() if value.grad is not None}


TRIED = [name for name in method_names() if name not in ("laftr",)]


@pytest.mark.parametrize("name", TRIED)
def test_parts_have_the_gradients_of_the_whole_batch(name: str) -> None:
    whole, in_parts = build(name, head="mlp"), build(name, head="mlp")
    optimization.use_micro_batches(in_parts, IN_PARTS)
    loss, gradients = step(whole)
    loss_of_parts, gradients_of_parts = step(in_parts)
    assert torch.allclose(loss, loss_of_parts, rtol=1e-6)
    assert gradients.keys() == gradients_of_parts.keys() != set()
    for key, gradient in gradients.items():
        assert torch.allclose(gradient, gradients_of_parts[key], rtol=1e-6, atol=1e-9), key


class Normed(nn.Module):
    """Batch normalisation, and the rows that each pass got."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(5, 4), nn.BatchNorm1d(4)
        self.rows: list[int] = []

    def forward(self, inputs: Tensor) -> Tensor:
        self.rows.append(len(inputs))
        outputs: Tensor = self.norm(self.layer(inputs))
        return outputs


def test_running_statistics_hear_of_each_part_once() -> None:
    module = Normed()
    module.forward = optimization.MicroBatchedForward(module, 4)  # type: ignore[method-assign]
    outputs = module(torch.randn(10, 5))
    running = module.norm.running_mean.clone()
    outputs.square().sum().backward()
    assert module.rows == [4, 3, 3, 3, 3, 4]  # the last part first on the way back
    assert torch.equal(module.norm.running_mean, running)
    assert int(module.norm.num_batches_tracked) == 3
    assert module.norm.momentum == 0.1


def test_a_part_goes_through_again_with_the_same_chance() -> None:
    module = nn.Sequential(nn.Linear(5, 5, bias=False), nn.Dropout())
    nn.init.eye_(module[0].weight)
    inputs = torch.rand(10, 5) + 1
    module.forward = optimization.MicroBatchedForward(module, 4)  # type: ignore[method-assign]
    outputs = module(inputs)
    torch.rand(3)  # whatever is drawn between
    outputs.sum().backward()
    mask = outputs.detach() / inputs
    assert torch.allclose(module[0].weight.grad, mask.T @ inputs)


def test_no_more_than_a_part_is_kept_for_the_gradient() -> None:
    held: list[int] = []
    module = nn.Sequential(nn.Linear(5, 64), nn.Tanh(), nn.Linear(64, 4))
    inputs = torch.randn(40, 5)
    module.forward = optimization.MicroBatchedForward(module, 4)  # type: ignore[method-assign]
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: held.append(tensor.numel()) or tensor, lambda it: it):
        module(inputs)
    assert all(numel < 64 * 40 for numel in held)
