"""The worth of each step from the baseline to the best: on the path, added to the baseline, and in the best.

All differences are taken seed by seed. The steps of the path use the seeds that all its configurations have, so that
they sum to the gain. A knob's interaction is what it is worth in the best less what it is worth added to the baseline:
what it gains or loses by the others.

The intervals of one kind of effect hold together in 95% of cases (Bonferroni over its steps): a reader looks for the
largest step, and among several steps without any effect the largest would seem one too often. The gain's interval is a
single one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from study.analysis.statistics.trials_frame import trial_metric
from study.errors import UserError
from study.home.folder import Home
from study.knobs import Params
from study.ranking import Results, SeedStatistics, seed_statistics
from study.ranking.ablation_steps import (
    Ablation,
    AppliedSteps,
    StepKeys,
    ablation_trials_by_configuration,
    path_configurations,
    requested_ablation,
    single_additions,
    single_removals,
    value_in_configuration,
)
from study.ranking.difference import CONFIDENCE_LEVEL, Difference, mean_difference
from study.spec import StudySpec
from study.text import format_parameter

EffectKind = Literal["path", "gain", "adding", "removing", "interaction"]
EFFECT_KIND_TITLES: Mapping[EffectKind, str] = {
    "path": "step by step",
    "gain": "in all",
    "adding": "baseline with",
    "removing": "best with",
    "interaction": "interaction",
}
"""The kinds of effect, in words."""

MAX_STEP_KEYS_SHOWN = 3
ABLATION_LABEL_COLUMNS = ["metric", "part", "configuration"]
ABLATION_NUMBER_COLUMNS = ["mean", "sd", "n", "effect", "low", "high", "pairs"]
ValueBySeed = Mapping[int, float]


@dataclass(frozen=True)
class StepTexts:
    """A step: its keys, what taking it does, and what undoing it does, as `method.alpha = 0.1`."""

    keys: StepKeys
    applied_text: str
    reverted_text: str


@dataclass(frozen=True)
class AblationEffect:
    """One line of an ablation.

    Attributes:
        label: of its configuration; of an interaction, of its knobs.
        keys: that the step moves; none for the baseline and the whole gain.
        statistics: of its configuration, over seeds; None where it has none.
        difference: what the step is worth: on the path against the configuration before, added against the baseline,
            removed the best against it; None where an arm has no value.
        n_seed_pairs: on how many seeds both configurations have a value.
    """

    kind: EffectKind
    label: str
    keys: StepKeys
    statistics: SeedStatistics | None
    difference: Difference | None
    n_seed_pairs: int


def compute_ablation_effects(
    values: Mapping[AppliedSteps, ValueBySeed], steps: Sequence[StepTexts]
) -> list[AblationEffect]:
    """Return all effects of an ablation: path and gain; of several steps each alone, removed, and interacting.

    Args:
        values: a metric by seed of each configuration of `study.ranking.ablation_steps.ablation_configurations`.
        steps: in the order of the path.
    """
    count = len(steps)
    path, adding, removing = path_configurations(count), single_additions(count), single_removals(count)
    together = set.intersection(*(set(values[moved]) for moved in path))
    on_path = [{seed: values[moved][seed] for seed in sorted(together)} for moved in path]
    at_once = 1 - (1 - CONFIDENCE_LEVEL) / count
    found = [_effect_of_pair("path", "baseline", values[path[0]])]
    for place, step in enumerate(steps):
        pair, reached = (on_path[place + 1], on_path[place]), values[path[place + 1]]
        found.append(_effect_of_pair("path", f"+ {step.applied_text}", reached, pair, step.keys, at_once))
    found.append(_effect_of_pair("gain", "best against the baseline", {}, (on_path[-1], on_path[0])))
    if count < 2:
        return found
    baseline, best = values[path[0]], values[path[-1]]
    for step, moved in zip(steps, adding, strict=True):
        own = values[moved]
        found.append(_effect_of_pair("adding", step.applied_text, own, (own, baseline), step.keys, at_once))
    for step, moved in zip(steps, removing, strict=True):
        own = values[moved]
        found.append(_effect_of_pair("removing", step.reverted_text, own, (best, own), step.keys, at_once))
    once = CONFIDENCE_LEVEL if count == 2 else at_once  # of two steps there is one interaction
    for step, alone, without in zip(steps, adding, removing, strict=True):
        pair = _difference_by_seed(best, values[without]), _difference_by_seed(values[alone], baseline)
        found.append(_effect_of_pair("interaction", ", ".join(step.keys), {}, pair, step.keys, once))
    return found


def metric_by_configuration_and_seed(
    results: Results, ablation: Ablation, name: str
) -> dict[AppliedSteps, dict[int, float]]:
    """Return a metric by seed of each configuration of an ablation, from its complete trials."""
    return {
        moved: {
            seed: value
            for seed, trial in sorted(by_seed.items())
            if trial.state == "complete" and (value := trial_metric(results.spec, trial, name)) is not None
        }
        for moved, by_seed in ablation_trials_by_configuration(results, ablation).items()
    }


def ablation_effects_by_metric(results: Results) -> dict[str, list[AblationEffect]]:
    """Return the effects of the ablation that was asked for, by metric.

    Metrics are those of the study's objective and constraints, on validation and, where it was read, on test. Empty
    without an ablation, or before any of its trials is complete.
    """
    ablation = requested_ablation(results.record)
    if ablation is None:
        return {}
    steps = describe_steps(results.spec, ablation)
    own = results.spec.objective.needed_metrics
    names = dict.fromkeys([*own, *(f"test/{name.split('/')[1]}" for name in own)])
    by_metric = {name: metric_by_configuration_and_seed(results, ablation, name) for name in names}
    return {name: compute_ablation_effects(values, steps) for name, values in by_metric.items() if any(values.values())}


def describe_steps(spec: StudySpec, ablation: Ablation) -> list[StepTexts]:
    """Return the steps in words; of a step with more than `MAX_STEP_KEYS_SHOWN` keys the first of them."""

    def words(step: StepKeys, params: Params) -> str:
        there = {key: found for key in step if (found := value_in_configuration(spec, params, key)) is not None}
        shown = [f"{key} = {format_parameter(value)}" for key, value in list(there.items())[:MAX_STEP_KEYS_SHOWN]]
        rest = len(there) - len(shown)
        return ", ".join([*shown, *([f"{rest} more"] if rest else [])])

    ends = ablation.best_configuration_trial.params, ablation.baseline_trial.params
    return [
        StepTexts(tuple(step), *(words(step, params) or f"no {', '.join(step)}" for params in ends))
        for step in ablation.steps
    ]


def load_ablation(name: str) -> pd.DataFrame:
    """Load the ablation of a study of this home, as `ablation_frame`.

    Raises:
        UserError: there is no such study, or nobody asked for its ablation.

    Example:
        >>> from study.analysis import load_ablation, to_latex
        >>> text = to_latex(load_ablation("mine"), caption="From the baseline to the best.")
    """
    folder = Home.locate().find_study(name)
    results = Results.load(folder)
    if results.record.ablation_request is None:
        raise UserError(f"{name}: its steps from the baseline to the best are not measured yet: study ablate {name}")
    return ablation_frame(results)


def ablation_frame(results: Results) -> pd.DataFrame:
    """Return what each step from the baseline to the best is worth; `to_markdown`, `to_latex` and `to_csv` take it.

    Returns:
        A row per line: `metric`, `part`, `configuration`. Parts: `path` (the baseline, then a step at a time), `gain`
        (best minus baseline, the sum of the path's effects), `adding` (the baseline with one step), `removing` (the
        best without one), `interaction` (a step's effect in the best minus its effect added to the baseline). Columns:
        `keys` that were moved; `mean`, `sd` (sample) and `n` of the configuration over seeds; `effect` of the step,
        `low` and `high` of its interval, all of a part at once with 95%; `pairs`, the seeds behind the effect.
        Values that are not there are NaN.
    """
    return ablation_frame_from_dicts(ablation_to_dicts(ablation_effects_by_metric(results)))


def ablation_to_dicts(by_metric: Mapping[str, Sequence[AblationEffect]]) -> list[dict[str, object]]:
    """Return the rows of `ablation_frame` as plain values for JSON: None where a value is missing."""
    return [
        {"metric": name, "part": effect.kind, "configuration": effect.label, **_effect_row(effect)}
        for name, found in by_metric.items()
        for effect in found
    ]


def ablation_frame_from_dicts(lines: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Return `ablation_frame` from its rows as plain values."""
    kinds = dict.fromkeys(("mean", "sd", "effect", "low", "high"), float) | dict.fromkeys(("n", "pairs"), "int64")
    frame = pd.DataFrame(list(lines), columns=[*ABLATION_LABEL_COLUMNS, "keys", *ABLATION_NUMBER_COLUMNS])
    return frame.astype(kinds)


def _effect_of_pair(
    kind: EffectKind,
    label: str,
    values: ValueBySeed,
    pair: tuple[ValueBySeed, ValueBySeed] = ({}, {}),
    keys: StepKeys = (),
    confidence: float = CONFIDENCE_LEVEL,
) -> AblationEffect:
    """Return a line whose difference is that of a pair, the first minus the second."""
    change = mean_difference(*pair, confidence=confidence)
    return AblationEffect(kind, label, keys, seed_statistics(values.values()), change, len(set(pair[0]) & set(pair[1])))


def _difference_by_seed(one: ValueBySeed, other: ValueBySeed) -> dict[int, float]:
    return {seed: one[seed] - other[seed] for seed in one if seed in other}


def _effect_row(effect: AblationEffect) -> dict[str, object]:
    values, change = effect.statistics, effect.difference
    low, high = (change.interval if change else None) or (None, None)
    return {
        "keys": ", ".join(effect.keys),
        "mean": values.mean if values else None,
        "sd": values.standard_deviation if values else None,
        "n": values.count if values else 0,
        **{"effect": change.value if change else None, "low": low, "high": high},
        "pairs": effect.n_seed_pairs,
    }
