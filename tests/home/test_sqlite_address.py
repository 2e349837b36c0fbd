"""Paths as addresses of databases, and back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import make_url

from study.home.folder import sqlite_path, sqlite_uri

ODD = "a?b #c%20d%3F&e=f@g:h+'ü\"\\;[i]"
"""A folder's name with what means something in an address."""


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0/\n"), min_size=1).filter(lambda name: name != "."))
def test_sqlalchemy_opens_the_file_whatever_its_path_holds(name: str) -> None:
    path = Path("/", name, "mlflow.db")
    assert make_url(sqlite_uri(path)).database == str(path)
    assert not make_url(sqlite_uri(path)).query
    assert sqlite_path(sqlite_uri(path)) == path


def test_a_plain_path_stands_in_the_address_as_it_is() -> None:
    assert sqlite_uri(Path("/home/ada/studies 2/mlflow.db")) == "sqlite:////home/ada/studies 2/mlflow.db"


@pytest.mark.parametrize(
    "address",
    ["sqlite:///runs.db", "sqlite://", "sqlite:///:memory:", "sqlite:////runs.db?timeout=5", "http://localhost", ""],
)
def test_what_names_no_absolute_path_has_none(address: str) -> None:
    assert sqlite_path(address) is None
