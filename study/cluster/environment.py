"""Variables of this machine that a job is given along."""

import os
from collections.abc import Sequence

from study.errors import UserError


def given(names: Sequence[str]) -> dict[str, str]:
    """The named variables and their values.

    Raises:
        UserError: one is not set here, or is no name.
    """
    found = {}
    for name in names:
        if not name.isidentifier():
            raise UserError(f"--env {name}: the name of a variable is needed; its value is taken from this shell")
        if name not in os.environ:
            raise UserError(f"--env {name}: is not set in this shell")
        if name.startswith("RAY_AUTH"):
            raise UserError(f"--env {name}: the cluster's token is not given to jobs, they have it")
        found[name] = os.environ[name]
    return found
