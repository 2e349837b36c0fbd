"""The report's section on what each step from the baseline to the best is worth."""

from collections.abc import Iterator, Sequence

from study import ranking
from study.analysis.report.page import Block, Section, Table, Text
from study.analysis.statistics import formatting
from study.analysis.statistics.ablation_effects import Effect, Part, ablation_effects, frame_of
from study.analysis.tables.ablation_table import notes, printed_ablation
from study.home.record import StudyRecord
from study.ranking.ablation import Ablation, asked, is_chosen_by, runs
from study.spec import StudySpec

TITLE = "Ablation"


def ablation_section(spec: StudySpec, record: StudyRecord) -> Section | None:
    """The table with what it means; None where nobody asked for it, or nothing of it has run."""
    ablation, by_metric = asked(record), ablation_effects(spec, record)
    if ablation is None or spec.metric not in by_metric:
        return None
    frame = frame_of(by_metric)
    blocks: list[Block] = [Text(" ".join(result(spec, record, ablation, by_metric[spec.metric])))]
    blocks += [Table(printed_ablation(frame)), Text(" ".join(notes(frame)))]
    blocks.append(Text(" ".join(_how(spec, record, ablation))))
    return Section(TITLE, blocks)


def result(spec: StudySpec, record: StudyRecord, ablation: Ablation, effects: Sequence[Effect]) -> Iterator[str]:
    """What came out, by the study's own metric: no more than the intervals support."""
    name = spec.metric
    gain = next(effect for effect in effects if effect.part == "gain")
    ends = [effect.values for effect in effects if effect.part == "path"]
    if gain.difference is None:
        yield "No seed has a complete trial of every configuration on the path, so the steps cannot be summed yet."
        return
    yield (
        f"From the baseline ({formatting.mean(name, ends[0])}) to trial {ablation.best.number} "
        f"({formatting.mean(name, ends[-1])}) {name} changes by {_amount(name, gain)}, in "
        f"{formatting.count(len(ablation.steps), 'step')} over {formatting.count(gain.pairs, 'seed')}."
    )
    if len(ablation.steps) == 1:
        yield "Baseline and best differ in this one step, which is the whole gain."
        return
    for part, words in (("path", "step by step"), ("adding", "added to the baseline"), ("removing", "in the best")):
        yield from _clear(name, effects, part, words)  # type: ignore[arg-type]
    interacting = _of(effects, "interaction", is_clear=True)
    if interacting:
        listed = formatting.listed(f"{effect.label} by {_amount(name, effect)}" for effect in interacting)
        yield f"What a step is worth depends on the others, beyond the spread over seeds: {listed}."
    elif any(effect.difference and effect.difference.interval for effect in effects if effect.part == "interaction"):
        yield "No interaction is beyond the spread over seeds."


def _clear(name: str, effects: Sequence[Effect], part: Part, words: str) -> Iterator[str]:
    """Which steps of a part are beyond the spread over seeds."""
    clear = _of(effects, part, is_clear=True)
    if clear:
        amounts = (f"{', '.join(effect.keys)} by {_amount(name, effect)}" for effect in clear)
        yield f"Beyond the spread over seeds, {words}: {formatting.listed(amounts)}."
    elif _of(effects, part, is_clear=False):
        yield f"No step is beyond the spread over seeds, {words}."


def _of(effects: Sequence[Effect], part: Part, is_clear: bool) -> list[Effect]:
    return [
        effect
        for effect in effects
        if effect.part == part and effect.difference and effect.difference.clear is is_clear
    ]


def _amount(name: str, effect: Effect) -> str:
    assert effect.difference is not None
    text = formatting.change(name, effect.difference.value)
    return text if effect.difference.interval is None else f"{text} ({formatting.interval(name, effect.difference)})"


def _how(spec: StudySpec, record: StudyRecord, ablation: Ablation) -> Iterator[str]:
    """On which seeds, what is missing, how often test was read for it."""
    yield f"All configurations run on {formatting.seeds(ablation.seeds)}."
    if not set(ablation.seeds) & set(ranking.confirm_seeds(record, spec)):
        yield "By none of these seeds the best was chosen, so its gain is not that of the luckiest."
    elif is_chosen_by(record, spec, ablation.seeds):
        yield "Later several configurations were confirmed on some of these seeds; this one was chosen before."
    else:
        yield "On these no other configuration of the search was confirmed: they did not choose the best among several."
    if len(ablation.steps) > 1:
        yield f"Where steps interact, another order divides the gain otherwise (study ablate {spec.name} --order A,B)."
    if any(len(step) > 1 for step in ablation.steps):
        yield (
            "Knobs of one step move together: one depends on the other, the study refuses them apart, or --knobs left "
            "them out."
        )
    best = ranking.best(record, spec)
    if best and best.trial.number != ablation.best.number:
        yield f"The best is now trial {best.trial.number}; trial {ablation.best.number} was it when this was asked for."
    by_configuration = runs(record, spec, ablation).values()
    trials = [trial for by_seed in by_configuration for trial in by_seed.values()]
    planned = len(ablation.configurations) * len(ablation.seeds)
    if short := planned - sum(trial.state == "complete" for trial in trials):
        yield f"{formatting.count(short, 'trial')} of {planned} {'is' if short == 1 else 'are'} not complete."
    readings = sum(bool(trial.tested) for trial in record.by_stage("ablation"))
    if readings:
        yield f"For this alone the test split was read {formatting.count(readings, 'time')}; it chose nothing."
