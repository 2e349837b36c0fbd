"""No step reads a value back from the device: on tensors without values nothing can.

WCL is its two losses, whose own tests trace them as one graph.
"""

import pytest
import torch
from small import method_for_rows, rows

from study.methods import Batch, BatchLabels

METHODS = [
    {"name": "learning_from_failure"},
    {"name": "just_train_twice", "identification": 0.25},
    {"name": "group_dro"},
    {"name": "laftr"},
    {"name": "equalized_odds_postprocessing"},
]


@pytest.mark.parametrize("given", METHODS, ids=lambda method: method["name"])
def test_a_step(given: dict) -> None:
    method = method_for_rows(**given)
    batch = rows(views=method.views)
    method.prepare_training(batch.labels)
    method.to("meta")
    labels = BatchLabels(batch.labels.target.to("meta"), batch.labels.bias.to("meta"))
    valueless = Batch(batch.views.to("meta"), labels, batch.index.to("meta"))
    optimizer = torch.optim.SGD(method.parameters(), lr=0.1)
    for epoch in (1, 2):
        method.begin_epoch(epoch, 2)
        optimizer.zero_grad(set_to_none=True)
        method(valueless)[0].backward()
        optimizer.step()
