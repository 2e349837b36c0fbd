"""What a step of a stack costs on a GPU: launches of all rows together, no wait, and memory by row."""

import json

import pytest
from simulated_gpu import missing, run_on_gpu

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=str(missing()))]

ROWS = (4, 16)

SCRIPT = """
import json, warnings
warnings.simplefilter("ignore")
import numpy as np, torch
from simulated_gpu import launches
from small import section
from study.data.dataset import Dataset, Facts, Split
from study.methods import Batch
from study.training import Trial, TrialConfig
from study.training.plain_step import plain_step
from study.training.stack.program import Program

SHAPES = {"mlp": (12,), "small_conv_net": (3, 32, 32), "lenet": (3, 28, 28), "simple_conv_net": (3, 28, 28)}
FAIR = {"name": "eps_sup_info_nce", "regulariser": "fair_kl", "temperature": 0.1}

def data(shape):
    inputs = np.zeros((256, *shape), np.uint8 if len(shape) == 3 else np.float32)
    labels = np.arange(256) % 2
    facts = Facts(classes=2, bias_classes=2, shape=shape, mean=0.5, deviation=0.5)
    return Dataset(facts, {name: Split(inputs, labels, labels) for name in ("train", "val", "test")})

def config(network, row):
    method = section(**FAIR, alpha=0.1 + row, epsilon=0.01 * row, **{"lambda": 0.5 + row})
    train = {"epochs": 1, "batch_size": 64, "seed": row}
    return TrialConfig.from_document({"data": {}, "model": {"name": network}, "method": method, "train": train})

def watched(step):
    "Launches of the third step, and MiB at its peak."
    step(), step()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.set_sync_debug_mode("error")
    before = launches()
    step()
    torch.cuda.set_sync_debug_mode("default")
    return launches() - before, torch.cuda.max_memory_allocated() / 2**20

told = {}
for network, shape in SHAPES.items():
    samples = data(shape)
    alone = Trial(config(network, 0), samples, "cuda")
    course = alone.begin()
    one, index = plain_step(alone, course.main, course.beside), torch.arange(64, device="cuda")
    alone.method.begin_epoch(1, 1)
    alone.method.train()
    told[network] = {1: watched(lambda: one(Batch(alone.views(index, course.chance), course.labels.at(index), index)))}
    for rows in ROWS:
        trials = [Trial(config(network, row), samples, "cuda") for row in range(rows)]
        program = Program(trials, [trial.begin() for trial in trials])
        program.begin_epoch([1] * rows)
        told[network][rows] = watched(lambda: program.step([index] * rows, program.views([index] * rows)))
print(json.dumps(told))
"""


def test_sixteen_rows_launch_at_most_a_tenth_of_what_they_launch_alone() -> None:
    told = json.loads(run_on_gpu(SCRIPT.replace("ROWS", str(ROWS))))
    for network, by_rows in told.items():
        alone, stacked = by_rows["1"][0], by_rows["16"][0]
        assert stacked / 16 <= alone / 10, (network, by_rows)
