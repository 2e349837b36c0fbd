"""A study whose writes the system refuses, for real: two of the faults of `tests/benchmarks/write_faults.py`."""

import subprocess
import sys

import pytest
from failing_writes import missing
from helpers import ROOT

KINDS = (
    "write home/disk/checkpoints/.trial-*-end.pt.*.part",
    "rename home/disk/report/report.html",
)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_refused_write_is_one_message_and_resume_ends_as_undisturbed() -> None:
    """The state of a trial, in its own process, and the report, the latter on a disk that fails from then on."""
    kinds = [word for kind in KINDS for word in ("--kind", kind)]
    script = ROOT / "tests" / "benchmarks" / "write_faults.py"
    done = subprocess.run(
        [sys.executable, str(script), "--faults", "2", "--seed", "0", *kinds], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert "2 faults of 2 kinds: 0 wrong, 2 survived" in done.stdout
