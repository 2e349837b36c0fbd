"""The report's section on what each step from the baseline to the best is worth."""

from collections.abc import Iterator, Sequence

from study.analysis.report.page_formats import (
    PageBlock,
    PageSection,
    TableBlock,
    command_as_code,
)
from study.analysis.statistics import formatting
from study.analysis.statistics.ablation_effects import (
    AblationEffect,
    EffectKind,
    ablation_effects_by_metric,
    ablation_frame_from_dicts,
    ablation_to_dicts,
)
from study.analysis.tables.printed_grid import ablation_notes, ablation_table
from study.ranking import Results
from study.ranking.ablation_steps import (
    Ablation,
    ablation_trials,
    includes_choosing_seed,
    requested_ablation,
)
from study.text import pluralise

ABLATION_TITLE = "Ablation"


def ablation_section(results: Results) -> PageSection | None:
    """Return the ablation's table with what it means; None where nobody asked for it, or nothing of it has run."""
    ablation, by_metric = requested_ablation(results.record), ablation_effects_by_metric(results)
    if ablation is None or results.spec.metric not in by_metric:
        return None
    frame = ablation_frame_from_dicts(ablation_to_dicts(by_metric))
    found = ablation_result_sentences(results, ablation, by_metric[results.spec.metric])
    blocks: list[PageBlock] = [" ".join(found), TableBlock(ablation_table(frame))]
    notes = (ablation_notes(frame), _ablation_method_sentences(results, ablation))
    return PageSection(ABLATION_TITLE, [*blocks, *(" ".join(sentences) for sentences in notes)])


def ablation_result_sentences(results: Results, ablation: Ablation, effects: Sequence[AblationEffect]) -> Iterator[str]:
    """Yield what came out, by the study's own metric: no more than the intervals support."""
    name, best = results.spec.metric, f"trial {ablation.best_configuration_trial.number}"
    gain = next(effect for effect in effects if effect.kind == "gain")
    ends = [effect.statistics for effect in effects if effect.kind == "path"]
    if gain.difference is None:
        yield "No seed has a complete trial of every configuration on the path, so the steps cannot be summed yet."
        return
    yield (
        f"From the baseline ({formatting.format_mean_and_deviation(name, ends[0])}) to {best} "
        f"({formatting.format_mean_and_deviation(name, ends[-1])}) {name} changes by "
        f"{_effect_with_interval(name, gain)}, in {pluralise(len(ablation.steps), 'step')} "
        f"over {pluralise(gain.n_seed_pairs, 'seed')}."
    )
    if len(ablation.steps) == 1:
        yield f"Baseline and {best} differ in this one step, which is the whole gain."
        return
    yield from _clear_step_sentences(name, effects, "path", "step by step")
    yield from _clear_step_sentences(name, effects, "adding", "added to the baseline")
    yield from _clear_step_sentences(name, effects, "removing", f"in {best}")
    if interacting := _effects_of_kind(effects, "interaction", is_clear=True):
        amounts = (f"{effect.label} by {_effect_with_interval(name, effect)}" for effect in interacting)
        listed = formatting.join_with_and(amounts)
        yield f"What a step is worth depends on the others, beyond the spread over seeds: {listed}."
    elif any(effect.difference and effect.difference.interval for effect in effects if effect.kind == "interaction"):
        yield "No interaction is beyond the spread over seeds."


def _clear_step_sentences(name: str, effects: Sequence[AblationEffect], kind: EffectKind, words: str) -> Iterator[str]:
    """Yield which steps of a kind of effect are beyond the spread over seeds."""
    if clear := _effects_of_kind(effects, kind, is_clear=True):
        amounts = (f"{', '.join(effect.keys)} by {_effect_with_interval(name, effect)}" for effect in clear)
        yield f"Beyond the spread over seeds, {words}: {formatting.join_with_and(amounts)}."
    elif _effects_of_kind(effects, kind, is_clear=False):
        yield f"No step is beyond the spread over seeds, {words}."


def _effects_of_kind(effects: Sequence[AblationEffect], kind: EffectKind, is_clear: bool) -> list[AblationEffect]:
    of_kind = (effect for effect in effects if effect.kind == kind)
    return [effect for effect in of_kind if effect.difference and effect.difference.is_clear is is_clear]


def _effect_with_interval(name: str, effect: AblationEffect) -> str:
    assert effect.difference is not None
    return formatting.difference_with_interval(name, effect.difference, words="")


def _ablation_method_sentences(results: Results, ablation: Ablation) -> Iterator[str]:
    """Yield on which seeds the ablation ran, how its steps were made, and what is missing."""
    yield f"All configurations run on {formatting.seeds_text(ablation.seeds)}."
    if not set(ablation.seeds) & set(results.confirmation.seeds):
        yield "By none of these seeds that trial was chosen, so its gain is not that of the luckiest."
    elif includes_choosing_seed(results, ablation.seeds):
        yield "Later several configurations were confirmed on some of these seeds; this one was chosen before."
    else:
        yield "On these no other configuration of the search was confirmed: they did not choose it among several."
    if len(ablation.steps) > 1:
        order = command_as_code(f"study ablate {results.spec.name} --order A,B")
        yield f"Where steps interact, another order divides the gain otherwise ({order})."
    if any(len(step) > 1 for step in ablation.steps):
        yield (
            "Knobs of one step move together: one depends on the other, the study refuses them apart, or --knobs left "
            "them out."
        )
    best, before = results.best, ablation.best_configuration_trial.number
    if best and best.trial.number != before:
        yield f"Trial {best.trial.number} leads now; trial {before} did when this was asked for."
    planned = len(ablation.configurations) * len(ablation.seeds)
    if short := planned - sum(trial.state == "complete" for trial in ablation_trials(results, ablation)):
        yield f"{pluralise(short, 'trial')} of {planned} {'is' if short == 1 else 'are'} not complete."
