"""The simulated device itself: what the other tests of this folder rest on."""

import json

import pytest
from simulated_gpu import missing, run_on_gpu

pytestmark = pytest.mark.skipif(bool(missing()), reason=str(missing()))

SCRIPT = """
import json, warnings
import torch
from simulated_gpu import counts, launches, record, recorded

warnings.simplefilter("ignore")
device, told = torch.device("cuda", 1), {"devices": torch.cuda.device_count()}
told["memory"] = torch.cuda.mem_get_info(0)[1] >> 20

a = torch.ones(300, 300, device=device, requires_grad=True)
before = launches()
record()
loss = (a @ a).relu().sum()
told["forward"] = launches() - before
told["names"] = list(recorded())
before = launches()
loss.backward()
told["backward"] = launches() - before

try:
    torch.empty(2 << 30, device=device)
except torch.cuda.OutOfMemoryError as problem:
    told["out of memory"] = str(problem).split(".")[0]
kept = [torch.empty(900 << 20, dtype=torch.uint8, device=each) for each in (0, 1)]  # each has memory of its own

try:
    a + torch.ones(300, 300, device="cuda:0")
except RuntimeError as problem:
    told["two devices"] = "same device" in str(problem)

torch.cuda.set_sync_debug_mode("error")
try:
    loss.item()
except RuntimeError as problem:
    told["wait"] = "synchroniz" in str(problem)
torch.cuda.set_sync_debug_mode("default")
waits = counts()["waits"]
loss.item()
told["waits"] = counts()["waits"] - waits
told["value"] = torch.tensor([1.5, 2.5], device=device).tolist()

still, graph = torch.ones(3, device="cuda:0"), torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    still * 2 + 1
before = launches()
graph.replay()
told["graph"] = launches() - before
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        still.sum().item()
except RuntimeError as problem:
    told["wait in a graph"] = "previous error during capture" in str(problem)
print(json.dumps(told))
"""


def test_a_device_counts_checks_and_runs_out_of_memory() -> None:
    told = json.loads(run_on_gpu(SCRIPT, gpus=2, mib=1000))
    names = told.pop("names")
    assert told.pop("out of memory").startswith("CUDA out of memory")
    assert told == {
        "devices": 2,
        "memory": 1000,
        "forward": 3,  # product, relu, sum
        "backward": 5,  # a one, threshold, two products, spread
        "two devices": True,
        "wait": True,
        "waits": 1,
        "value": [1.5, 2.5],
        "graph": 1,
        "wait in a graph": True,
    }
    assert any("gemm" in name.lower() for name in names)
    assert any("reduce_kernel" in name for name in names)
