"""Optuna's samplers and pruners, by ask and tell.

A sampler around Optuna's own turns each proposal into the nearest row before Optuna keeps it: the search is over rows.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from curve_table import Table
from game import Job, Rows
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, Trial, TrialState

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)


def distributions(table: Table) -> dict[str, BaseDistribution]:
    found: dict[str, BaseDistribution] = {}
    for key, domain in table.space.items():
        if domain.choices:
            found[key] = CategoricalDistribution(domain.choices)
        elif domain.whole:
            found[key] = IntDistribution(int(domain.low), int(domain.high), log=domain.log)
        else:
            found[key] = FloatDistribution(domain.low, domain.high, log=domain.log)
    return found


class OnRows(BaseSampler):
    """What another sampler proposes, as the nearest row that was not begun."""

    def __init__(self, inner: BaseSampler, rows: Rows) -> None:
        self._inner, self._rows = inner, rows
        self._space = distributions(rows.table)
        self.row = -1

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._space

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution]
    ) -> dict[str, Any]:
        table = self._rows.table
        relative = self._inner.infer_relative_search_space(study, trial)
        proposed = dict(self._inner.sample_relative(study, trial, relative))
        for key, domain in self._space.items():
            when = table.space[key].when
            if key not in proposed and (when is None or proposed[when[0]] in when[1]):
                proposed[key] = self._inner.sample_independent(study, trial, key, domain)
        self.row = self._rows.take(table.active({key: proposed.get(key) for key in table.space}))
        return dict(table.params[self.row])

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        raise AssertionError(f"{param_name}: a row gives all keys")

    def before_trial(self, study: optuna.Study, trial: FrozenTrial) -> None:
        self._inner.before_trial(study, trial)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        self._inner.after_trial(study, trial, state, values)


class ByOptuna:
    """A sampler and a pruner by ask and tell; a pruned trial is told as pruned."""

    def __init__(self, table: Table, seed: int, sampler: BaseSampler, pruner: BasePruner) -> None:
        self._rows, self._epochs = Rows(table), table.epochs
        self._sampler = OnRows(sampler, self._rows)
        self._study = optuna.create_study(
            study_name=f"{table.name}-{seed}", sampler=self._sampler, pruner=pruner, direction="maximize"
        )

    def ask(self) -> Job | None:
        if not self._rows.left.any():
            return None
        trial = self._study.ask()
        self._keep(trial)
        return Job(self._sampler.row, self._epochs, trial)

    def report(self, job: Job, epoch: int, value: float) -> bool:
        trial: Trial = job.data
        trial.report(value, epoch)
        if epoch == self._epochs:
            self._study.tell(trial, value)
        elif trial.should_prune():
            self._study.tell(trial, state=TrialState.PRUNED)
            return False
        return True

    def _keep(self, trial: Trial) -> None:
        """Let Optuna note the row's values as the trial's."""
        table = self._rows.table
        for key in [*trial.relative_params]:  # the row is drawn when this is first read
            domain = table.space.get(key)
            if domain is None:
                continue
            if domain.choices:
                trial.suggest_categorical(key, domain.choices)
            elif domain.whole:
                trial.suggest_int(key, int(domain.low), int(domain.high), log=domain.log)
            else:
                trial.suggest_float(key, domain.low, domain.high, log=domain.log)


class AshaAnew(BasePruner):
    """This project's ASHA, written anew to check its own simulation: at each rung a trial goes on whose value is not
    below the percentile 100 (1 - 1/reduction) of those that were there before."""

    def __init__(self, epochs: int, grace: int, reduction: int = 3) -> None:
        self._reduction = reduction
        self._seen: dict[int, list[float]] = {}
        while grace < epochs:
            self._seen[grace] = []
            grace *= reduction

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        if trial.last_step not in self._seen:
            return False
        before, value = self._seen[trial.last_step], trial.intermediate_values[trial.last_step]
        cut = np.percentile(before, 100 * (1 - 1 / self._reduction)) if before else -np.inf
        before.append(value)
        return bool(value < cut)
