"""Everything that a study file can name, trained on the simulated device: nothing on the wrong device, no wait within a
step, and no more launches than launches.yaml has."""

import json
import subprocess
import sys

import pytest
import yaml
from gpu_scan import BUDGETS, DETERMINISTIC, RECORDED
from simulated_gpu import ROOT, gpu_environment, missing

pytestmark = [pytest.mark.skipif(bool(missing()), reason=str(missing())), pytest.mark.long]

REWRITE = "python tests/support/gpu_scan.py --write"


@pytest.fixture(scope="module")
def found() -> dict[str, dict]:
    return scanned()


def scanned(*options: str) -> dict[str, dict]:
    """What each case showed, by its label; of all of them in one process."""
    command = [sys.executable, str(ROOT / "tests" / "support" / "gpu_scan.py"), *options]
    done = subprocess.run(command, env=gpu_environment(), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return {one["case"]: one for one in map(json.loads, done.stdout.splitlines())}


def test_every_case_trains_goes_on_from_its_checkpoint_and_is_evaluated(found: dict[str, dict]) -> None:
    assert len(found) > 400
    assert {name: one["problem"] for name, one in found.items() if one["problem"]} == {}


def test_no_operation_of_any_case_lacks_a_deterministic_algorithm() -> None:
    """With `train.deterministic` one would be an error where it is called."""
    found = scanned(DETERMINISTIC)
    assert len(found) > 400
    assert {name: one["problem"] for name, one in found.items() if one["problem"]} == {}


def test_every_step_that_may_be_recorded_can_be() -> None:
    """With `train.graph: true` a step that cannot is an error."""
    found = scanned(RECORDED)
    assert len(found) > 300
    assert {name: one["problem"] for name, one in found.items() if one["problem"]} == {}


def test_no_step_waits_for_the_device(found: dict[str, dict]) -> None:
    """A wait raises too, as a problem, where PyTorch knows of it; the count has the others."""
    assert {name: one["waits"] for name, one in found.items() if one["waits"]} == {}


def test_no_step_has_more_launches_than_its_budget(found: dict[str, dict]) -> None:
    budgets = yaml.safe_load(BUDGETS.read_text(encoding="utf-8"))
    counted = {name: one["launches"] for name, one in found.items() if one["launches"]["training"]}
    above = {
        name: f"{launches} of {budgets.get(name)}"
        for name, launches in counted.items()
        if any(count > budgets.get(name, {}).get(phase, 0) for phase, count in launches.items())
    }
    assert above == {}, f"fewer launches, or where more are meant: {REWRITE}"
    assert budgets.keys() <= counted.keys(), f"cases that are no more: {REWRITE}"
