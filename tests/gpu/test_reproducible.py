"""What a trial on a GPU promises of a second run: the states of all generators, and the same algorithms."""

import json

import pytest
from simulated_gpu import missing, run_on_gpu

pytestmark = pytest.mark.skipif(bool(missing()), reason=str(missing()))

SCRIPT = """
import json, os, tempfile, warnings
from pathlib import Path
import torch
from small import config, digits
from study.training import evaluation, loop
from study.training.trial import Trial

warnings.simplefilter("ignore")
loop.check_loss_is_finite = loop.check_networks_are_finite = lambda *given: None
evaluation.check_features_are_finite = lambda *given: None  # there are no values
told = config({"name": "cross_entropy"}, epochs=3, augmentation="crop_flip", batch_size=160)
file = Path(tempfile.mkdtemp()) / "state.pt"

def random():
    kept = torch.load(file, weights_only=True)
    return kept["epoch"], {name: state.tolist() for name, state in kept["random"].items()}

running = Trial(told, digits(), "cuda").train_epochs(file)
next(running)
torch.rand(1000, device="cuda")  # as dropout would
next(running)
first = random()
earlier = file.read_bytes()
next(running)
second = random()
file.write_bytes(earlier)
torch.cuda.manual_seed(99)
resumed = Trial(told, digits(), "cuda").train_epochs(file)
next(resumed), next(resumed)
again = random()

print(json.dumps({
    "epochs": [first[0], second[0], again[0]],
    "kept": sorted(first[1]),
    "moved in the second epoch": sorted(name for name in first[1] if first[1][name] != second[1][name]),
    "the same behind it": again == second,
}))


def told():
    cudnn = torch.backends.cudnn
    return [torch.get_deterministic_debug_mode(), cudnn.deterministic, cudnn.benchmark]

torch.backends.cudnn.benchmark = True
found = {"before": told()}
Trial(config({"name": "cross_entropy"}, deterministic=True), digits(), "cuda")
found |= {"demanded": told(), "cuBLAS": os.environ["CUBLAS_WORKSPACE_CONFIG"]}
try:
    torch.ones(5, device="cuda").histc()
except RuntimeError as problem:
    found["without such an algorithm"] = "does not have a deterministic implementation" in str(problem)
Trial(config({"name": "cross_entropy"}), digits(), "cuda")
found["after"] = told()
Trial(config({"name": "cross_entropy"}, deterministic=True), digits(), "cpu")
found["on the CPU"] = told()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def printed() -> list[dict[str, object]]:
    return [json.loads(line) for line in run_on_gpu(SCRIPT).splitlines()]


def test_the_states_of_all_generators_are_kept_and_taken(printed: list[dict[str, object]]) -> None:
    """Also that of the device's own, which operations draw from that are given none."""
    assert printed[0] == {
        "epochs": [1, 2, 2],
        "kept": ["chance", "cuda", "order", "torch"],
        "moved in the second epoch": ["chance", "order"],
        "the same behind it": True,
    }


def test_deterministic_algorithms_are_demanded_of_the_trials_that_ask(printed: list[dict[str, object]]) -> None:
    """And of these alone, where a process runs both; on the CPU nothing has to be demanded."""
    assert printed[1] == {
        "before": [0, False, True],
        "demanded": [2, True, False],
        "cuBLAS": ":4096:8",
        "without such an algorithm": True,
        "after": [0, False, True],
        "on the CPU": [0, False, True],
    }
