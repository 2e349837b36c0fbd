"""A step as a CUDA graph: what is launched, and what is refused. Values are compared where a device has them."""

import json

import pytest
from simulated_gpu import missing, run_on_gpu
from small import config, digits

from study.spec.search_checks import incompatible_sections_faults
from study.training.trial import Trial

on_gpu = pytest.mark.skipif(bool(missing()), reason=str(missing()))

SCRIPT = """
import json, warnings
warnings.simplefilter("ignore")
import torch
from simulated_gpu import counts
from small import config, digits
from study.training import evaluation, loop
from study.training.trial import Trial

for name in ("check_loss_is_finite", "check_networks_are_finite"):  # of values that are not there
    setattr(loop, name, lambda *values: None)
evaluation.check_features_are_finite = lambda *values: None
told = {}
call = loop.CudaGraphStep.__call__

def counted(self, batch):
    torch.cuda.set_sync_debug_mode("error")
    before, began = counts(), len(batch.index)
    value = call(self, batch)
    after = counts()
    torch.cuda.set_sync_debug_mode("default")
    rate = self._rates[0]
    launched = after["launches"] + after["library_calls"] - before["launches"] - before["library_calls"]
    told[case].append([began, launched, after["graph_launches"] - before["graph_launches"], rate.device.type])
    return value

loop.CudaGraphStep.__call__ = counted
method = {"name": "eps_sup_info_nce", "regulariser": "fair_kl", "lambda": 1.0, "alpha": 0.1}
cases = {"adam": {}, "sgd": {"optimizer": "sgd"}, "lars": {"optimizer": "lars"}, "clip": {"clip_norm": 1.0}}
for case, train in cases.items():
    told[case] = []
    train |= {"graph": True, "batch_size": 60, "epochs": 1, "precision": "bfloat16", "schedule": "cosine"}
    list(Trial(config(method, **train), digits(), "cuda").train_epochs())
print(json.dumps(told))
"""


@on_gpu
def test_a_full_batch_is_one_launch_and_its_copies() -> None:
    for case, steps in json.loads(run_on_gpu(SCRIPT)).items():
        sizes, launched, graphs, devices = zip(*steps, strict=True)
        full = [place for place, size in enumerate(sizes) if size == 60]
        assert len(full) >= 5, case
        assert set(devices) == {"cuda"}, case
        assert all(launched[place] > 50 and not graphs[place] for place in full[:3]), case  # warming up
        assert [graphs[place] for place in full[3:]] == [1] * (len(full) - 3), case
        assert all(launched[place] <= 8 for place in full[4:]), case  # the first of them also makes its batch
        assert all(not graphs[place] for place, size in enumerate(sizes) if size < 60), case


UNASKED = """
import json, os, warnings
from simulated_gpu import counts
from small import config, digits
from study.training import evaluation, loop
from study.training.trial import Trial

for name in ("check_loss_is_finite", "check_networks_are_finite"):  # of values that are not there
    setattr(loop, name, lambda *values: None)
evaluation.check_features_are_finite = lambda *values: None
probe_loss, room = Trial._sum_of_probe_losses, loop.available_gpu_bytes

def waiting(self, features, index):
    next(iter(features.values())).sum().item()
    return probe_loss(self, features, index)

def trained(graph):
    before = counts()["graph_launches"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        list(Trial(config({"name": "sup_con"}, graph=graph, batch_size=60, epochs=2), digits(), "cuda").train_epochs())
    own = [str(one.message) for one in caught if "train.graph" in str(one.message)]
    return counts()["graph_launches"] - before, own

told = {"recorded": trained(None), "not": trained(False)}
loop.available_gpu_bytes = lambda device: 0
told["no room"] = trained(None)
loop.available_gpu_bytes, Trial._sum_of_probe_losses = room, waiting
told["waits"] = trained(None)
try:
    trained(True)
except RuntimeError as problem:
    told["asked"] = str(problem)
print(json.dumps(told), flush=True)
os._exit(0)  # a recording that failed may leave a thread of the simulated card, which ends the interpreter's end badly
"""


@on_gpu
def test_a_step_is_recorded_unasked_where_it_can_be() -> None:
    told = json.loads(run_on_gpu(UNASKED))
    launches, warned = told["recorded"]
    assert launches >= 5
    assert not warned
    assert told["not"] == told["no room"] == [0, []]
    launches, (why,) = told["waits"]
    assert launches == 0
    assert "capture" in why
    assert "capture" in told["asked"]


def problems(method: dict, **train: object) -> list[str]:
    sections = config(method, **train).to_document() | {"data": {"name": "digits"}}
    facts = digits().facts
    return [why for place, why in incompatible_sections_faults(sections, facts) if place == ("train", "graph")]


def test_what_cannot_be_recorded_is_refused() -> None:
    assert not problems({"name": "sup_con"}, graph=True)
    assert not problems({"name": "group_dro"})
    (why,) = problems({"name": "group_dro"}, graph=True)
    assert why == "True given, a step with method.name 'group_dro' differs from batch to batch"


def test_on_a_cpu_the_step_runs_as_it_is() -> None:
    recorded, plain = (
        next(Trial(config({"name": "sup_con"}, graph=graph, epochs=1), digits(), "cpu").train_epochs())
        for graph in (True, False)
    )
    assert recorded["train/loss"] == plain["train/loss"]
