"""Shares of variance that the importance figure shows, and its sentences, on responses whose shares are known."""

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from study.analysis.figures.result_figures import importance_title
from study.analysis.statistics.importance import MIN_IMPORTANCE_TRIALS, Importances, VarianceShare, compute_importances
from study.analysis.statistics.trials_frame import varied_domains
from study.home.record import EpochMetrics, StudyRecord, TrialRecord
from study.ranking import Results
from study.spec import StudySpec, load_study
from study.spec.optuna_distributions import distributions_of_space, value_at_unit_coordinate

from .row import Row

Array = NDArray[np.float64]

SPACE = (
    "search.space={method.alpha: {low: 0.001, high: 1.0, log: true}, method.lambda: {low: 0.0, high: 2.0}, "
    "method.epsilon: {choices: [0.0, 0.1, 0.25, 0.5]}, method.temperature: {low: 0.05, high: 0.5, log: true}}"
)
NOISE = 0.06
KINDS = ("additive", "pure interaction", "peak and cliff", "noise alone")
WHERE = "report: importance"
COMPARED = 3
"""Searches of a kind that Optuna's evaluator is asked of, too."""


@cache
def spec() -> StudySpec:
    settings = ["search.sampler=tpe", SPACE, "search.early_stopping={}", "train.epochs=4", "search.baseline=null"]
    return load_study("fairkl_digits", settings)


def drawn(trials: int, generator: np.random.Generator) -> tuple[Array, list[dict[str, Any]]]:
    """Uniform coordinates (trials, parameters) in the space, and the parameters there."""
    of_space, keys = distributions_of_space(spec().space), list(varied_domains(spec()))
    units = generator.random((trials, len(keys)))
    return units, [
        {key: value_at_unit_coordinate(of_space[key], one) for key, one in zip(keys, row, strict=True)} for row in units
    ]


def response(kind: str, units: Array) -> Array:
    """Without noise, (N,), at coordinates (N, 4) of alpha, lambda, epsilon, temperature."""
    alpha, lambda_, epsilon, temperature = units.T
    if kind == "additive":
        return 0.5 + 0.17 * (2 * alpha - 1) + 0.1 * np.sin(np.pi * lambda_) + 0.05 * (np.floor(4 * epsilon) == 2)
    if kind == "pure interaction":
        return 0.5 + 0.3 * (2 * alpha - 1) * (2 * lambda_ - 1)
    if kind == "peak and cliff":
        return 0.4 + 0.2 * np.exp(-(((alpha - 0.3) / 0.12) ** 2)) - 0.15 * (temperature > 0.75) + 0.05 * lambda_
    return np.full(len(units), 0.5)


@cache
def shares(kind: str) -> tuple[tuple[float, ...], float]:
    """The true share of each parameter alone, and of interactions."""
    generator = np.random.default_rng(0)
    total = response(kind, generator.random((200_000, 4))).var() + NOISE**2
    others, alone = generator.random((2_000, 4)), []
    for place in range(4):
        at = np.linspace(0.0025, 0.9975, 200)
        means = [response(kind, np.insert(np.delete(others, place, 1), place, one, axis=1)).mean() for one in at]
        alone.append(float(np.var(means) / total))
    if kind == "pure interaction":  # what is left of the means of finitely many draws
        alone = [0.0] * 4
    explained = float(1 - NOISE**2 / total)
    return tuple(alone), 0.0 if kind != "pure interaction" else explained


def study(kind: str, trials: int, seed: int) -> StudyRecord:
    """A search without early stopping."""
    generator = np.random.default_rng((seed, trials))
    units, params = drawn(trials, generator)
    values = response(kind, units) + generator.normal(0, NOISE, trials)
    record = StudyRecord()
    for number, (one, value) in enumerate(zip(params, values, strict=True)):
        record.trials[number] = TrialRecord(number, "search", one, 0, state="complete")
        record.trials[number].reports = [EpochMetrics(1, {"val/accuracy": float(value)})]
    return record


def fanova(record: StudyRecord) -> dict[str, float]:
    """Optuna's shares of the variance of a forest, not normalised."""
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    told, domains = optuna.create_study(direction="maximize"), distributions_of_space(spec().space)
    for trial in record.trials.values():
        value = float(trial.reports[-1]["val/accuracy"])
        told.add_trial(optuna.create_trial(value=value, params=trial.params, distributions=domains))
    evaluator = optuna.importance.FanovaImportanceEvaluator(n_trees=32, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        found = optuna.importance.get_param_importances(told, evaluator=evaluator, normalize=False)
    optuna.logging.set_verbosity(verbosity)
    return found


def rows(draws: int) -> Iterator[Row]:
    """Takes an eightieth of `draws` searches of each kind, and three for Optuna's evaluator."""
    searches = max(3, draws // 80)
    for kind in KINDS:
        for trials in (MIN_IMPORTANCE_TRIALS, 100, 300):
            yield from _rows(kind, trials, searches)
    silent = [
        bool(compute_importances(Results(spec(), study("additive", MIN_IMPORTANCE_TRIALS - 1, seed))).shares)
        for seed in range(5)
    ]
    yield Row(
        "any importance",
        WHERE,
        f"additive, {MIN_IMPORTANCE_TRIALS - 1} trials",
        "never",
        0.0,
        0.0,
        float(np.mean(silent)),
        5,
    )


def _rows(kind: str, trials: int, searches: int) -> Iterator[Row]:
    (alone, interactions), keys = shares(kind), list(spec().search.space)
    truth, inside, both, wrong, errors, optuna_errors = f"{kind}, {trials} trials", [], [], [], [], []
    for seed in range(searches):
        record = study(kind, trials, seed)
        found = compute_importances(Results(spec(), record))
        inside += [_holds(found.share_by_key[key], one) for key, one in zip(keys, alone, strict=True)]
        assert found.interactions_share is not None
        both.append(_holds(found.interactions_share, interactions))
        wrong.append(_untrue(found, dict(zip(keys, alone, strict=True))))
        errors.append([abs(found.share_by_key[key].value - one) for key, one in zip(keys, alone, strict=True)])
        if seed < COMPARED and trials <= 100:
            theirs = fanova(record)
            optuna_errors.append([abs(theirs[key] - one) for key, one in zip(keys, alone, strict=True)])
    jagged = kind == "peak and cliff"
    low = 0.8 if jagged else 0.93
    promised = "at least 93%" if not jagged else "95% wanted; known to be at least 80% here"
    yield Row(
        "95% interval of a parameter's share", WHERE, truth, promised, low, 1.0, float(np.mean(inside)), len(inside)
    )
    promised = "95% wanted; known to be at least 80% here"
    yield Row(
        "95% interval of the interactions' share", WHERE, truth, promised, 0.8, 1.0, float(np.mean(both)), searches
    )
    sentence = "`X alone explains ...` of an X that explains less than the sentence's interval"
    most = 0.2 if jagged else 0.05
    promised = "at most 5%" if not jagged else "wanted at most 5%; known to be at most 20% here"
    yield Row(sentence, WHERE, truth, promised, 0.0, most, float(np.mean(wrong)), searches)
    if not optuna_errors:
        return
    ratio = float(np.mean(errors[:COMPARED]) / np.mean(optuna_errors))
    error = "mean error of a share, in parts of that of Optuna's fANOVA"
    yield Row(error, WHERE, truth, "at most 1.5", 0.0, 1.5, ratio, 0)


def _holds(share: VarianceShare, truth: float) -> bool:
    """Whether an interval holds the truth, half a percent allowed, as it is printed."""
    return share.low - 0.005 <= truth <= share.high + 0.005


def _untrue(found: Importances, truth: dict[str, float]) -> bool:
    """Whether the title says that a parameter explains what it does not."""
    first = next(iter(found.share_by_key))
    return importance_title(spec(), found).startswith(first) and truth[first] < found.share_by_key[first].low
