"""How much each searched parameter matters to the study's metric, by Optuna's evaluators."""

import warnings
from collections.abc import Sequence

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

LEAST = 10
"""Complete trials below which nothing is said."""
MOST = 500
"""Trials that are looked at; of more, so many evenly chosen ones: fANOVA takes minutes for thousands."""


def importances(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """The importance of each searched parameter, from the complete trials of the search.

    fANOVA (Hutter et al. 2014): the share of the metric's variance over the whole space that a parameter alone
    explains, by a random forest. PED-ANOVA (Watanabe et al. 2023): how much the best tenth of the trials concentrate
    in some values of it. A parameter that not every trial has is judged among those that have it. Both are shares
    within the parameters that these trials have in common.

    Returns:
        Indexed by `parameter`, the most important first: `fanova`, `ped_anova` and `trials`, how many they rest on.
        Parameters of fewer than 10 trials, or with one value, are left out.
    """
    space = varied(spec)
    found = [one for one in searched(record, spec) if _within(one, spec)]
    groups: dict[tuple[int, ...], list[str]] = {}
    for key in space:
        having = tuple(place for place, one in enumerate(found) if key in one.trial.params)
        groups.setdefault(having, []).append(key)
    rows: dict[str, tuple[float, float, int]] = {}
    for having, keys in groups.items():
        trials = thin(sorted((found[place] for place in having), key=lambda one: one.trial.number), MOST)
        if len(trials) >= LEAST and len({one.value for one in trials}) > 1:
            shared = [key for key in space if all(key in one.trial.params for one in trials)]
            rows |= {key: (*both, len(trials)) for key, both in _evaluated(spec, trials, shared).items() if key in keys}
    index = pd.Index(list(rows), name="parameter", dtype=object)
    frame = pd.DataFrame(list(rows.values()), index=index, columns=["fanova", "ped_anova", "trials"])
    frame = frame.astype({"fanova": float, "ped_anova": float, "trials": "int64"})
    return frame.sort_values(["fanova", "ped_anova"], ascending=False, kind="stable")


@styled
def importance(spec: StudySpec, record: StudyRecord) -> Figure | None:
    """`importances` as bars, with the number of trials that each rests on."""
    if len(varied(spec)) < 2 or not len(frame := importances(spec, record)):
        return None
    first = frame.index[0]
    title = f"{first} explains {100 * frame['fanova'].iloc[0]:.0f}% of what the parameters do to {spec.metric}"
    figure, (axes, *_) = new(title, 1.5 + 0.55 * len(frame))
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


def _within(one: Candidate, spec: StudySpec) -> bool:
    """Whether the search could have given these values; configurations from elsewhere would not fit a distribution."""
    given = one.trial.params.items()
    return all(spec.search.space[key].contains(value) for key, value in given if key in spec.search.space)


def _evaluated(spec: StudySpec, trials: Sequence[Candidate], keys: Sequence[str]) -> dict[str, tuple[float, float]]:
    """fANOVA and PED-ANOVA of each of these parameters."""
    import optuna
    from optuna.importance import FanovaImportanceEvaluator, PedAnovaImportanceEvaluator, get_param_importances

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        study = optuna.create_study(direction="maximize" if spec.mode == "max" else "minimize")
        domains = {key: _distribution(spec.search.space[key]) for key in keys}
        for one in trials:
            params = {key: one.trial.params[key] for key in keys}
            study.add_trial(optuna.create_trial(value=one.value, params=params, distributions=domains))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            evaluators = (FanovaImportanceEvaluator(seed=0), PedAnovaImportanceEvaluator())
        whole, best = (get_param_importances(study, evaluator=one, params=list(keys)) for one in evaluators)
    finally:
        optuna.logging.set_verbosity(verbosity)
    return {key: (whole[key], best[key]) for key in keys}


def _distribution(domain: Domain):  # type: ignore[no-untyped-def]  # Optuna is imported where it is needed
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if domain.choices is not None:
        return CategoricalDistribution(domain.choices)
    if isinstance(domain.low, int) and isinstance(domain.high, int):
        return IntDistribution(domain.low, domain.high, log=domain.log)
    assert domain.low is not None
    assert domain.high is not None
    return FloatDistribution(domain.low, domain.high, log=domain.log)
