"""Peak memory of a trial of every shipped study file, counted by PyTorch's allocator on the simulated device."""

import subprocess
import sys

import pytest
import yaml
from simulated_gpu import ROOT, gpu_environment, missing

from study.spec import load_study

pytestmark = [pytest.mark.skipif(bool(missing()), reason=str(missing())), pytest.mark.slow]

CARD = 80 * 0.95
"""GiB of the largest card that the files are for, less what CUDA and its libraries take."""


def test_shipped_files_fit_their_share_of_a_card() -> None:
    command = [sys.executable, str(ROOT / "tests" / "support" / "gpu_memory.py")]
    roomy = gpu_environment(mib=10**6)  # nothing is refused there
    done = subprocess.run(command, env=roomy, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    peaks = yaml.safe_load(done.stdout)
    assert len(peaks) > 20
    shares = {name: min(load_study(name).resources.gpu or 1, 1) for name in peaks}
    assert {name: peak for name, peak in peaks.items() if peak > CARD * shares[name]} == {}
