"""The data of trials."""

import pytest

from study import data
from study.data import Dataset


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return data.load({"name": "biased_digits"})
