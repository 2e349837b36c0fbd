"""The report's sections, as a `study.analysis.report.page.Page`."""

from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import UTC

import pandas as pd

from study.analysis.figures.by_optuna import OPTUNA
from study.analysis.figures.missing import not_shown
from study.analysis.figures.two_metrics import has_front, joins_front
from study.analysis.report.caveats import caveats
from study.analysis.report.front_section import front_section
from study.analysis.report.page import Block, Page, Picture, Points, Section, Table, Text
from study.analysis.report.reference_sentences import printed_references
from study.analysis.report.result_sentences import lead
from study.analysis.report.rules_section import rules_section
from study.analysis.statistics import formatting
from study.analysis.statistics.ablation_effects import Effect, EffectKind, ablation_effects, frame_of, lines_of
from study.analysis.statistics.debiasing_metrics import sampling_error, worst_group
from study.analysis.tables import report_tables
from study.analysis.tables.printed_table import ablation_notes, printed_ablation
from study.data.dataset import DatasetSummary
from study.home.events import entry_of
from study.home.provenance import devices, in_words
from study.home.record import StudyRecord
from study.metrics import find, group_names
from study.metrics.selection_rules import DEBIASED
from study.ranking import NORMAL_DEGREES_OF_FREEDOM, Results, epochs
from study.ranking.ablation_steps import Ablation, asked, is_chosen_by, runs
from study.ranking.difference import Difference, Side, split_metrics
from study.ranking.documents import text_of
from study.spec import StudySpec
from study.spec.rungs import schedule
from study.text import counted, ends, flat, moment, parameter

TITLE = "Ablation"


def ablation_section(results: Results) -> Section | None:
    """Return the ablation's table with what it means; None where nobody asked for it, or nothing of it has run."""
    ablation, by_metric = asked(results.record), ablation_effects(results)
    if ablation is None or results.spec.metric not in by_metric:
        return None
    frame = frame_of(lines_of(by_metric))
    blocks: list[Block] = [Text(" ".join(result(results, ablation, by_metric[results.spec.metric])))]
    blocks += [Table(printed_ablation(frame)), Text(" ".join(ablation_notes(frame)))]
    blocks.append(Text(" ".join(_how(results, ablation))))
    return Section(TITLE, blocks)


def result(results: Results, ablation: Ablation, effects: Sequence[Effect]) -> Iterator[str]:
    """Yield what came out, by the study's own metric: no more than the intervals support."""
    name = results.spec.metric
    gain = next(effect for effect in effects if effect.part == "gain")
    ends = [effect.values for effect in effects if effect.part == "path"]
    if gain.difference is None:
        yield "No seed has a complete trial of every configuration on the path, so the steps cannot be summed yet."
        return
    yield (
        f"From the baseline ({formatting.mean(name, ends[0])}) to trial {ablation.best.number} "
        f"({formatting.mean(name, ends[-1])}) {name} changes by {_amount(name, gain)}, in "
        f"{counted(len(ablation.steps), 'step')} over {counted(gain.pairs, 'seed')}."
    )
    if len(ablation.steps) == 1:
        yield f"Baseline and trial {ablation.best.number} differ in this one step, which is the whole gain."
        return
    for part, words in (
        ("path", "step by step"),
        ("adding", "added to the baseline"),
        ("removing", f"in trial {ablation.best.number}"),
    ):
        yield from _clear(name, effects, part, words)  # type: ignore[arg-type]
    interacting = _of(effects, "interaction", is_clear=True)
    if interacting:
        listed = formatting.listed(f"{effect.label} by {_amount(name, effect)}" for effect in interacting)
        yield f"What a step is worth depends on the others, beyond the spread over seeds: {listed}."
    elif any(effect.difference and effect.difference.interval for effect in effects if effect.part == "interaction"):
        yield "No interaction is beyond the spread over seeds."


def _clear(name: str, effects: Sequence[Effect], part: EffectKind, words: str) -> Iterator[str]:
    """Yield which steps of a part are beyond the spread over seeds."""
    clear = _of(effects, part, is_clear=True)
    if clear:
        amounts = (f"{', '.join(effect.keys)} by {_amount(name, effect)}" for effect in clear)
        yield f"Beyond the spread over seeds, {words}: {formatting.listed(amounts)}."
    elif _of(effects, part, is_clear=False):
        yield f"No step is beyond the spread over seeds, {words}."


def _of(effects: Sequence[Effect], part: EffectKind, is_clear: bool) -> list[Effect]:
    return [
        effect
        for effect in effects
        if effect.part == part and effect.difference and effect.difference.clear is is_clear
    ]


def _amount(name: str, effect: Effect) -> str:
    assert effect.difference is not None
    return formatting.amount(name, effect.difference, words="")


def _how(results: Results, ablation: Ablation) -> Iterator[str]:
    """Yield on which seeds the ablation ran, how its steps were made, and what is missing."""
    yield f"All configurations run on {formatting.seeds(ablation.seeds)}."
    if not set(ablation.seeds) & set(results.confirm_seeds):
        yield "By none of these seeds that trial was chosen, so its gain is not that of the luckiest."
    elif is_chosen_by(results, ablation.seeds):
        yield "Later several configurations were confirmed on some of these seeds; this one was chosen before."
    else:
        yield "On these no other configuration of the search was confirmed: they did not choose it among several."
    if len(ablation.steps) > 1:
        order = f"study ablate {results.spec.name} --order A,B"
        yield f"Where steps interact, another order divides the gain otherwise ({order})."
    if any(len(step) > 1 for step in ablation.steps):
        yield (
            "Knobs of one step move together: one depends on the other, the study refuses them apart, or --knobs left "
            "them out."
        )
    best = results.best
    if best and best.trial.number != ablation.best.number:
        yield f"Trial {best.trial.number} leads now; trial {ablation.best.number} did when this was asked for."
    by_configuration = runs(results, ablation).values()
    trials = [trial for by_seed in by_configuration for trial in by_seed.values()]
    planned = len(ablation.configurations) * len(ablation.seeds)
    if short := planned - sum(trial.state == "complete" for trial in trials):
        yield f"{counted(short, 'trial')} of {planned} {'is' if short == 1 else 'are'} not complete."


CAPTIONS = {
    "front": "{left} mark is one configuration of the search{mean}. The ring is {chosen} of the front: "
    "{rule}.{fresh}{line_of_front}",
    "seeds": "Each ring is one {ring}. The tick is the {tick}. The line is one sample standard deviation to each side."
    "{fitted}",
    "ablation": "Each bar is one step on the way from the baseline to what led the search, from the value before it "
    "to the value after it; the line is the interval of its end. The intervals hold together in 95% of cases.",
    "learning_curves": "Each line is one trial.{repeats}{rungs}",
    "trade_off": "Each mark is one configuration of the search.{front}",
    "importance": "Shares of the metric's variance over the searched space, each value drawn with equal chance, from "
    "the search's complete trials that have the parameter; with early stopping, among what it let through. A "
    "parameter: what it explains alone. Interactions: what pairs explain beyond that. Remainder: noise between trials, "
    "and what is too jagged or takes three parameters. Lines are 95% intervals.",
    "slice": "Each mark is one complete trial of the search{mean}{line}.{missed}",
    "parallel_coordinate": "Each line is one complete trial of the search{mean}.{missed}",
    "optimization_history": "Each mark is one complete trial of the search{mean}{line}.{missed}",
}
"""Captions by figure; what depends on the study is in braces, see `caption`."""

WHICH_MODELS = (
    "Features of the encoder at the last epoch, on the test split (validation where there is none): for the baseline "
    "and what leads the search the first of the fresh seeds. Nothing was chosen by these figures."
)

MODEL_CAPTIONS = {
    "similarities": "All pairs of samples. Where the bias does not matter, the two lines of a panel coincide. Shown "
    "are the baseline, all configurations that were confirmed on fresh seeds, and the epochs of train.keep_epochs. The "
    "FairKL paper's Fig. 5 compares values of epsilon in this way.",
    "groups": "Left: mean cosine of two samples of a group, its compactness. Right: mean cosine of a sample of the "
    "group and one of another class; lower means better separated. The spread over groups is that of the FSCL paper's "
    "Fig. 2: the smaller, the fairer.",
    "tsne": "Distances between clusters say little. Where the bias does not matter, the colours on the right mix.",
}


def caption(name: str, results: Results) -> str:
    """Return a figure's caption, with what its values are based on."""
    means = "" if len(results.spec.seeds) == 1 else f" (mean over its {len(results.spec.seeds)} seeds)"
    missed = " What is grey or dotted misses a constraint." if results.spec.search.constraints else ""
    kept = " keep the constraints and" if results.spec.search.constraints else ""
    repeats = "" if results.spec.final_seeds is not None else " Trials that repeat one on another seed are left out."
    given = {
        "mean": means,
        "missed": missed,
        "repeats": repeats,
        "rungs": _rungs(results.spec),
        "ring": "seed",
        "tick": "mean",
        "fitted": f" {_fitted(results.spec)}." if results.unbeaten else "",
    }
    if results.spec.folds and results.spec.final_seeds is None:
        given["ring"] = "fold, on a seed of its own"
        given["tick"] = "mean; on validation, the value over the samples of all folds"
    has_line = results.spec.search.baseline is not None
    given["line"] = "; the dashed line is the baseline" if has_line else ""
    front = f" The front joins those that{kept} are not dominated in these two metrics."
    given["front"] = front if name == "trade_off" and has_front(results.without_extensions) else ""
    if name == "front":
        given |= _of_front(results)
    return CAPTIONS[name].format(**given)


def _of_front(results: Results) -> dict[str, str]:
    """Return what the caption of the front says of this one."""
    fresh = any(score is candidate.confirmed_score for candidate, score in results.judged)
    right = f" The others: those that ran on {formatting.fresh(results.spec)}, mean ± sample standard deviation over "
    right += "these; what is grey is not on the front."
    joined = " The line joins the front."
    if len(results.spec.objective.metrics) > 2:
        joined = " The front is that of all metrics: in these two alone some of it may look beaten."
    has_line = joins_front(results) or len(results.spec.objective.metrics) > 2
    return {
        "chosen": "what leads the search" if results.unbeaten else "what was chosen",
        "rule": results.spec.objective.rule,
        "left": "Left: each" if fresh else "Each",
        "fresh": right * fresh,
        "line_of_front": joined * has_line,
    }


def _rungs(spec: StudySpec) -> str:
    """Return what the dotted lines among learning curves are; nothing where there are none."""
    rule = spec.search.early_stopping
    if spec.final_seeds is not None or rule.name == "none":
        return ""
    if schedule(rule, spec.epochs).each_epoch:
        return " From the dotted line on trials are compared after each epoch and the worse half pruned."
    several = " of any bracket" if len(schedule(rule, spec.epochs).brackets) > 1 else ""
    return f" Dotted lines are the epochs{several} at which trials are compared and the worse ones pruned."


WORST = "worst_group_accuracy"


def groups(results: Results) -> Iterator[str]:
    """Yield the paragraphs on groups below the summary; none without bias labels."""
    record = results.record
    compared = [side for side in (*results.result_sides, results.final_side) if side]
    if not any(side.spread(f"{split}/{name}") for side in compared for split in ("val", "test") for name in DEBIASED):
        return
    for split in ("val", "test"):
        yield from (text for side in compared if (text := _worst(record, side, split)))
        cells = record.groups.cells.get(split)
        if cells and any(side.spread(f"{split}/{name}") for side in compared for name in DEBIASED):
            yield f"On {split} {group_names.compared(cells, record.groups.classes)}"
    if named := _named(record):
        yield named
    side = compared[-1]
    if any(
        sampling_error(record, side, f"{split}/{name}") is not None for split in ("val", "test") for name in DEBIASED
    ):
        yield (
            f"The split's error is the standard error of the value of {side.words}, because the split is a sample: "
            "more seeds do not make it smaller. The smallest of several groups is, besides, too low on average, the "
            "more so the fewer samples they have."
        )


def _worst(record: StudyRecord, side: Side, split: str) -> str | None:
    """Return which groups a side serves worst; the metric alone where the sizes of the groups are unknown."""
    if found := worst_group(record, side, split):
        return " ".join(found.sentences(side.words))
    value = side.spread(f"{split}/{WORST}")
    is_counted = split in record.groups.cells
    told = f"The worst group of {side.words} on {split} has {formatting.mean(WORST, value)} right."
    return None if value is None or is_counted else told


def _named(record: StudyRecord) -> str | None:
    """Return which class and bias class each number of a group stands for; None for data without names."""
    found = group_names.legend(record.groups.classes, record.groups.biases)
    return f"Groups by name: {'; '.join(f'{name}: {words}' for name, words in found.items())}." if found else None


def _metrics_meant(spec: StudySpec) -> Iterator[str]:
    """Yield what each of the study's metrics is, in words; nothing of a function's own."""
    for name in () if spec.function else spec.objective.metrics:
        if metric := find(name):
            yield f"{name}: {metric.about}{' Smaller is better.' * (metric.better == 'min')}"


def summary_note(results: Results) -> str:
    """Return a sentence each on the spread, the seeds, and the interval where there is one."""
    spec = results.spec
    note = f"Mean ± sample standard deviation over the seeds in the last column, {epochs.words(spec.objective)}."
    same = "" if spec.function else " All seeds use the same data and splits."
    if spec.final_seeds is not None:
        return note + same
    reference, best = results.result_sides
    if results.unbeaten:
        note += f" {_fitted(spec)}: no spread over seeds is known of it."
    elif best and (reference or best.n_candidates > 1):
        note += f" {_seeds(spec, best)}"
    if best and reference:
        gains = (best.against(reference, name) for name in split_metrics(spec, (best, reference)))
        printed = (gain for gain in gains if gain and gain.interval and not (gain.is_alike or gain.is_vague))
        if gain := next(printed, None):
            note += f" {_interval(gain)}"
    return note + same


def _fitted(spec: StudySpec) -> str:
    """Return how often a reference was fitted, as a sentence without its full stop."""
    return f"What needs no search was fitted once{' on each fold' if spec.folds else ''}"


def _seeds(spec: StudySpec, best: Side) -> str:
    """Return a sentence on whether the trials by which the best was chosen are among those that are shown."""
    if best.trials[0].stage == "confirm":
        return "The seeds are fresh: the trial by which a configuration came this far is not among them."
    if len(spec.seeds) == 1:
        return (
            "The search saw this seed and chose by it: by the luck of that choice the best looks, on average, too good."
        )
    return (
        "The search saw these seeds and chose by them: no seed is fresh, and by the luck of that choice the best "
        "looks, on average, too good."
    )


def _interval(gain: Difference) -> str:
    method = "The 95% interval of the difference is Welch's"
    if gain.freedom == NORMAL_DEGREES_OF_FREEDOM:
        method = "The 95% interval of the difference is that of samples of all folds drawn anew, the same for both"
    elif gain.paired:
        method = (
            "Difference and 95% interval are by seed, over the seeds that both have (Student's t of the differences)"
        )
    if gain.n_candidates == 1:
        return f"{method}."
    chosen = counted(gain.n_candidates, "configuration")
    return f"{method}, widened because the best was chosen among {chosen} by the same trials."


EXTENDED = (
    "{} show trials as far as they were extended, all other figures and the table of early "
    "stopping show each as the search ended it: trials of different numbers of epochs do not compare."
)

EACH_TRIAL = "Each trial is a row of trials.csv, which is beside this page."

BY_SEED = "Both were trained finally. Differences are by seed, over the seeds that both have, with their 95% interval."


BEHIND = ("How sure", "Search", "Cost")
"""Parts of the lead that the page folds: the first screen says what came out, what accuracy it cost and what to do."""


def report_page(results: Results, pictures: Container[str], beside: pd.DataFrame | None = None) -> Page:
    """Return the whole report.

    Args:
        pictures: names of the figures that could be drawn.
        beside: the two final trainings of a study.
    """
    record = results.record
    figures = [Picture(name, caption(name, results), name in OPTUNA) for name in CAPTIONS if name in pictures]
    seeds = [figure for figure in figures if figure.name == "seeds"]
    pictured = next((figure for figure in figures if figure.name == "front"), None)
    others = [figure for figure in figures if figure.name not in ("seeds", "front")]
    model_figures = [Picture(name, caption) for name, caption in MODEL_CAPTIONS.items() if name in pictures]
    first, summary, configurations = (
        report_tables.printed_first(results),
        report_tables.printed_summary(results),
        report_tables.printed_configurations(results),
    )
    of_results = (
        "Learning curves, seeds and the front" if results.spec.objective.several else "Learning curves and seeds"
    )
    figure_notes = [Text(EXTENDED.format(of_results))] if record.lengthened else []
    figure_notes += map(Text, not_shown(results, pictures))
    with_references = printed_references(results, report_tables.summary_metrics(results))
    beneath = report_tables.printed_beside(results)
    tables = [table for table in (with_references, first, beneath) if table is first or len(table)]
    listed = "Configurations" if results.above else "Best configurations"
    notes = [*_metrics_meant(results.spec), summary_note(results), *groups(results)]
    open_points = list(map(str, caveats(results)))
    has_result = results.final_side is not None or any(results.sides)
    sections = [
        front_section(results, pictured),
        Section("Summary", [*seeds, *map(Table, tables)]) if has_result else None,
        Section("Best and baseline", [Table(beside), Text(BY_SEED)]) if beside is not None else None,
        Section("What these numbers are", list(map(Text, notes)), folded=True) if has_result else None,
        Section(listed, [Table(configurations), Text(_ranking_note(results))]) if len(configurations) > 1 else None,
        ablation_section(results),
        rules_section(results),
        Section("Figures", [*others, *figure_notes]) if others else None,
        Section("What the models learned", [Text(WHICH_MODELS), *model_figures]) if model_figures else None,
        Section("Trials", [Table(report_tables.printed_counts(record)), Text(EACH_TRIAL)]) if record.trials else None,
        Section("Settings", [Table(_pairs(_settings(results)))], folded=True),
        Section("What is not known", [Points(open_points)]) if open_points else None,
        Section("Provenance", [Table(_pairs(_provenance(results)))]),
        Section("Every metric", [Table(summary)], folded=True) if len(summary) > len(first) else None,
    ]
    parts = [(title, text_of(said)) for title, said in lead(results).items()]
    return Page(f"Study {results.spec.name}", parts, [section for section in sections if section], BEHIND)


def _ranking_note(results: Results) -> str:
    candidates = results.candidates
    means = "," if len(results.spec.seeds) == 1 else f", the mean over {formatting.seeds(results.spec.seeds)},"
    value = "values" if results.spec.objective.several else "value"
    note = f"Ordered by the {value} in the search{means}".removesuffix(",") + "."
    if results.is_confirmed:
        note = f"Those on {formatting.fresh(results.spec)} come first, by their mean there. The others: o{note[1:]}"
    if results.spec.objective.several:
        note += f" Front by front, within one by search.choose: {results.spec.objective.choose.name}."
    if results.spec.search.constraints:
        note += f" Those that keep {', '.join(results.spec.search.constraints)} come before those that do not."
    rest = len(candidates) - report_tables.TOP
    return note + (f" {counted(rest, 'more trial')} not listed." if rest > 0 else "")


BETTER = {"max": "higher", "min": "lower"}


def _settings(results: Results) -> dict[str, str]:
    """Return the data's title, every key that a trial starts from, and how the search works."""
    spec, record = results.spec, results.record
    search = spec.search
    titles = record.sessions[-1].dataset if record.sessions else None
    settings = {} if titles is None else {"data": titles}
    classes = record.groups.classes
    settings |= {"positive class": classes[1]} if len(classes) == 2 else {}
    for section, values in spec.base.items():
        for key, value in values.items():
            dotted = f"{section}.{key}"
            settings[dotted] = formatting.setting(value)
    settings |= {key: _domain_text(spec, key) for key in search.space}
    goal = spec.objective
    aims = (f"{name}, {BETTER[mode]} is better" for name, mode in zip(goal.metrics, goal.modes, strict=True))
    metric = f"{epochs.words(goal)}: {'; '.join([*aims, *spec.search.constraints])}"
    if spec.final_seeds is not None:
        return settings | {"metric": metric}
    confirm = results.confirm
    settings["metric"] = metric
    settings["search"] = f"{counted(spec.trials, 'trial')}, sampler {search.sampler}, seed {search.seed}"
    if goal.several:
        settings["choice of the front"] = goal.rule
    if spec.margin_rule:
        settings["choice"] = spec.margin_rule
    if len(spec.seeds) > 1:
        settings["replicates"] = f"a configuration's value is its mean over {formatting.seeds(spec.seeds)}"
    settings["baseline"] = (
        ", ".join(f"{key} {parameter(value)}" for key, value in (search.baseline or {}).items()) or "none"
    )
    if search.references:
        settings["references"] = ", ".join(record.references) or "none was fitted"
    settings["early stopping"] = schedule(search.early_stopping, spec.epochs).words
    front = f", the front up to {confirm.front}" if goal.several and confirm.front else ""
    front += ", the best incumbent" if spec.has_searched_incumbents else ""
    on = counted(confirm.seeds, "fresh seed")
    if spec.folds:
        turns = {"each": "on all of them", "one": "on one in turn"}[spec.search.folds or "one"]
        settings["folds"] = f"{spec.folds}; a configuration of the search runs {turns}"
        on = f"every fold, {counted(confirm.seeds, 'time')} on a fresh seed each"
    settings["confirm"] = (f"top {confirm.top}{front} and the baseline on {on}" if confirm.top else "none") + (
        f"; {'' if confirm.top else 'only '}the picks of the selection rules" if confirm.rules else ""
    )
    return settings


def _domain_text(spec: StudySpec, key: str) -> str:
    domain = spec.search.space[key]
    condition = spec.space.condition(key) if spec.is_conditional else {}
    where = " and ".join(f"{other} is {' or '.join(map(parameter, values))}" for other, values in condition.items())
    where_clause = f", where {where}" if where else ""
    if domain.choices is not None:
        is_constant = len(domain.choices) == 1
        return f"{'always' if is_constant else 'searched: one of'} {parameter(domain.choices)}{where_clause}"
    scale = (", log" if domain.log else "") + (f", step {formatting.setting(domain.step)}" if domain.step else "")
    return f"searched: {ends(domain.low, domain.high)}{scale}{where_clause}"


def _provenance(results: Results) -> dict[str, str]:
    """Return where the numbers come from; where sessions differ, every different value in order."""
    facts: dict[str, list[str]] = {
        "study": [results.spec.name],
        "id": [results.record.id or formatting.MISSING],
        "settings' hash": [results.spec.hash],
        "state": [results.record.state],
        "readings of the test split": [str(results.record.test_readings)],
    }
    if used := devices(results.record):
        facts["device"] = [f"{in_words(device.facts)}: {counted(device.trials, 'trial')}" for device in used]
    for key, value in _flat({"origin": results.spec.origin or {}}):
        facts.setdefault(key, []).append(formatting.setting(value))
    for session in results.record.sessions:
        ordered = {"started": session.time, **{k: v for k, v in entry_of(session).items() if k not in LEFT_OUT}}
        for key, value in [*_flat(ordered), *data_sets(session.datasets or {})]:
            facts.setdefault(key, []).append(moment(value, UTC) if key == "started" else formatting.setting(value))
    return {key: "; ".join(dict.fromkeys(values)) for key, values in facts.items()}


def _flat(values: Mapping[str, object]) -> list[tuple[str, object]]:
    return [(key, value) for key, value in flat(values, " ").items() if value != {}]


LEFT_OUT = ("event", "time", "datasets", "groups")
"""Fields of a session that other rows or sections tell."""


def data_sets(datasets: Mapping[str, DatasetSummary]) -> Iterator[tuple[str, str]]:
    """Yield a row for each data set: its samples, the shape of one, its fingerprint, its files' origin."""
    for data in datasets.values():
        rows = ", ".join(f"{count} {split}" for split, count in data["rows"].items() if count)
        shape = " x ".join(map(str, data.get("shape", ())))
        parts = [f"{rows}; each {shape}"] if rows else []
        parts += [f"fingerprint {data['digest']}", *([f"from {', '.join(data['sources'])}"] if data["sources"] else [])]
        yield f"data set {data['title']}", "; ".join(parts)


def _pairs(values: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame({"key": list(values), "value": list(values.values())}, dtype=object)
