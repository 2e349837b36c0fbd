"""Figures are drawn while another thread imports what they look into."""

import subprocess
import sys
from pathlib import Path

import pytest

DRAWN = """
import sys, threading
from study.analysis.figures.style import new_figure, with_figure_style

@with_figure_style
def draw():
    return new_figure("a title", 2.0)

assert "IPython" not in sys.modules
thread = threading.Thread(target=__import__, args=("IPython",))
thread.start()
while "IPython" not in sys.modules:
    pass
draw()
thread.join()
print("drawn", sys.modules["IPython"].half)
"""


@pytest.mark.slow
def test_an_import_under_way_in_another_thread_is_waited_for(tmp_path: Path) -> None:
    """Found in a driver whose tracking imported MLflow, and with it IPython, while the report was drawn."""
    (tmp_path / "IPython").mkdir()
    (tmp_path / "IPython" / "__init__.py").write_text(
        "import time\ntime.sleep(0.5)\nhalf, version_info = False, (9, 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", DRAWN], capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)}, check=False
    )
    assert done.stdout == "drawn False\n", done.stderr
