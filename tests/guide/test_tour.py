"""The notebook of the guide, run as a reader runs it."""

import json
from pathlib import Path

import pytest
from pages import GUIDE

TOUR = GUIDE / "tour.ipynb"


def test_the_notebook_has_no_outputs() -> None:
    """They would be of one machine, and old."""
    cells = json.loads(TOUR.read_text(encoding="utf-8"))["cells"]
    assert len(cells) > 5
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


@pytest.mark.slow
def test_the_notebook_runs_from_start_to_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("STUDY_HOME", str(tmp_path / "home"))
    notebook = nbformat.read(TOUR, as_version=4)
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    texts = [output["data"]["text/plain"] for output in outputs if "data" in output]
    assert any("study tour" in text and "best so far" in text and "to go" in text for text in texts)  # its progress
    printed = [output["text"] for output in outputs if output["output_type"] == "stream"]
    assert any("study tour, of " in text and "best: trial" in text for text in printed)
    assert not any(output["output_type"] == "stream" and output["name"] == "stderr" for output in outputs)
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    assert (tmp_path / "home" / "tour" / "tour.yaml").is_file()
