"""How much each searched parameter matters to the study's metric, by Optuna's evaluators."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from study.analysis import words
from study.analysis.parameters import varied
from study.analysis.style import BLUE, ORANGE, label, legend, new, styled, thin
from study.ranking import Candidate, searched
from study.record import StudyRecord
from study.spec import StudySpec
from study.spec.schema import Domain

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
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


@styled
def importance(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """`importances` as bars, with the number of trials that each rests on."""
    frame = importances(spec, record)
    if not len(frame):
        return None
    figure, (axes, *_) = new(_title(spec, frame), 1.5 + 0.55 * len(frame))
    places = range(len(frame) - 1, -1, -1)
    for shift, name, colour, said in (
        (0.19, "fanova", BLUE, "over the whole space (fANOVA)"),
        (-0.19, "ped_anova", ORANGE, "among the best tenth (PED-ANOVA)"),
    ):
        axes.barh([place + shift for place in places], frame[name], height=0.34, color=colour, label=said)
    for place, (_, row) in zip(places, frame.iterrows(), strict=True):
        for shift, name in ((0.19, "fanova"), (-0.19, "ped_anova")):
            axes.annotate(
                f"{100 * row[name]:.0f}%",
                (row[name], place + shift),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
            )
    counts = [words.count(int(count), "trial") for count in frame["trials"]]
    axes.set_yticks(list(places), [f"{label(key)}\n{n}" for key, n in zip(frame.index, counts, strict=True)])
    axes.set_xlabel("importance, share")
    axes.set_xlim(0, 1.08)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(6))
    legend(figure, axes)
    return figure


def _title(spec: StudySpec, frame: pd.DataFrame) -> str:
    if frame["trials"].nunique() > 1:  # each is a share of something else
        return f"Importance for {spec.metric}, among the parameters that the same trials have"
    share = 100 * frame["fanova"].iloc[0]
    return f"{frame.index[0]} alone explains {share:.0f}% of what the parameters do to {spec.metric}"


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
            shared = {key: domain for key, domain in space.items() if all(key in one.trial.params for one in trials)}
            shares = _shares(spec, trials, shared, evaluator) if len(shared) > 1 else {}
            found |= {key: (shares[key], len(trials)) for key in keys if key in shares}
    return {key: found[key] for key in space if key in found}


def _shares(
    spec: StudySpec, trials: Sequence[Candidate], space: dict[str, Domain], evaluator: "BaseImportanceEvaluator"
) -> dict[str, float]:
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        study = optuna.create_study(direction="maximize" if spec.mode == "max" else "minimize")
        domains = {key: _distribution(domain) for key, domain in space.items()}
        for one in trials:
            params = {key: one.trial.params[key] for key in space}
            study.add_trial(optuna.create_trial(value=one.value, params=params, distributions=domains))
        return optuna.importance.get_param_importances(study, evaluator=evaluator, params=list(space))
    finally:
        optuna.logging.set_verbosity(verbosity)


def _distribution(domain: Domain) -> "BaseDistribution":
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if domain.choices is not None:
        return CategoricalDistribution(domain.choices)
    if isinstance(domain.low, int) and isinstance(domain.high, int):
        return IntDistribution(domain.low, domain.high, log=domain.log)
    assert domain.low is not None
    assert domain.high is not None
    return FloatDistribution(domain.low, domain.high, log=domain.log)
