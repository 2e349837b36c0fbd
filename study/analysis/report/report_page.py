"""The report's sections, as a `study.analysis.report.page_formats.ReportPage`."""

from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import UTC

import pandas as pd

from study.analysis.figures.missing_figures import why_search_figures_missing
from study.analysis.report.ablation_section import ablation_section
from study.analysis.report.caveats import caveat_statements
from study.analysis.report.figure_captions import FIGURE_CAPTIONS, figure_caption, reference_fit_count_text
from study.analysis.report.groups_section import group_blocks_below_summary, groups_section
from study.analysis.report.page_formats import FigureBlock, PageSection, ReportPage, TableBlock, command_as_code
from study.analysis.report.pareto_front_section import pareto_front_section
from study.analysis.report.reference_sentences import references_table
from study.analysis.report.report_lead import report_lead_statements
from study.analysis.report.selection_rules_section import selection_rules_section
from study.analysis.statistics import formatting
from study.analysis.statistics.compare_studies import ComparedStudy, comparison_table, difference_or_dash_text
from study.analysis.tables import report_tables
from study.data.dataset import DatasetSummary, fingerprint_without_fold
from study.home.events import event_to_entry
from study.home.provenance import device_text, used_devices
from study.metrics import find_metric, is_standard_error
from study.ranking import Results
from study.ranking.arms import Arm, metrics_of_both_splits
from study.ranking.chosen_epoch import chosen_epoch_text
from study.ranking.difference import Difference
from study.ranking.json_documents import Statement
from study.spec import StudySpec
from study.spec.rungs import RungSchedule
from study.spec.schema import ExportOrigin
from study.text import flatten_mapping, format_parameter, format_range_ends, format_time, pluralise


def _metric_meanings(spec: StudySpec) -> Iterator[str]:
    """Yield what each of the study's metrics is, in words; nothing of a function's own."""
    for name in () if spec.training_function else spec.objective.metrics:
        if metric := find_metric(name):
            yield f"{name}: {metric.description}{' Smaller is better.' * (metric.better == 'min')}"


def summary_table_note(results: Results) -> str:
    """Return a sentence each on the spread, the seeds, and the interval where there is one."""
    spec = results.spec
    at_epoch = chosen_epoch_text(spec.objective)
    note = f"Mean ± sample standard deviation over the seeds in the last column, {at_epoch}."
    same = "" if spec.training_function else " All seeds use the same data and splits."
    if spec.final_seeds is not None:
        is_fitted_once = results.final_training_arm is not None and results.final_training_arm.is_fitted_without_seed
        return "It was fitted once: no spread over seeds is known of it." if is_fitted_once else note + same
    if spec.folds:
        same = " Each seed validates on a fold of its own; all read the same test split."
    baseline, best = results.baseline_and_result_arms
    if any(arm.joined_folds for arm in (baseline, best) if arm):
        note += " On validation it is the value over the samples of all folds together, which has no deviation."
    if results.reference_as_result:
        note += f" {reference_fit_count_text(spec)}: no spread over seeds is known of it."
    elif best and (baseline or best.n_candidates > 1):
        note += f" {_choosing_seeds_sentence(spec, best)}"
    if best and baseline:
        gains = (best.difference_to(baseline, name) for name in metrics_of_both_splits(spec, (best, baseline)))
        with_interval = (gain for gain in gains if gain and gain.interval and not gain.has_zero_width)
        if told := [gain for gain in with_interval if not gain.is_unclear_for_few_seeds]:
            note += f" {_interval_method_note(told)}"
    return note + same


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


FINAL_TRAININGS_DIFFERENCE_NOTE = (
    "Both were trained finally. Differences are by seed, over the seeds that both have, with their 95% interval."
)


FOLDED_PARTS = {"How sure": "how sure that is", "Search": "how the search went", "Cost": "what it cost"}
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
    first = report_tables.summary_table(results)
    summary = report_tables.baseline_and_result_table(results)
    summary = summary.loc[[not is_standard_error(metric) for metric in summary.get("metric", ())]]
    configurations = report_tables.best_configurations_table(results)
    with_references = references_table(results, report_tables.summary_table_metrics(results))
    beneath = report_tables.other_epochs_table(results)
    tables = [table for table in (with_references, first, beneath) if table is first or len(table)]
    listed = "Configurations" if results.references_above_best else "Best configurations"
    notes = [*_metric_meanings(results.spec), summary_table_note(results), *group_blocks_below_summary(results)]
    beneath_configurations = [*filter(None, (report_tables.broken_constraints_note(results), _ranking_note(results)))]
    open_points = list(map(str, caveat_statements(results)))
    has_result = results.final_training_arm is not None or any(results.baseline_and_best_arms)
    sections = [
        pareto_front_section(results, pictured),
        PageSection("Summary", [*seeds, *map(TableBlock, tables)]) if has_result else None,
        groups_section(results),
        *(_final_trainings_sections(beside) if beside is not None else ()),
        PageSection("What these numbers are", notes, folded=True) if has_result else None,
        PageSection(listed, [TableBlock(configurations), *beneath_configurations]) if len(configurations) > 1 else None,
        ablation_section(results),
        selection_rules_section(results),
        PageSection("Figures", [*others, *why_search_figures_missing(results, pictures)]) if others else None,
        PageSection("Settings", [TableBlock(_key_value_table(_settings_values(results)))], folded=True),
        PageSection("What is not known", [open_points]) if open_points else None,
        PageSection("Provenance", [TableBlock(_key_value_table(_provenance_values(results)))]),
        PageSection("Every metric", [TableBlock(summary)], folded=True) if len(summary) > len(first) else None,
    ]
    parts = [(title, [*map(_statement_with_code, said)]) for title, said in report_lead_statements(results).items()]
    if beside is not None and parts:
        parts[0][1].extend(_final_training_gain_sentence(beside))
    return ReportPage(f"Study {results.spec.name}", parts, [section for section in sections if section], FOLDED_PARTS)


def _statement_with_code(statement: Statement) -> str:
    """Return a statement's text, with the command in it as code."""
    text, command = str(statement), getattr(statement, "command", None)
    return text.replace(command, command_as_code(command)) if command else text


def _final_training_gain_sentence(beside: Sequence[ComparedStudy]) -> list[str]:
    """Return in a sentence by how much the best is ahead of the baseline, in the first metric that both have."""
    baseline, best = (one.summary.name for one in beside)
    for metric, gap in beside[-1].against.items():
        return [f"{best} against {baseline}: {metric} {difference_or_dash_text(gap, metric, '95% interval ')}."]
    return []


def _final_trainings_sections(beside: Sequence[ComparedStudy]) -> tuple[PageSection, PageSection]:
    """Return the metrics of both final trainings, and, folded, the settings in which they differ."""
    table = comparison_table(beside)
    is_setting = table.iloc[:, 0].isin({key for one in beside for key in one.settings})
    return (
        PageSection("Best and baseline", [TableBlock(table[~is_setting]), FINAL_TRAININGS_DIFFERENCE_NOTE]),
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
        fresh = f"First come those that ran on {formatting.fresh_seeds_text(results.spec)}, ordered by their {by} there"
        note = f"{fresh}; then the others, {by_search}{'; last the baseline' * bool(results.baseline)}."
    if several:
        note += f" They stand front by front, and within a front by {results.spec.objective.metrics[0]}."
    if results.spec.search.constraints:
        note += f" Those that keep {', '.join(results.spec.search.constraints)} come before those that do not."
    rest = len(candidates) - report_tables.MAX_LISTED_CONFIGURATIONS
    note += f" {pluralise(rest, 'more trial')} not listed." if rest > 0 else ""
    return f"{note} Every trial is a row of trials.csv, which is beside this page."


BETTER_WORD_BY_DIRECTION = {"max": "higher", "min": "lower"}


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
    settings |= {key: _search_range_text(spec, key) for key in search.space}
    goal = spec.objective
    directions = zip(goal.metrics, goal.directions, strict=True)
    aims = (f"{name}, {BETTER_WORD_BY_DIRECTION[mode]} is better" for name, mode in directions)
    metric = f"{chosen_epoch_text(goal)}: {'; '.join([*aims, *spec.search.constraints])}"
    if spec.final_seeds is not None:
        return settings | {"metric": metric}
    confirm = results.confirmation.settings
    settings["metric"] = metric
    settings["search"] = f"{pluralise(spec.n_configurations, 'trial')}, sampler {search.sampler}, seed {search.seed}"
    if goal.has_several_metrics:
        settings["choice of the front"] = goal.front_choice_text
    if spec.margin_rule_text:
        settings["choice"] = spec.margin_rule_text
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


def _search_range_text(spec: StudySpec, key: str) -> str:
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
    if origin := _source_study_text(results.spec.origin or {}):
        facts["configuration"] = [origin]
    for session in results.record.sessions:
        shown = {key: value for key, value in event_to_entry(session).items() if key not in HIDDEN_SESSION_FIELDS}
        ordered = {"started": session.time, **shown}
        facts["settings' hash"].append(session.spec or results.spec.hash)
        if session.datasets:  # it names them, with their fingerprints
            ordered = {key: value for key, value in ordered.items() if key not in ("data", "dataset")}
        flat = {key: value for key, value in flatten_mapping(ordered, " ").items() if value != {}}
        for key, value in [*flat.items(), *data_set_rows(session.datasets or {})]:
            text = format_time(value, UTC) if key == "started" else formatting.format_setting(value)
            facts.setdefault(key, []).append(text)
    return {key: "; ".join(dict.fromkeys(values)) for key, values in facts.items()}


def _source_study_text(origin: ExportOrigin) -> str:
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
