"""Addresses of MLflow's pages, and what of its UI they rest on."""

from pathlib import Path

import mlflow
import pytest
from contract import contract
from packaging.version import Version

from study.commands import mlflow_ui
from study.errors import UserError
from study.home.folder import Home
from study.tracking.mlflow_urls import experiments_page_url, run_page_url

MODE = "workflowType=machine_learning"
MLFLOW = Version(mlflow.__version__).release


def test_the_mode_stands_behind_the_fragment_and_no_password_anywhere() -> None:
    server = "https://ada:hidden@mlflow.example.org/base/"
    base = "https://mlflow.example.org/base/#/experiments"
    assert experiments_page_url(server) == f"{base}?{MODE}"
    assert run_page_url(server, "3", "abc") == f"{base}/3/runs/abc?{MODE}"
    assert run_page_url("", "3", "abc", "a b/é.html") == f"#/experiments/3/runs/abc/artifacts/a%20b/%C3%A9.html?{MODE}"


@pytest.mark.skipif(MLFLOW < (3, 15), reason="an older UI opens on its own first page")
def test_the_ui_reads_the_mode_from_the_address() -> None:
    """From the query of its router, which is what stands behind the `#`."""
    build = Path(mlflow.__file__).parent / "server" / "js" / "build" / "static" / "js"
    with contract("mlflow", "workflowType=machine_learning, behind the # of the UI's addresses", "study ui"):
        (main,) = build.glob("main.*.js")
        script = main.read_text(encoding="utf-8")
        assert 'MACHINE_LEARNING="machine_learning"' in script
        assert '.get("workflowType")' in script
        assert "/experiments/:experimentId/runs/:runUuid/*" in script


@pytest.mark.skipif(MLFLOW < (3, 16), reason="an older UI has no such views, and shows all columns")
def test_the_ui_keeps_the_views_of_its_menu_in_tags_of_the_experiment() -> None:
    build = Path(mlflow.__file__).parent / "server" / "js" / "build" / "static" / "js"
    with contract(
        "mlflow", "a saved view: its tag, its address and its form", "study/tracking/saved_views.py: saved_view_tags"
    ):
        scripts = [path.read_text(encoding="utf-8") for path in build.glob("*.js")]
        words = [
            '"viewStateShareKey"',
            '"mlflow.sharedViewState."',
            "JSON.stringify({name:e,createdAt:i,updatedAt:a,state:t})",
            "groupByKeys",
            "groupByData",
            '"selectedColumns","columnOrder","columnWidths"',
        ]
        assert all(any(word in script for script in scripts) for word in words)


def test_a_server_elsewhere_is_named_by_the_same_page(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://ada:hidden@mlflow.example.org")
    with pytest.raises(UserError) as error:
        mlflow_ui.serve_ui(home, 5000)
    assert f"open https://mlflow.example.org/#/experiments?{MODE} in a browser" in str(error.value)
    assert "hidden" not in str(error.value)
