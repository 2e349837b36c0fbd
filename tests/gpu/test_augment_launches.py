"""What the views of a batch cost on a GPU: kernels that the CPU launches, and no wait."""

import json

import pytest
from simulated_gpu import missing, run_on_gpu

pytestmark = pytest.mark.skipif(bool(missing()), reason=str(missing()))

BUDGETS = {
    "none (3, 32, 32)": 5,
    "crop_flip (3, 32, 32)": 60,
    "simclr (3, 32, 32)": 118,
    "simclr (3, 96, 48)": 124,
    "simclr (1, 28, 28)": 93,
    "simclr_blur (3, 32, 32)": 134,
    "bias_con (3, 28, 28)": 78,
    "none (12,)": 1,
    "corrupt_columns (12,)": 8,
    "noise (12,)": 3,
}
"""The most launches of all views of a batch: samples taken, augmented and normalised."""

SCRIPT = """
import json, warnings
import numpy as np, torch
from simulated_gpu import launches
from study.data.dataset import Facts, Split
from study.training import augment
from study.training.config import TrainOptions
from study.training.device import DeviceSplit

warnings.simplefilter("ignore")
device = torch.device("cuda")
generator = torch.Generator(device).manual_seed(0)
told = {}
for case in CASES:
    name, shape = case.split(" ", 1)
    shape = tuple(json.loads(shape.replace("(", "[").replace(",)", ")").replace(")", "]")))
    rows = np.zeros((64, *shape), np.uint8 if len(shape) == 3 else np.float32)
    facts = Facts(classes=2, bias_classes=None, shape=shape, mean=0.5, deviation=0.5)
    split = DeviceSplit(Split(rows, np.zeros(64, np.int64)), facts, device)
    augmentation, index = augment.build_augmentation(name, shape, TrainOptions()), torch.arange(32, device=device)
    torch.cuda.set_sync_debug_mode("error")
    for views in (1, 2, 4):  # the first takes constants to the device
        before = launches()
        batch = split.normalise_pixels(augmentation(split.pixels_of_samples(index), generator, views))
        told.setdefault(case, []).append(launches() - before)
        assert batch.shape == (views, 32, *shape), batch.shape
    torch.cuda.set_sync_debug_mode("default")
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, list[int]]:
    """By case, the launches of one, two and four views."""
    result: dict[str, list[int]] = json.loads(run_on_gpu(f"CASES = {list(BUDGETS)}\n{SCRIPT}"))
    return result


def test_two_views_keep_to_their_budget_and_wait_for_nothing(told: dict[str, list[int]]) -> None:
    assert {case: two for case, (_, two, _) in told.items() if two > BUDGETS[case]} == {}
    assert list(told) == list(BUDGETS)


def test_further_views_launch_nothing_more(told: dict[str, list[int]]) -> None:
    for one, two, four in told.values():
        assert one <= two <= one + 1  # the batch is repeated
        assert four == two
