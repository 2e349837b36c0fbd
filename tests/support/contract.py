"""What a library must keep though it does not promise to, and who depends on it."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

import pytest


@contextmanager
def contract(library: str, kept: str, needed_by: str) -> Iterator[None]:
    """Fail where the block finds anything broken: with the installed version, what is not kept and who needs it."""
    try:
        yield
    except Exception as broken:
        pytest.fail(
            f"{library} {version(library)} does not keep: {kept}. Needed by: {needed_by}. "
            f"Found: {type(broken).__name__}: {broken}"
        )
