"""Hyperparameter studies for debiased and fair contrastive learning.

The Python interface, for notebooks and scripts. Nothing is imported before it is asked for.

- `study.run(SPEC, set={...})` runs a study and returns it.
- `study.load(NAME)`, `study.studies()`: studies of this home.
- `study.loss(NAME)`: a paper's loss, for a training loop of your own.
- `study.UserError`: raised where something given cannot be used.

The page python.md of the guide shows what can be done with a study: `study guide python`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from study.api.losses import loss
    from study.api.run_study import run
    from study.api.study_object import Study, load, studies
    from study.errors import UserError

__version__ = "0.1.0"

__all__ = ["Study", "UserError", "load", "loss", "run", "studies"]

_MODULES_BY_NAME = {
    "Study": "study.api.study_object",
    "UserError": "study.errors",
    "load": "study.api.study_object",
    "loss": "study.api.losses",
    "run": "study.api.run_study",
    "studies": "study.api.study_object",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Return what the package offers, imported when it is first used."""
    if name not in _MODULES_BY_NAME:
        raise AttributeError(f"study has no {name}. There are: {', '.join(__all__)}")
    from importlib import import_module

    return getattr(import_module(_MODULES_BY_NAME[name]), name)
