"""Variables of this shell that a job is given."""

import os
from collections.abc import Sequence

from study.errors import UserError


def from_this_shell(names: Sequence[str]) -> dict[str, str]:
    """The named variables and their values.

    Raises:
        UserError: one is not set here, or is not a name.
    """
    values = {}
    for name in names:
        if not name.isidentifier():
            raise UserError(f"--env {name}: the name of a variable is needed; its value is taken from this shell")
        if name not in os.environ:
            raise UserError(f"--env {name}: is not set in this shell")
        if name.startswith("RAY_AUTH"):
            raise UserError(f"--env {name}: the cluster's token is not given to jobs, they have it")
        values[name] = os.environ[name]
    return values
