"""Peak memory of a trial of every shipped study file, counted by PyTorch's allocator on the simulated device."""

import subprocess
import sys

import pytest
import yaml
from gpu_memory import ROOMY, TABLE
from simulated_gpu import ROOT, gpu_environment, missing

from study.spec import load_study

pytestmark = [pytest.mark.skipif(bool(missing()), reason=str(missing())), pytest.mark.slow]

REWRITE = "python tests/support/gpu_memory.py --write"
TOLERANCE = 0.02
"""GiB, and share of it."""

CARD = 80 * 0.95
"""GiB of the largest card that the files are for, less what CUDA and its libraries take."""

TOO_LARGE: set[str] = set()
"""Files whose trial does not fit their share of it."""


@pytest.fixture(scope="module")
def recorded() -> dict[str, dict[str, float]]:
    return yaml.safe_load(TABLE.read_text(encoding="utf-8"))


def test_no_trial_takes_more_than_its_line_says(recorded: dict[str, dict[str, float]]) -> None:
    command = [sys.executable, str(ROOT / "tests" / "support" / "gpu_memory.py")]
    done = subprocess.run(command, env=gpu_environment(mib=ROOMY), capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = yaml.safe_load(done.stdout)
    assert found.keys() == recorded.keys()
    above = {
        name: f"{phase} {peak} GiB, not {recorded[name][phase]}"
        for name, peaks in found.items()
        for phase, peak in peaks.items()
        if peak > recorded[name][phase] * (1 + TOLERANCE) + TOLERANCE
    }
    assert above == {}, f"less memory, or where more is meant: {REWRITE}"


def test_shipped_files_fit_their_share_of_a_card(recorded: dict[str, dict[str, float]]) -> None:
    shares = {name: load_study(name).resources.gpu or 1 for name in recorded}
    large = {name for name, peaks in recorded.items() if max(peaks.values()) > CARD * min(shares[name], 1)}
    assert large == TOO_LARGE
