"""Which MLflow servers are spoken to."""

import pytest

from study.errors import UserError
from study.tracking.connection import OTHER_WAYS, check_server


@pytest.fixture(autouse=True)
def _no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", *OTHER_WAYS):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "uri", ["sqlite:///runs.db", "http://127.0.0.1:5000", "http://localhost", "http://[::1]:5000", "databricks"]
)
def test_what_nobody_else_reaches_needs_no_password(uri: str) -> None:
    check_server(uri)


@pytest.mark.parametrize(
    ("password", "told"),
    [
        (None, "no password is given"),
        ("", "no password is given"),
        ("password1234", "MLflow's default is given"),
        ("elevenchars", "one of 11 characters is given"),
    ],
)
def test_a_server_elsewhere_needs_a_good_password(
    monkeypatch: pytest.MonkeyPatch, password: str | None, told: str
) -> None:
    if password is not None:
        monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ada")
        monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", password)
    with pytest.raises(UserError, match=told) as refused:
        check_server("http://ada@mlflow.example.org:5000")
    assert "MLFLOW_TRACKING_URI: http://mlflow.example.org:5000: " in str(refused.value)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ada")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "twelve chars")
    check_server("http://mlflow.example.org:5000")


@pytest.mark.parametrize("name", OTHER_WAYS)
def test_there_are_other_ways_to_show_who_one_is(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "x")
    check_server("https://mlflow.example.org")
