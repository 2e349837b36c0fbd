"""Rows of a stack that share order, batches and augmentation."""

from typing import Any

import pytest
import torch
from stacks import Exact, close, configs, few, large, sections, state

from study import methods
from study.data import Dataset
from study.training import Trial
from study.training.stack.stack import Stack, run
from study.training.stack.together import apart

FAIR = {"name": "eps_sup_info_nce", "regulariser": "fair_kl", "temperature": 0.1}
ROWS = [FAIR | {"alpha": 0.1 + 0.3 * n, "lambda": 0.5 * n, "epsilon": 0.1 * n} for n in range(3)]
FAST = [ROWS, [{"name": "bias_con", "cross_entropy": "plain"}] * 2]


def compare(rows: list[dict[str, Any]], model: dict[str, Any] | None = None, samples: Dataset | None = None) -> None:
    """Rows of one seed draw the same, shared or not."""
    views = methods.needs(configs(rows)[0].method).views
    told = configs(rows, model, seed=7, augmentation="crop_flip" if views else "none")
    assert apart(told[0], told[1]) is None
    trials = {draws: [Exact(one, samples or few(), "cpu") for one in told] for draws in ("own", "shared")}
    epochs = zip(run(trials["own"], "own"), run(trials["shared"], "shared"), strict=True)
    for ours, theirs in epochs:
        for one, other in zip(ours, theirs, strict=True):
            assert isinstance(one, dict)
            assert isinstance(other, dict)
            assert other["train/loss"] == pytest.approx(one["train/loss"], rel=1e-6, abs=1e-12)
            assert other.keys() == one.keys()
    for alone, stacked in zip(trials["own"], trials["shared"], strict=True):
        close(alone, stacked, 1e-5)


@pytest.mark.parametrize("rows", FAST, ids=lambda rows: rows[0]["name"])
def test_shared_draws_are_those_of_the_first(rows: list[dict[str, Any]]) -> None:
    compare(rows)


@pytest.mark.slow
@pytest.mark.parametrize("case", list(sections()), ids=lambda case: "-".join(str(value) for value in case.values()))
def test_every_method_of_the_catalogue_with_shared_draws(case: dict[str, Any]) -> None:
    compare([case, case])


@pytest.mark.slow
@pytest.mark.parametrize("network", ["small_conv_net", "lenet"])
def test_networks(network: str) -> None:
    head = {"head": "mlp", "head_norm": "both", "head_hidden": 8, "head_features": 8}
    compare(ROWS, {"name": network} | head, large() if network == "lenet" else few())


def test_seeds_say_how_rows_begin_and_the_next_draws_on_where_the_first_leaves() -> None:
    told = configs([FAIR | {"lambda": 1.0}] * 3, epochs=[1, 3, 3])
    trials = [Trial(one, few(), "cpu") for one in told]
    assert not torch.equal(*(state(one)["method.network.encoder.last.weight"] for one in trials[:2]))
    stack = Stack("shared")
    members = [stack.join(one) for one in trials]
    stack.epoch()
    assert len({tuple(member.course.order.get_state().tolist()) for member in members}) == 1
    stack.leave(members[0])
    before = members[1].course.order.get_state()
    stack.epoch()
    assert not torch.equal(before, members[1].course.order.get_state())
    assert torch.equal(members[1].course.order.get_state(), members[2].course.order.get_state())
