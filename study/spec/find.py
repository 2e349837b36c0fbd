"""Where study files are: a path, or the name of one that ships with the package."""

import os
from importlib.resources import files
from pathlib import Path

from study.errors import UserError, nearest


def shipped_folder() -> Path:
    """Where the study files of the project are: in a checkout beside the package, in an installed wheel inside it."""
    package = Path(str(files("study")))
    return next(path for path in (package / "search_spaces", package.parent / "search_spaces") if path.is_dir())


def shipped() -> dict[str, Path]:
    """The study files that come with the project, by name."""
    return {path.stem: path for path in sorted(shipped_folder().glob("*.yaml"))}


def find(spec: str) -> Path:
    """The file that a user means by a name or a path.

    Raises:
        UserError: there is none.
    """
    path = Path(spec)
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        if os.path.isfile(spec):  # False also for an impossible path: too long, a null in it
            return path
        raise UserError(f"{spec}: no such file")
    names = shipped()
    if spec in names:
        return names[spec]
    for own in (f"{spec}.yaml", f"{spec}.yml"):
        if os.path.isfile(own):
            raise UserError(f"{spec}: no study file of that name is shipped. Did you mean {own}?")
    raise UserError(
        f"{spec}: no study file of that name. {nearest(spec, names)}Shipped: {', '.join(names)}. "
        "For a file of your own give its path, ending in .yaml"
    )
