"""Memory on the simulated device: a share of a card, images once or ahead of the step, parts."""

import json

import pytest
from simulated_gpu import missing, run_on_gpu

pytestmark = pytest.mark.skipif(bool(missing()), reason=str(missing()))

TRIAL = """
import gc, json, sys
import numpy as np, torch
from study import methods, models
from study.data.dataset import Dataset, Facts, Split
from study.training import evaluation, loop
from study.training.config import TrialConfig
from study.training.trial import Trial
from study.training.evaluation import SplitEvaluator

loop.check_loss_is_finite = loop.check_networks_are_finite = lambda *given: None
evaluation.check_features_are_finite = lambda *given: None  # no kernel gives a value
FACTS = Facts(4, 4, (3, 64, 64), splits=("train", "val"))

def config(**train):
    model, method = {"name": "resnet18", "stem": "imagenet"}, {"name": "sup_con", "views": 2}
    model = {key: knob.default for key, knob in models.model_knobs(model).items()} | model
    method = {key: knob.default for key, knob in methods.method_knobs(method).items()} | method
    train = {"epochs": 1, "batch_size": 256, "augmentation": "simclr", **train}
    return TrialConfig.from_document({"data": {}, "model": model, "method": method, "train": train})

def split(count):
    index = np.arange(count)
    return Split(np.zeros((count, 3, 64, 64), np.uint8), index % 4, index // 4 % 4)

def peaks(told, samples=512):
    found = []
    def measured(self, name, final=False):
        found.append(torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()
        self.compute_features(name)
        found.append(torch.cuda.max_memory_allocated())
        return {}
    SplitEvaluator.__call__ = measured
    gc.collect()  # a trial is a ring of references
    torch.cuda.reset_peak_memory_stats()
    trial = Trial(told, Dataset(FACTS, {"train": split(samples), "val": split(2048)}), "cuda")
    images = sum(kept.inputs.numel() for kept in trial._splits.values() if kept.inputs.is_cuda)
    next(trial.train_epochs())
    return [images, *(peak - images for peak in found)]
"""

PEAKS = """
told = {"whole": peaks(config()), "half": peaks(config(precision="bfloat16")), "parts": peaks(config(micro_batch=32))}
loop.MAX_SPLIT_MEMORY_SHARE = 0.0
strict = loop.StreamedSplit._select_inputs
def chosen(self, index):
    torch.cuda.set_sync_debug_mode("error" if index is self._index else "default")
    try:
        return strict(self, index)
    finally:
        torch.cuda.set_sync_debug_mode("default")
loop.StreamedSplit._select_inputs = chosen
told["streamed"] = peaks(config())
print(json.dumps(told))
"""

SHARED = """
import json, os
import torch
from study.training import device

device.limit_gpu_memory(float(os.environ["SHARE"]))
told = []
for mib in (300, 200):
    try:
        kept = torch.empty(mib << 20, dtype=torch.uint8, device="cuda")
        told.append("fits")
    except torch.cuda.OutOfMemoryError as problem:
        told.append("MiB allowed" in str(problem))
kept = None
device.free_gpu_memory()
told.append(torch.cuda.memory_reserved())
told.append(device.available_gpu_bytes(torch.device("cuda")) / 2**20)
print(json.dumps(told))
"""


@pytest.mark.slow
def test_evaluation_takes_less_than_a_step_and_half_precision_and_parts_less_than_the_whole() -> None:
    told = json.loads(run_on_gpu(TRIAL + PEAKS))
    for name in ("whole", "half", "parts"):
        _, step, evaluation = told[name]
        assert evaluation < 1.05 * step, name
    assert told["whole"][1] < 1.02 * 1_149_399_552, "bytes of a step once counted"
    assert told["half"][1] < 0.7 * told["whole"][1]
    assert told["parts"][1] < 0.6 * told["whole"][1]
    samples = 3 * 64 * 64
    assert told["whole"][0] == (512 + 2048) * samples
    assert told["streamed"][0] == 0
    assert told["streamed"][1] < told["whole"][1] + 4 * 256 * samples


def test_the_one_that_asks_for_more_than_its_share_is_the_one_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARE", "0.25")
    assert json.loads(run_on_gpu(SHARED, mib=1000)) == [True, "fits", 0, 225.0]  # a tenth is CUDA's own
    monkeypatch.setenv("SHARE", "0.5")
    assert json.loads(run_on_gpu(SHARED, mib=1000))[0] == "fits"
