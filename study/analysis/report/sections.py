"""The report's sections, as a `study.analysis.report.page.ReportPage`."""

from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import UTC

import pandas as pd

from study.analysis.figures.missing import why_search_figures_missing
from study.analysis.figures.two_metrics import has_trade_off_line, reference_in_trade_off, trade_off_configurations
from study.analysis.report.caveats import caveat_statements
from study.analysis.report.groups_section import group_blocks, groups_section
from study.analysis.report.page import (
    Block,
    FigureBlock,
    PageSection,
    ReportPage,
    TableBlock,
    as_code,
)
from study.analysis.report.pareto_front_section import pareto_front_section
from study.analysis.report.reference_sentences import references_table
from study.analysis.report.result_sentences import lead_statements
from study.analysis.report.rules_section import rules_section
from study.analysis.statistics import formatting
from study.analysis.statistics.ablation_effects import (
    AblationEffect,
    EffectKind,
    ablation_effects,
    ablation_frame_from_rows,
    effect_rows,
)
from study.analysis.statistics.compare_studies import ComparedStudy, difference_text, printed_comparison
from study.analysis.tables import report_tables
from study.analysis.tables.metric_table import ablation_notes, printed_ablation
from study.data.dataset import DatasetSummary, fingerprint_without_fold
from study.home.events import event_to_entry
from study.home.provenance import device_text, used_devices
from study.metrics import find_metric, is_standard_error
from study.ranking import Results, epochs
from study.ranking.ablation_steps import Ablation, includes_choosing_seed, requested_ablation, trials_of_ablation
from study.ranking.difference import Arm, Difference, metrics_of_both_splits
from study.ranking.final_model import trials_of_model
from study.ranking.json_documents import Statement
from study.spec import StudySpec
from study.spec.rungs import RungSchedule
from study.spec.schema import ExportOrigin
from study.text import flatten_mapping, format_parameter, format_range_ends, format_time, pluralise, sentence_case

ABLATION_TITLE = "Ablation"


def ablation_section(results: Results) -> PageSection | None:
    """Return the ablation's table with what it means; None where nobody asked for it, or nothing of it has run."""
    ablation, by_metric = requested_ablation(results.record), ablation_effects(results)
    if ablation is None or results.spec.metric not in by_metric:
        return None
    frame = ablation_frame_from_rows(effect_rows(by_metric))
    found = ablation_result_sentences(results, ablation, by_metric[results.spec.metric])
    blocks: list[Block] = [" ".join(found), TableBlock(printed_ablation(frame))]
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
        f"From the baseline ({formatting.format_mean(name, ends[0])}) to {best} "
        f"({formatting.format_mean(name, ends[-1])}) {name} changes by {_effect_with_interval(name, gain)}, in "
        f"{pluralise(len(ablation.steps), 'step')} over {pluralise(gain.n_seed_pairs, 'seed')}."
    )
    if len(ablation.steps) == 1:
        yield f"Baseline and {best} differ in this one step, which is the whole gain."
        return
    yield from _clear_steps_text(name, effects, "path", "step by step")
    yield from _clear_steps_text(name, effects, "adding", "added to the baseline")
    yield from _clear_steps_text(name, effects, "removing", f"in {best}")
    if interacting := _effects_of_part(effects, "interaction", is_clear=True):
        amounts = (f"{effect.label} by {_effect_with_interval(name, effect)}" for effect in interacting)
        listed = formatting.join_with_and(amounts)
        yield f"What a step is worth depends on the others, beyond the spread over seeds: {listed}."
    elif any(effect.difference and effect.difference.interval for effect in effects if effect.kind == "interaction"):
        yield "No interaction is beyond the spread over seeds."


def _clear_steps_text(name: str, effects: Sequence[AblationEffect], part: EffectKind, words: str) -> Iterator[str]:
    """Yield which steps of a part are beyond the spread over seeds."""
    if clear := _effects_of_part(effects, part, is_clear=True):
        amounts = (f"{', '.join(effect.keys)} by {_effect_with_interval(name, effect)}" for effect in clear)
        yield f"Beyond the spread over seeds, {words}: {formatting.join_with_and(amounts)}."
    elif _effects_of_part(effects, part, is_clear=False):
        yield f"No step is beyond the spread over seeds, {words}."


def _effects_of_part(effects: Sequence[AblationEffect], part: EffectKind, is_clear: bool) -> list[AblationEffect]:
    of_part = (effect for effect in effects if effect.kind == part)
    return [effect for effect in of_part if effect.difference and effect.difference.is_clear is is_clear]


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
        order = as_code(f"study ablate {results.spec.name} --order A,B")
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
    if short := planned - sum(trial.state == "complete" for trial in trials_of_ablation(results, ablation)):
        yield f"{pluralise(short, 'trial')} of {planned} {'is' if short == 1 else 'are'} not complete."


FIGURE_CAPTIONS = {
    "front": "{left} mark is one configuration of the search{mean}. The ring is {chosen}.{fresh}{beaten}",
    "seeds": "{tick}{fitted}",
    "ablation": "Each bar is one step on the way from the baseline to what led the search, from the value before it "
    "to the value after it; the line is the interval of its end. The intervals hold together in 95% of cases.",
    "learning_curves": "Each line is one trial.{repeats}{of_folds}{rungs}",
    "trade_off": "{left} mark is one configuration of the search{joined}.{fresh}{of_folds}{undrawn}",
    "importance": "Shares of the metric's variance over the searched space, each value drawn with equal chance, from "
    "the search's complete trials that have the parameter; with early stopping, among what it let through. A "
    "parameter: what it explains alone. Interactions: what pairs explain beyond that. Remainder: noise between trials, "
    "and what is too jagged or takes three parameters. Lines are 95% intervals.",
}
"""Captions by figure; what depends on the study is in braces, see `figure_caption`."""


RINGS_TEXT = "Each ring is one {}. The tick is the mean, the line one sample standard deviation to each side."
ONE_VALUE_OF_FOLDS_TEXT = (
    "On validation the diamond is the value over the samples of all folds together, as in every table, and the line "
    "its standard error. On test each ring is one fold's model, on a seed of its own, the tick the mean, the line one "
    "sample standard deviation to each side."
)


def figure_caption(name: str, results: Results) -> str:
    """Return a figure's caption, with what its values are based on."""
    means = "" if len(results.spec.seeds) == 1 else f" (mean over its {len(results.spec.seeds)} seeds)"
    repeats = "" if results.spec.final_seeds is not None else " Trials that repeat one on another seed are left out."
    given = {
        "mean": means,
        "repeats": repeats,
        "of_folds": "",
        "rungs": _rungs_text(results.spec),
        "tick": RINGS_TEXT.format("seed"),
        "fitted": f" {_fit_count_text(results.spec)}." if results.reference_as_result else "",
    }
    if not results.reference_as_result and results.best_reference and results.spec.final_seeds is None:
        given["fitted"] = f" {sentence_case(results.best_reference.name_in_sentence)} has no seeds."
    if results.final_arm and results.final_arm.knows_no_seed:
        given["tick"] = "The ring is its value: it was fitted once."
    elif len(trials_of_model(results)) > 1:
        given["tick"] += " The diamond is the model, the ensemble of their networks."
    if results.spec.folds and results.spec.final_seeds is None:
        are_joined = any(arm.joined_folds for arm in results.fresh_seed_arms)
        given["tick"] = ONE_VALUE_OF_FOLDS_TEXT if are_joined else RINGS_TEXT.format("fold")
        if results.spec.search.folds != "each":
            given["of_folds"] = " Each trial is measured on one fold, so part of what sets them apart is the fold."
    if name == "trade_off":
        given |= _trade_off_caption_words(results)
    if name == "front":
        given |= _front_caption_words(results)
    return FIGURE_CAPTIONS[name].format(**given)


def _trade_off_caption_words(results: Results) -> dict[str, str]:
    """Return what the caption of the trade-off says of this one: of a second panel, and of the line in the first."""
    searched, fresh = trade_off_configurations(results)
    stays = None if reference_in_trade_off(results) else results.reference_as_result
    where = formatting.rerun_seeds_text(results.spec)
    return {
        "left": "First panel: each" if searched and fresh else "Each",
        "joined": "; the front joins those that no other beats in both" * has_trade_off_line(results),
        "fresh": f" Second: those that ran on {where}, mean ± sample standard deviation over these." * bool(fresh),
        "undrawn": f" The result, {stays.name_in_sentence}, needs no search and is not among them." if stays else "",
    }


def _front_caption_words(results: Results) -> dict[str, str]:
    """Return what the caption of the front says of this one."""
    fresh = any(score is candidate.confirmed_score for candidate, score in results.scored_candidates)
    right = f" The others: those that ran on {formatting.rerun_seeds_text(results.spec)}, mean ± sample standard "
    right += "deviation over these; what is grey is not on the front."
    chosen = "what leads the search" if results.reference_as_result else "what was chosen"
    chosen = f"{chosen} of the front: {results.spec.objective.front_choice_text}"
    if results.scored_candidates[0][1].total_violation > 0:
        chosen = "what misses the limits by least: there is no front"
    beaten = " The front is that of all metrics: in these two alone some of it may look beaten."
    return {
        "chosen": chosen,
        "left": "First panel: each" if fresh else "Each",
        "fresh": right * fresh,
        "beaten": beaten * (len(results.spec.objective.metrics) > 2),
    }


def _rungs_text(spec: StudySpec) -> str:
    """Return what the dotted lines among learning curves are; nothing where there are none."""
    if spec.final_seeds is not None or not RungSchedule(spec.search.early_stopping, spec.epochs).rung_epochs:
        return ""
    return " Dotted lines are the epochs at which trials are compared and the worse ones pruned."


def _metric_meanings(spec: StudySpec) -> Iterator[str]:
    """Yield what each of the study's metrics is, in words; nothing of a function's own."""
    for name in () if spec.training_function else spec.objective.metrics:
        if metric := find_metric(name):
            yield f"{name}: {metric.description}{' Smaller is better.' * (metric.better == 'min')}"


def summary_note(results: Results) -> str:
    """Return a sentence each on the spread, the seeds, and the interval where there is one."""
    spec = results.spec
    at_epoch = epochs.chosen_epoch_text(spec.objective)
    note = f"Mean ± sample standard deviation over the seeds in the last column, {at_epoch}."
    same = "" if spec.training_function else " All seeds use the same data and splits."
    if spec.final_seeds is not None:
        is_fitted_once = results.final_arm is not None and results.final_arm.knows_no_seed
        return "It was fitted once: no spread over seeds is known of it." if is_fitted_once else note + same
    if spec.folds:
        same = " Each seed validates on a fold of its own; all read the same test split."
    reference, best = results.baseline_and_result_arms
    if any(arm.joined_folds for arm in (reference, best) if arm):
        note += " On validation it is the value over the samples of all folds together, which has no deviation."
    if results.reference_as_result:
        note += f" {_fit_count_text(spec)}: no spread over seeds is known of it."
    elif best and (reference or best.n_candidates > 1):
        note += f" {_choosing_seeds_sentence(spec, best)}"
    if best and reference:
        gains = (best.difference_to(reference, name) for name in metrics_of_both_splits(spec, (best, reference)))
        with_interval = (gain for gain in gains if gain and gain.interval and not gain.has_zero_width)
        if told := [gain for gain in with_interval if not gain.is_unclear_for_few_seeds]:
            note += f" {_interval_method_note(told)}"
    return note + same


def _fit_count_text(spec: StudySpec) -> str:
    """Return how often a reference was fitted, as a sentence without its full stop."""
    return f"What needs no search was fitted once{' on each fold' if spec.folds else ''}"


def _choosing_seeds_sentence(spec: StudySpec, best: Arm) -> str:
    """Return a sentence on whether the trials by which the best was chosen are among those that are shown."""
    if best.trials[0].stage == "confirm":
        return "The seeds are fresh: the search, which chose these configurations, did not see them."
    seeds, them = ("this seed", "it") if len(spec.seeds) == 1 else ("these seeds", "them")
    return (
        f"The search saw {seeds} and chose by {them}: by the luck of that choice the best looks, on average, too good."
    )


def _interval_method_note(gains: Sequence[Difference]) -> str:
    """Return how the intervals of differences were made, by the first of them."""
    gain, method = gains[0], "The 95% interval of the difference is Welch's"
    if gain.is_over_samples:
        method = "The 95% interval of the difference is that of samples of all folds drawn anew, the same for both"
        if not all(other.is_over_samples for other in gains):
            method += "; where each fold's model has a value of its own, as on test, it is Student's t by seed"
    elif gain.is_paired:
        method = (
            "Difference and 95% interval are by seed, over the seeds that both have (Student's t of the differences)"
        )
    if gain.n_candidates == 1:
        return f"{method}."
    chosen = pluralise(gain.n_candidates, "configuration")
    return f"{method}, widened because the best was chosen among {chosen} by the same trials."


BESIDE_BASELINE_NOTE = (
    "Both were trained finally. Differences are by seed, over the seeds that both have, with their 95% interval."
)


FOLDED_TITLES = {"How sure": "how sure that is", "Search": "how the search went", "Cost": "what it cost"}
"""Parts of the lead that the page folds: the first screen says what came out, what accuracy it cost and what to do."""


def build_report_page(
    results: Results, pictures: Container[str], beside: Sequence[ComparedStudy] | None = None
) -> ReportPage:
    """Return the whole report.

    Args:
        pictures: names of the figures that could be drawn.
        beside: the final trainings of a study's baseline and of its best configuration.
    """
    figures = [FigureBlock(name, figure_caption(name, results)) for name in FIGURE_CAPTIONS if name in pictures]
    seeds = [figure for figure in figures if figure.name == "seeds"]
    pictured = next((figure for figure in figures if figure.name == "front"), None)
    others = [figure for figure in figures if figure.name not in ("seeds", "front")]
    first = report_tables.printed_first_table(results)
    summary = report_tables.printed_summary(results)
    summary = summary.loc[[not is_standard_error(metric) for metric in summary.get("metric", ())]]
    configurations = report_tables.printed_configurations(results)
    with_references = references_table(results, report_tables.first_table_metrics(results))
    beneath = report_tables.printed_other_epochs(results)
    tables = [table for table in (with_references, first, beneath) if table is first or len(table)]
    listed = "Configurations" if results.references_above_best else "Best configurations"
    notes = [*_metric_meanings(results.spec), summary_note(results), *group_blocks(results)]
    beneath_configurations = [*filter(None, (report_tables.broken_limits_note(results), _ranking_note(results)))]
    open_points = list(map(str, caveat_statements(results)))
    has_result = results.final_arm is not None or any(results.baseline_and_best_arms)
    sections = [
        pareto_front_section(results, pictured),
        PageSection("Summary", [*seeds, *map(TableBlock, tables)]) if has_result else None,
        groups_section(results),
        *(_best_and_baseline(beside) if beside is not None else ()),
        PageSection("What these numbers are", notes, folded=True) if has_result else None,
        PageSection(listed, [TableBlock(configurations), *beneath_configurations]) if len(configurations) > 1 else None,
        ablation_section(results),
        rules_section(results),
        PageSection("Figures", [*others, *why_search_figures_missing(results, pictures)]) if others else None,
        PageSection("Settings", [TableBlock(_key_value_table(_settings_values(results)))], folded=True),
        PageSection("What is not known", [open_points]) if open_points else None,
        PageSection("Provenance", [TableBlock(_key_value_table(_provenance_values(results)))]),
        PageSection("Every metric", [TableBlock(summary)], folded=True) if len(summary) > len(first) else None,
    ]
    parts = [(title, [*map(_with_code, said)]) for title, said in lead_statements(results).items()]
    if beside is not None and parts:
        parts[0][1].extend(_gain_sentence(beside))
    return ReportPage(f"Study {results.spec.name}", parts, [section for section in sections if section], FOLDED_TITLES)


def _with_code(statement: Statement) -> str:
    """Return a statement's text, with the command in it as code."""
    text, command = str(statement), getattr(statement, "command", None)
    return text.replace(command, as_code(command)) if command else text


def _gain_sentence(beside: Sequence[ComparedStudy]) -> list[str]:
    """Return in a sentence by how much the best is ahead of the baseline, in the first metric that both have."""
    baseline, best = (one.summary.name for one in beside)
    for metric, gap in beside[-1].against.items():
        return [f"{best} against {baseline}: {metric} {difference_text(gap, metric, '95% interval ')}."]
    return []


def _best_and_baseline(beside: Sequence[ComparedStudy]) -> tuple[PageSection, PageSection]:
    """Return the metrics of both final trainings, and, folded, the settings in which they differ."""
    table = printed_comparison(beside)
    is_setting = table.iloc[:, 0].isin({key for one in beside for key in one.settings})
    return (
        PageSection("Best and baseline", [TableBlock(table[~is_setting]), BESIDE_BASELINE_NOTE]),
        PageSection("Settings of best and baseline", [TableBlock(table[is_setting])], folded=True),
    )


def _ranking_note(results: Results) -> str:
    candidates = results.ranked_search
    seeds, several = results.spec.seeds, results.spec.objective.has_several_metrics
    means = "" if len(seeds) == 1 else f", the mean over {formatting.seeds_text(seeds)}"
    by_search = f"ordered by the value{'s' * several} in the search{means}"
    note = f"{by_search.capitalize()}."
    if results.is_confirmed:
        by = "value" if results.spec.folds else "mean"
        fresh = f"First come those that ran on {formatting.rerun_seeds_text(results.spec)}, ordered by their {by} there"
        note = f"{fresh}; then the others, {by_search}."
    if several:
        note += f" They stand front by front, and within a front by {results.spec.objective.metrics[0]}."
    if results.spec.search.constraints:
        note += f" Those that keep {', '.join(results.spec.search.constraints)} come before those that do not."
    rest = len(candidates) - report_tables.MAX_LISTED_CONFIGURATIONS
    note += f" {pluralise(rest, 'more trial')} not listed." if rest > 0 else ""
    return f"{note} Every trial is a row of trials.csv, which is beside this page."


BETTER_VALUE_WORDS = {"max": "higher", "min": "lower"}


def _settings_values(results: Results) -> dict[str, str]:
    """Return the data's title, every key that a trial starts from, and how the search works."""
    spec, record = results.spec, results.record
    search = spec.search
    titles = record.sessions[-1].dataset if record.sessions else None
    settings = {} if titles is None else {"data": titles}
    classes = record.group_sample_counts.classes
    settings |= {"positive class": classes[1]} if len(classes) == 2 else {}
    settings |= {key: formatting.format_setting(value) for key, value in spec.base_values_by_key.items()}
    labels = ((f"{section}.name", spec.exported_label(section)) for section in ("data", "model", "method"))
    settings |= {key: f"{label} ({settings[key]})" for key, label in labels if label}
    settings |= {key: _domain_text(spec, key) for key in search.space}
    goal = spec.objective
    directions = zip(goal.metrics, goal.directions, strict=True)
    aims = (f"{name}, {BETTER_VALUE_WORDS[mode]} is better" for name, mode in directions)
    metric = f"{epochs.chosen_epoch_text(goal)}: {'; '.join([*aims, *spec.search.constraints])}"
    if spec.final_seeds is not None:
        return settings | {"metric": metric}
    confirm = results.confirmation.settings
    settings["metric"] = metric
    settings["search"] = f"{pluralise(spec.n_configurations, 'trial')}, sampler {search.sampler}, seed {search.seed}"
    if goal.has_several_metrics:
        settings["choice of the front"] = goal.front_choice_text
    if spec.margin_rule:
        settings["choice"] = spec.margin_rule
    if len(spec.seeds) > 1:
        settings["replicates"] = f"a configuration's value is its mean over {formatting.seeds_text(spec.seeds)}"
    baseline = (f"{key} {format_parameter(value)}" for key, value in (search.baseline or {}).items())
    settings["baseline"] = ", ".join(baseline) or "none"
    if search.references:
        settings["references"] = ", ".join(record.reference_events) or "none was fitted"
    settings["early stopping"] = RungSchedule(search.early_stopping, spec.epochs).describe_in_words
    front = f", the front up to {confirm.front}" if goal.has_several_metrics and confirm.front else ""
    front += ", the best incumbent" if spec.has_searched_incumbents else ""
    on = pluralise(confirm.seeds, "fresh seed")
    if spec.folds:
        turns = {"each": "on all of them", "one": "on one in turn"}[spec.search.folds or "one"]
        settings["folds"] = f"{spec.folds}; a configuration of the search runs {turns}"
        on = f"every fold, {pluralise(confirm.seeds, 'time')} on a fresh seed each"
    settings["confirm"] = f"top {confirm.top}{front} and the baseline on {on}" if confirm.top else "none"
    if confirm.rules:
        settings["confirm"] += f"; {'' if confirm.top else 'only '}the picks of the selection rules"
    return settings


def _domain_text(spec: StudySpec, key: str) -> str:
    domain = spec.search.space[key]
    condition = spec.space.condition_of_key(key) if spec.is_conditional else {}
    terms = (f"{other} is {' or '.join(map(format_parameter, values))}" for other, values in condition.items())
    where_clause = f", where {' and '.join(terms)}" if condition else ""
    if domain.choices is not None:
        is_constant = len(domain.choices) == 1
        choices = ", ".join(spec.label_with_name(key, choice) for choice in domain.choices)
        return f"{'always' if is_constant else 'searched: one of'} {choices}{where_clause}"
    scale = ", log" if domain.log else ""
    scale += f", step {formatting.format_setting(domain.step)}" if domain.step else ""
    return f"searched: {format_range_ends(domain.low, domain.high)}{scale}{where_clause}"


def _provenance_values(results: Results) -> dict[str, str]:
    """Return where the numbers come from; where sessions differ, every different value in order."""
    facts: dict[str, list[str]] = {
        "study": [results.spec.name],
        "id": [results.record.id or formatting.MISSING_TEXT],
        "settings' hash": [results.spec.hash],
        "state": [results.record.state],
        "readings of the test split": [str(results.record.n_test_readings)],
    }
    if used := used_devices(results.record):
        facts["device"] = [f"{device_text(device.facts)}: {pluralise(device.trials, 'trial')}" for device in used]
    if origin := _origin_text(results.spec.origin or {}):
        facts["configuration"] = [origin]
    for session in results.record.sessions:
        shown = {key: value for key, value in event_to_entry(session).items() if key not in HIDDEN_SESSION_FIELDS}
        ordered = {"started": session.time, **shown}
        facts["settings' hash"].append(session.spec or results.spec.hash)
        if session.datasets:  # it names them, with their fingerprints
            ordered = {key: value for key, value in ordered.items() if key not in ("data", "dataset")}
        for key, value in [*_flat_pairs(ordered), *data_set_rows(session.datasets or {})]:
            text = format_time(value, UTC) if key == "started" else formatting.format_setting(value)
            facts.setdefault(key, []).append(text)
    return {key: "; ".join(dict.fromkeys(values)) for key, values in facts.items()}


def _flat_pairs(values: Mapping[str, object]) -> list[tuple[str, object]]:
    return [(key, value) for key, value in flatten_mapping(values, " ").items() if value != {}]


def _origin_text(origin: ExportOrigin) -> str:
    """Return which study a configuration is from, and what was changed since; `study.yaml` holds the rest.

    Empty where it is from none.
    """
    if "study" not in origin:
        return ""
    what = f"the reference {origin['reference']}" if "reference" in origin else f"trial {origin.get('trial')}"
    what = "the baseline" if origin.get("baseline") else what
    known = {"id": origin.get("study_id"), "settings' hash": origin.get("study_hash")}
    which = ", ".join(f"{name} {value}" for name, value in known.items() if value)
    changed = f"; changed since: {', '.join(origin['changed'])}" if origin.get("changed") else ""
    return f"{what} of the study {origin['study']}{f' ({which})' if which else ''}{changed}"


HIDDEN_SESSION_FIELDS = ("event", "time", "datasets", "groups", "spec")
"""Fields of a session that other rows or sections tell."""


def data_set_rows(datasets: Mapping[str, DatasetSummary]) -> Iterator[tuple[str, str]]:
    """Yield a row for each data set: its samples, the shape of one, its fingerprint, its files' origin."""
    for data in datasets.values():
        rows = ", ".join(f"{count} {split}" for split, count in data["rows"].items() if count)
        shape = " x ".join(map(str, data.get("shape", ())))
        fingerprint = fingerprint_without_fold(data["digest"])
        of_fold = " where the first fold is val" if fingerprint != data["digest"] and data["rows"].get("val") else ""
        parts = [f"{rows}{of_fold}; {shape} numbers each"] if rows else []
        parts += [f"fingerprint {fingerprint}", *([f"from {', '.join(data['sources'])}"] if data["sources"] else [])]
        yield f"data set {data['title']}", "; ".join(parts)


def _key_value_table(values: Mapping[str, str]) -> pd.DataFrame:
    return pd.DataFrame({"key": list(values), "value": list(values.values())}, dtype=object)
