"""Syne Tune's schedulers, called as its tuner calls them.

Release 0.14.2 is the last with MOBSTER, Hyper-Tune and DyHPO. They take the table's rows as the finite set that they
choose from. Those of 0.16 do not: their proposal becomes the nearest row, and they are told of that.
"""

import logging
import random
from datetime import datetime
from typing import Any

import numpy as np
from curve_table import Domain, Params, Table
from game import Job, Rows
from syne_tune.backend.trial_status import Trial
from syne_tune.config_space import choice, lograndint, loguniform, randint, uniform
from syne_tune.optimizer.scheduler import SchedulerDecision

logging.getLogger("syne_tune").setLevel(logging.ERROR)
METRIC, EPOCH, EPOCHS = "accuracy", "epoch", "epochs"


def _domain(domain: Domain) -> Any:
    if domain.choices:
        return choice([*domain.choices])
    if domain.whole:
        return (lograndint if domain.log else randint)(int(domain.low), int(domain.high))
    return (loguniform if domain.log else uniform)(domain.low, domain.high)


def _filled(table: Table, params: Params) -> dict[str, Any]:
    """A row with a value for every key: the lowest, or the first choice, where it has none."""
    lowest = {key: domain.choices[0] if domain.choices else domain.low for key, domain in table.space.items()}
    return {key: params.get(key, lowest[key]) for key in table.space}


class _BySyneTune:
    """What both have in common: trials that go on, pause or stop."""

    def __init__(self, table: Table, seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)
        self.table = table
        self.space = {key: _domain(domain) for key, domain in table.space.items()} | {EPOCHS: table.epochs}
        self.trials: list[Trial] = []
        self.rows: list[int] = []
        self.scheduler: Any = None

    def report(self, job: Job, epoch: int, value: float) -> bool:
        result = {METRIC: value, EPOCH: epoch}
        decision = self.scheduler.on_trial_result(job.data, result)
        if epoch == self.table.epochs:
            self.scheduler.on_trial_complete(job.data, result)
            return False
        if decision == SchedulerDecision.STOP:
            self.scheduler.on_trial_remove(job.data)
        return bool(decision == SchedulerDecision.CONTINUE)

    def begin(self, row: int, config: dict[str, Any]) -> Job:
        trial = Trial(len(self.trials), config, datetime(2000, 1, 1))
        self.trials.append(trial)
        self.rows.append(row)
        self.scheduler.on_trial_add(trial)
        return Job(row, self.table.epochs, trial)


class Legacy(_BySyneTune):
    """A scheduler of `syne_tune.optimizer.legacy_baselines`, by name."""

    def __init__(
        self, table: Table, seed: int, name: str, least: int, opt_skip_period: int | None = None, **options: Any
    ) -> None:
        from syne_tune.optimizer import legacy_baselines

        super().__init__(table, seed)
        rows = [_filled(table, params) for params in table.params]
        self._row_of = {self._key(params): row for row, params in enumerate(rows)}
        chosen_from: dict[str, Any] = {"restrict_configurations": rows, "allow_duplicates": False, "debug_log": False}
        if opt_skip_period is not None:
            chosen_from["opt_skip_period"] = opt_skip_period
        self.scheduler = getattr(legacy_baselines, name)(
            self.space,
            metric=METRIC,
            mode="max",
            resource_attr=EPOCH,
            max_resource_attr=EPOCHS,
            grace_period=least,
            random_seed=seed,
            points_to_evaluate=[],
            search_options=chosen_from,
            **options,
        )

    def ask(self) -> Job | None:
        suggestion = self.scheduler.suggest(len(self.trials))
        if suggestion is None:
            return None
        if not suggestion.spawn_new_trial_id:
            trial = self.trials[suggestion.checkpoint_trial_id]
            if suggestion.config is not None:
                trial.config = suggestion.config
            return Job(self.rows[trial.trial_id], self.table.epochs, trial)
        return self.begin(self._row_of[self._key(suggestion.config)], suggestion.config)

    def _key(self, params: Params) -> tuple[Any, ...]:
        values = map(params.get, self.table.space)
        return tuple(round(value, 9) if isinstance(value, float) else value for value in values)


class Current(_BySyneTune):
    """A scheduler of `syne_tune.optimizer.baselines`, by name."""

    def __init__(self, table: Table, seed: int, name: str, least: int, **options: Any) -> None:
        from syne_tune.optimizer import baselines

        super().__init__(table, seed)
        self._rows = Rows(table)
        self.scheduler = getattr(baselines, name)(
            self.space,
            metric=METRIC,
            do_minimize=False,
            time_attr=EPOCH,
            max_t=table.epochs,
            grace_period=least,
            random_seed=seed,
            **options,
        )

    def ask(self) -> Job | None:
        if not self._rows.left.any():
            return None
        suggestion = self.scheduler.suggest()
        if suggestion is None:
            return None
        row = self._rows.take(self.table.active(suggestion.config))
        return self.begin(row, {**suggestion.config, **_filled(self.table, self.table.params[row])})
