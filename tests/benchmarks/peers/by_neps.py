"""NePS by its ask and tell: PriorBand, Hyperband and ASHA. A configuration is told with its row's values."""

import logging
from collections.abc import Callable
from typing import Any

import neps
import numpy as np
import torch
from curve_table import PAPERS, Domain, Table
from game import Job, Rows
from neps.optimizers import algorithms

logging.getLogger("neps").setLevel(logging.ERROR)
EPOCHS = "epochs"


def _parameter(key: str, domain: Domain, prior: bool) -> Any:
    given = PAPERS.get(key) if prior else None
    if domain.choices:
        return neps.HPOCategorical([*domain.choices], prior=given if given in domain.choices else None)
    if given is not None and not domain.low <= given <= domain.high:
        given = None
    if domain.whole:
        return neps.HPOInteger(int(domain.low), int(domain.high), log=domain.log, prior=given)
    return neps.HPOFloat(domain.low, domain.high, log=domain.log, prior=given)


class ByNePS:
    """One of NePS's algorithms.

    NePS draws from the global generators of NumPy and PyTorch, which are seeded here. Conditions are not known to it:
    a key that a row does not have keeps the value that NePS gave.

    Args:
        algorithm: of `neps.optimizers.algorithms`.
        least: epochs of the lowest rung.
        prior: whether the space has the papers' configuration as its prior.
    """

    def __init__(
        self, table: Table, seed: int, algorithm: Callable[..., Any], least: int, prior: bool, **options: Any
    ) -> None:
        np.random.seed(seed)
        torch.manual_seed(seed)
        space = {key: _parameter(key, domain, prior) for key, domain in table.space.items()}
        space[EPOCHS] = neps.HPOInteger(least, table.epochs, is_fidelity=True)
        self._search = neps.AskAndTell(algorithm(neps.SearchSpace(space), **options))
        self._rows = Rows(table)
        self._row_of: dict[str, int] = {}

    def ask(self) -> Job | None:
        if not self._rows.left.any():
            return None
        table, trial = self._rows.table, self._search.ask()
        name = trial.metadata.id.split("_")[0]
        if name not in self._row_of:
            self._row_of[name] = row = self._rows.take(table.active(trial.config))
            trial.config.update({key: value for key, value in table.params[row].items() if key in table.space})
        return Job(self._row_of[name], int(trial.config[EPOCHS]), trial)

    def report(self, job: Job, epoch: int, value: float) -> bool:
        if epoch == job.until:
            self._search.tell(job.data, 1.0 - value)
        return True


ALGORITHMS = {name: getattr(algorithms, name) for name in ("priorband", "hyperband", "asha")}
