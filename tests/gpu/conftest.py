"""Tests of the simulated device are slow or long: it is compiled once, and each process loads PyTorch's CUDA."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and not item.get_closest_marker("long"):
            item.add_marker(pytest.mark.slow)
