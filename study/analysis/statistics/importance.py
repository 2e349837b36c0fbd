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
"""Complete trials that a parameter's importance needs."""
MOST = 200
"""Trials that are evaluated at most, evenly chosen: fANOVA takes minutes for thousands."""
TREES = 32
"""In fANOVA's forest, half of Optuna's number: with more its time grows, while the shares hardly change."""


def importances(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """The importance of each searched parameter, from the complete trials of the search.

    fANOVA (Hutter et al. 2014): the share of the metric's variance over the whole space that a parameter alone
    explains, by a random forest. PED-ANOVA (Watanabe et al. 2023): how much the best tenth of the trials concentrate
    in some of its values. A parameter that not every trial has is evaluated on those that have it. Both are shares
    among the parameters that these trials have in common; the share of a single one would say nothing.

    Returns:
        Indexed by `parameter`, the most important first: `fanova`, `ped_anova` and `trials`, how many were evaluated.
        Parameters of fewer than 10 trials, with one value, or without another to compare with, are left out.
    """
    from optuna.importance import FanovaImportanceEvaluator

    among_best = best_values(spec, record)
    over_space = _evaluated(spec, record, FanovaImportanceEvaluator(n_trees=TREES, seed=0))
    rows = {key: (over_space[key][0], *shares) for key, shares in among_best.items()}
    index = pd.Index(list(rows), name="parameter", dtype=object)
    frame = pd.DataFrame(list(rows.values()), index=index, columns=["fanova", "ped_anova", "trials"])
    frame = frame.astype({"fanova": float, "ped_anova": float, "trials": "int64"})
    return frame.sort_values(["fanova", "ped_anova"], ascending=False, kind="stable")


def best_values(spec: StudySpec, record: StudyRecord) -> dict[str, tuple[float, int]]:
    """PED-ANOVA's share, which is quick to compute, and the number of trials, by parameter."""
    import optuna

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return _evaluated(spec, record, optuna.importance.PedAnovaImportanceEvaluator())


def _within(candidate: Candidate, spec: StudySpec) -> bool:
    """Whether the search could have given these values; enqueued configurations may lie outside its space."""
    params = candidate.trial.params.items()
    return all(spec.search.space[key].contains(value) for key, value in params if key in spec.search.space)


def _evaluated(
    spec: StudySpec, record: StudyRecord, evaluator: "BaseImportanceEvaluator"
) -> dict[str, tuple[float, int]]:
    """An evaluator's share of each parameter, and the number of trials behind it."""
    space = varied(spec)
    complete = sorted(
        (candidate for candidate in searched(record, spec) if _within(candidate, spec)),
        key=lambda candidate: candidate.trial.number,
    )
    groups: dict[tuple[int, ...], list[str]] = {}
    for key in space:
        members = tuple(place for place, candidate in enumerate(complete) if key in candidate.trial.params)
        groups.setdefault(members, []).append(key)
    shares_by_key: dict[str, tuple[float, int]] = {}
    for members, keys in groups.items():
        trials = thin([complete[place] for place in members], MOST)
        if len(trials) >= LEAST and len({candidate.value for candidate in trials}) > 1:
            shared = [key for key in space if all(key in candidate.trial.params for candidate in trials)]
            shares = _shares(spec, trials, shared, evaluator) if len(shared) > 1 else {}
            shares_by_key |= {key: (shares[key], len(trials)) for key in keys if key in shares}
    return {key: shares_by_key[key] for key in space if key in shares_by_key}


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
        for candidate in trials:
            params = {key: candidate.trial.params[key] for key in keys}
            study.add_trial(optuna.create_trial(value=candidate.value, params=params, distributions=domains))
        return optuna.importance.get_param_importances(study, evaluator=evaluator, params=list(keys))
    finally:
        optuna.logging.set_verbosity(verbosity)
