"""Hyperparameter studies for debiased and fair contrastive learning.

The Python interface, for notebooks and scripts. Nothing is imported before it is asked for.

- `study.run(SPEC, set={...})` runs a study and gives it back.
- `study.load(NAME)`, `study.studies()`: studies of this home.
- `study.loss(NAME)`: a paper's loss, for a training loop of one's own.
- `study.UserError`: what is raised where something given cannot be used.

The page python.md of the guide shows what can be done with a study: `study guide python`.
"""

from typing import TYPE_CHECKING

from study.catalogue import later

if TYPE_CHECKING:
    from study.api.losses import loss
    from study.api.running import run
    from study.api.studies import Study, load, studies
    from study.errors import UserError

__version__ = "0.1.0"

__all__ = ["Study", "UserError", "load", "loss", "run", "studies"]

__getattr__ = later(
    {"run": "study.api.running", "loss": "study.api.losses", "UserError": "study.errors"}
    | dict.fromkeys(("Study", "load", "studies"), "study.api.studies")
)
