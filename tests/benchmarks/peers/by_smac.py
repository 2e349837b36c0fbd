"""SMAC3's multi-fidelity facade (a random forest with Hyperband) by ask and tell."""

import logging
import tempfile
from pathlib import Path
from typing import Any

from ConfigSpace import Categorical, Configuration, ConfigurationSpace, EqualsCondition, Float, InCondition, Integer
from curve_table import Domain, Table
from game import Job, Rows
from smac import MultiFidelityFacade, Scenario
from smac.runhistory.dataclasses import TrialValue

logging.getLogger("smac").setLevel(logging.ERROR)

EVALUATIONS = 72
"""About so many fit into the budget of 24 full trials. By the facade's defaults a quarter of them begin at random."""


def _parameter(key: str, domain: Domain) -> Any:
    if domain.choices:
        return Categorical(key, [*domain.choices])
    if domain.whole:
        return Integer(key, (int(domain.low), int(domain.high)), log=domain.log)
    return Float(key, (domain.low, domain.high), log=domain.log)


def space(table: Table, seed: int) -> ConfigurationSpace:
    """The table's, with its conditions."""
    made = ConfigurationSpace(seed=seed)
    made.add([_parameter(key, domain) for key, domain in table.space.items()])
    for key, domain in table.space.items():
        if domain.when:
            parent, values = domain.when
            single = len(values) == 1
            made.add(
                EqualsCondition(made[key], made[parent], values[0])
                if single
                else InCondition(made[key], made[parent], [*values])
            )
    return made


class BySMAC:
    """The facade with its defaults. It keeps its own proposals; what it is told is the nearest row's value.

    Budgets that are no whole number of epochs are rounded.

    Args:
        least: the smallest budget in epochs.
    """

    def __init__(self, table: Table, seed: int, least: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        scenario = Scenario(
            space(table, seed),
            output_directory=Path(self._folder.name),
            deterministic=True,
            min_budget=least,
            max_budget=table.epochs,
            n_trials=10_000,
            seed=seed,
        )
        design = MultiFidelityFacade.get_initial_design(
            scenario, n_configs=min(10 * len(table.space), EVALUATIONS // 4)
        )
        self._smac = MultiFidelityFacade(
            scenario, _never_called, initial_design=design, overwrite=True, logging_level=logging.ERROR
        )
        self._rows = Rows(table)
        self._row_of: dict[Configuration, int] = {}

    def ask(self) -> Job | None:
        if not self._rows.left.any():
            return None
        info = self._smac.ask()
        if info.config not in self._row_of:
            self._row_of[info.config] = self._rows.take(dict(info.config))
        assert info.budget is not None
        return Job(self._row_of[info.config], max(1, round(info.budget)), info)

    def report(self, job: Job, epoch: int, value: float) -> bool:
        if epoch == job.until:
            self._smac.tell(job.data, TrialValue(cost=1.0 - value), save=False)
        return True


def _never_called(config: Configuration, seed: int = 0, budget: float = 0.0) -> float:
    raise AssertionError("trials are played, not run")
