"""How much each searched parameter matters to the study's metric, by Optuna's evaluators."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from study.analysis.statistics.frame import thin, varied
from study.home.record import StudyRecord
from study.ranking import Candidate, searched
from study.spec import StudySpec

if TYPE_CHECKING:
    from optuna.importance import BaseImportanceEvaluator

LEAST = 10
"""Complete trials below which nothing is said."""
MOST = 200
"""Trials that are looked at; of more, so many evenly chosen ones: fANOVA takes minutes for thousands."""
TREES = 32
"""Of fANOVA's forest, half of Optuna's number: its time grows with it, its shares hardly change."""


def importances(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """The importance of each searched parameter, from the complete trials of the search.

    fANOVA (Hutter et al. 2014): the share of the metric's variance over the whole space that a parameter alone
    explains, by a random forest. PED-ANOVA (Watanabe et al. 2023): how much the best tenth of the trials concentrate
    in some values of it. A parameter that not every trial has is judged among those that have it. Both are shares
    within the parameters that these trials have in common; where there is but one, its share would say nothing.

    Returns:
        Indexed by `parameter`, the most important first: `fanova`, `ped_anova` and `trials`, how many they rest on.
        Parameters of fewer than 10 trials, with one value, or with no other to compare with, are left out.
    """
    from optuna.importance import FanovaImportanceEvaluator

    best = best_values(spec, record)
    whole = _evaluated(spec, record, FanovaImportanceEvaluator(n_trees=TREES, seed=0))
    rows = {key: (whole[key][0], *found) for key, found in best.items()}
    index = pd.Index(list(rows), name="parameter", dtype=object)
    frame = pd.DataFrame(list(rows.values()), index=index, columns=["fanova", "ped_anova", "trials"])
    frame = frame.astype({"fanova": float, "ped_anova": float, "trials": "int64"})
    return frame.sort_values(["fanova", "ped_anova"], ascending=False, kind="stable")


def best_values(spec: StudySpec, record: StudyRecord) -> dict[str, tuple[float, int]]:
    """PED-ANOVA alone, which is quick, and the number of trials, by parameter."""
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return _evaluated(spec, record, optuna.importance.PedAnovaImportanceEvaluator())


def _within(one: Candidate, spec: StudySpec) -> bool:
    """Whether the search could have given these values; configurations from elsewhere would not fit a distribution."""
    given = one.trial.params.items()
    return all(spec.search.space[key].contains(value) for key, value in given if key in spec.search.space)


def _evaluated(
    spec: StudySpec, record: StudyRecord, evaluator: "BaseImportanceEvaluator"
) -> dict[str, tuple[float, int]]:
    """What an evaluator says of each parameter, and from how many trials."""
    space = varied(spec)
    complete = sorted((one for one in searched(record, spec) if _within(one, spec)), key=lambda one: one.trial.number)
    groups: dict[tuple[int, ...], list[str]] = {}
    for key in space:
        having = tuple(place for place, one in enumerate(complete) if key in one.trial.params)
        groups.setdefault(having, []).append(key)
    found: dict[str, tuple[float, int]] = {}
    for having, keys in groups.items():
        trials = thin([complete[place] for place in having], MOST)
        if len(trials) >= LEAST and len({one.value for one in trials}) > 1:
            shared = [key for key in space if all(key in one.trial.params for one in trials)]
            shares = _shares(spec, trials, shared, evaluator) if len(shared) > 1 else {}
            found |= {key: (shares[key], len(trials)) for key in keys if key in shares}
    return {key: found[key] for key in space if key in found}


def _shares(
    spec: StudySpec, trials: Sequence[Candidate], keys: Sequence[str], evaluator: "BaseImportanceEvaluator"
) -> dict[str, float]:
    import optuna

    from study.spec.distributions import distributions

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        study = optuna.create_study(direction="maximize" if spec.mode == "max" else "minimize")
        of_space = distributions(spec.space)
        domains = {key: of_space[key] for key in keys}
        for one in trials:
            params = {key: one.trial.params[key] for key in keys}
            study.add_trial(optuna.create_trial(value=one.value, params=params, distributions=domains))
        return optuna.importance.get_param_importances(study, evaluator=evaluator, params=list(keys))
    finally:
        optuna.logging.set_verbosity(verbosity)
