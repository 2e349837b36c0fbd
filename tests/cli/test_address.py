"""Where a command asks: `--address`, else the variable, which `--address local` overrides and a job does not hear."""

import pytest
import typer
from typer.testing import CliRunner

from study.cli.options import ADDRESS_VARIABLE, DashboardOption, OptionalDashboardOption
from study.errors import UserError

URL = "http://127.0.0.1:1"
IN_A_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"

app = typer.Typer()


@app.command()
def where(address: OptionalDashboardOption = None) -> None:
    print(address)


@app.command()
def head(address: DashboardOption) -> None:
    print(address)


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ADDRESS_VARIABLE, raising=False)
    monkeypatch.delenv(IN_A_JOB, raising=False)


def answered(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return result.output.strip()


def test_an_address_that_is_given_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert answered("where") == "None"
    monkeypatch.setenv(ADDRESS_VARIABLE, URL)
    assert answered("where") == answered("head") == URL
    assert answered("where", "--address", "http://other:8265") == "http://other:8265"


def test_local_is_this_machine_whatever_the_variable_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS_VARIABLE, URL)
    assert answered("where", "--address", "local") == "None"
    refused = CliRunner().invoke(app, ["head", "--address", "local"])
    assert isinstance(refused.exception, UserError)
    assert "a cluster is needed" in str(refused.exception)


def test_a_job_of_the_cluster_does_not_ask_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS_VARIABLE, URL)
    monkeypatch.setenv(IN_A_JOB, "{}")
    assert answered("where") == "None"
    assert answered("where", "--address", URL) == URL
