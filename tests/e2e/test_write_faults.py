"""A study whose writes the system refuses, for real: two of the faults of `tests/benchmarks/write_faults.py`."""

import subprocess
import sys
from pathlib import Path

import pytest
from failing_writes import missing
from helpers import ROOT

KINDS = ("write home/disk/models/.trial-*.safetensors.*.part", "rename home/disk/report/report.html")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_refused_write_is_one_message_and_resume_ends_as_undisturbed() -> None:
    """The weights of a trial, in its own process, and the report, the latter on a disk that fails from then on."""
    kinds = [word for kind in KINDS for word in ("--kind", kind)]
    script = ROOT / "tests" / "benchmarks" / "write_faults.py"
    command = [sys.executable, "-u", str(script), "--faults", "2", "--seed", "0", *kinds]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    assert "2 faults of 2 kinds: 0 wrong, 2 survived" in done.stdout


UNWRITTEN = """
import errno, sys
from pathlib import Path
from disturbed import NAME, study
from study.home.events import SessionClosed
from study.home.folder import Home
from study.home.ledger import Ledger
from study.home.record import StudyRecord

home, append = Home(Path(sys.argv[1])), Ledger.append

def refused(self, event):
    if isinstance(event, SessionClosed):
        raise OSError(errno.ENOSPC, "No space left on device", str(self.path))
    return append(self, event)

Ledger.append = refused
print(study(home))
print(StudyRecord.load(home.find_study(NAME).ledger_file).state)
Ledger.append = append
print(study(home))
"""


@pytest.mark.long
def test_a_study_whose_end_cannot_be_written_says_so(tmp_path: Path) -> None:
    """The last event of its ledger alone; it used to be told as complete, and was not."""
    command = [sys.executable, "-c", UNWRITTEN, str(tmp_path / "home")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "tests" / "support")
    assert done.returncode == 0, done.stderr
    told, state, again = done.stdout.splitlines()
    assert "ledger.jsonl: No space left on device. Make room there. Nothing is lost" in told
    assert state != "complete"
    assert again == "complete"
