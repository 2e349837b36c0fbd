"""The benchmark for a card of minutes, rehearsed on the simulated device: it goes on where it was cut, and says so."""

import json
from pathlib import Path

import pytest
from simulated_gpu import ROOT, gpu_environment, missing, run_on_gpu

pytestmark = [pytest.mark.skipif(bool(missing()), reason=str(missing())), pytest.mark.slow]

SCRIPT = f"""
import sys
sys.path.append({str(ROOT / "tests" / "benchmarks")!r})
import on_gpu
from pathlib import Path
from real_values import real_values
on_gpu.SIMULATED = {{"fairkl-table12": (0.0, 0.0)}}  # the large ones are minutes of a CPU's time
wanted = ("table12_0.999", "margin_CIFAR-10_CE_0", "margin_CIFAR-10_SupCon_0", "memory", "bits")
on_gpu.jobs = lambda every=on_gpu.jobs(): [job for job in every if job.name.startswith(wanted) and job.seed == 0]
"""


def run(out: Path, minutes: float) -> list[str]:
    """The names of what a call measured, from what it printed."""
    environment = gpu_environment(mib=100_000)
    call = f"with real_values():\n    on_gpu.go_on(Path({str(out)!r}), {minutes}, True)"
    printed = run_on_gpu(f"{SCRIPT}\n{call}", environment)
    return printed.splitlines()


def test_it_goes_on_where_it_was_cut_and_writes_its_page(tmp_path: Path) -> None:
    first = run(tmp_path, 0.0001)  # over after the first epoch of the first trial
    assert first == ["table12_0.999_lambda-0.5-alpha-0.1_0"]
    assert not (tmp_path / "results.jsonl").exists()
    names = run(tmp_path, 8)
    assert names[0] == first[0]
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["name"] for line in lines] == names
    assert [line for line in lines if "left out" in line] == []
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| 0.999 | lambda = 0.5, alpha = 0.1 | 31.63 ± 2.30 |" in page
    assert "| CIFAR-10 | SupCon | 95.64 ± 0.02 |" in page
    assert all(title in page for title in ("## Memory", "## Bits of two runs", "A rehearsal"))
    assert "are alike" in page
    assert list(tmp_path.glob("*.pt")) == []
    assert run(tmp_path, 8) == []
