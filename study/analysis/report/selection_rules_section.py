"""The report's section on what each selection rule would have picked, and what the choice of a rule costs."""

from collections.abc import Iterator

import pandas as pd

from study.analysis.report.page_formats import PageSection, TableBlock, command_as_code
from study.analysis.statistics import formatting
from study.analysis.statistics.rule_pick_results import RulePickResult, RulePickResults, judge_rule_picks
from study.analysis.statistics.trials_frame import trial_label
from study.ranking import Results
from study.spec import StudySpec
from study.text import pluralise


def rule_picks_table(spec: StudySpec, table: RulePickResults) -> pd.DataFrame:
    """Return a row of text per rule; the columns of fresh seeds only where any pick ran on them."""
    is_fresh = any(result.trials for result in table.results)
    rows = []
    for result in table.results:
        row = _pick_search_columns(spec, result, table.chosen_trial)
        if is_fresh:
            row |= _pick_fresh_seed_columns(spec, table, result)
        rows.append(row)
    return pd.DataFrame(rows, dtype=object)


def _pick_search_columns(spec: StudySpec, result: RulePickResult, chosen: int | None) -> dict[str, str]:
    """Return a pick in the search; of the study's own rule also its choice by fresh seeds, if that is another."""
    pick = result.pick
    name = trial_label(pick.candidate.trial)
    fresh = ""
    if pick.rule.is_study_objective and chosen not in (None, pick.trial_number):
        fresh = f"; on {formatting.fresh_seeds_text(spec)} {chosen}"
    missed = f", misses its limit by {pick.score.total_violation:.3f}" if pick.score.total_violation else ""
    return {
        "rule": f"{pick.rule.name} (this study's)" if pick.rule.is_study_objective else pick.rule.name,
        "needs": pick.rule.required_labels or formatting.MISSING_TEXT,
        "pick": (f"{name}, first of {pick.n_tied} that tie" if pick.n_tied > 1 else name) + fresh,
        "in the search": formatting.format_metric_value(pick.rule.objective.metrics[0], pick.score.values[0]) + missed,
        "rank": str(pick.rank),
    }


def _pick_fresh_seed_columns(spec: StudySpec, table: RulePickResults, result: RulePickResult) -> dict[str, str]:
    metric, on_test = result.pick.rule.objective.metrics[0], result.test_statistics
    seeds = f" ({on_test.count} seeds)" if on_test and on_test.count > 1 else ""
    regret = formatting.MISSING_TEXT
    if result.regret_on_test is not None:
        regret = formatting.format_difference(table.judging_metric, result.regret_on_test, signed=False)
    return {
        f"on {formatting.fresh_seeds_text(spec)}": formatting.format_mean_and_deviation(metric, result.val_statistics),
        table.judging_metric: formatting.format_mean_and_deviation(table.judging_metric, on_test) + seeds,
        "regret": regret,
    }


SELECTION_RULES_TITLE = "What each rule would have picked"


def selection_rules_section(results: Results) -> PageSection | None:
    """Return the table of the rules' picks with notes; None with fewer than two configurations or rules."""
    if results.spec.final_seeds is not None or len(results.ranked_all) < 2:
        return None
    table = judge_rule_picks(results)
    if len(table.results) < 2:
        return None
    told = (
        rule_regret_sentences(results.spec, table),
        _own_rule_sentences(results),
        _test_reading_sentences(results, table),
    )
    notes = filter(None, map(" ".join, told))
    return PageSection(SELECTION_RULES_TITLE, [TableBlock(rule_picks_table(results.spec, table)), *notes], folded=True)


def rule_regret_sentences(spec: StudySpec, table: RulePickResults) -> Iterator[str]:
    """Yield what the choice of a rule costs on the test split; which of two picks is better the summary alone says."""
    numbers = {result.pick.trial_number for result in table.results}
    if len(numbers) == 1:
        yield f"Every rule picks trial {numbers.pop()} by the values of the search."
        return
    tests, judge = table.test_metrics, table.judging_metric
    if len(tests) < 2:
        return
    regrets = {one.pick.trial_number: one.regret_on_test for one in table.results if one.regret_on_test is not None}
    order = sorted(regrets, key=lambda number: (regrets[number], number))
    counts = sorted({test.count for test in tests.values()})
    what = "fresh seed" if spec.folds is None else "run"
    seeds = pluralise(counts[-1], what) if len(counts) == 1 else f"{counts[0]} to {counts[-1]} {what}s"
    seeds += "" if spec.folds is None else f" on {formatting.fresh_seeds_text(spec)}"
    amount = formatting.format_difference(judge, abs(tests[order[0]].mean - tests[order[-1]].mean), signed=False)
    ends = " and ".join(
        f"{formatting.format_mean_and_deviation(judge, tests[number])} (trial {number})"
        for number in (order[0], order[-1])
    )
    which = "" if len(tests) == len(numbers) else f" whose test is known, {len(tests)} of {len(numbers)},"
    yield f"The rules' picks{which} differ by {amount} on {judge} over {seeds}, between {ends}."
    judged = (result for result in table.results if result.regret_on_test is not None)
    own = next((result for result in judged if result.pick.rule.is_study_objective), None)
    if own and own.regret_on_test == 0:
        yield f"This study's own rule picks the best of them, trial {own.pick.trial_number}."
    elif own and own.regret_on_test is not None:
        behind = formatting.format_difference(judge, own.regret_on_test, signed=False)
        picked = f"The pick of this study's own rule, trial {own.pick.trial_number},"
        yield f"{picked} is {behind} behind the best in {judge}."


def _own_rule_sentences(results: Results) -> Iterator[str]:
    """Yield by which rule the study chose, and that the others change nothing."""
    best, spec = results.best, results.spec
    assert best is not None  # there are configurations
    is_confirmed = best.confirm_statistics and results.is_confirmed
    by = f", by its {'value' if spec.folds else 'mean'} on {formatting.fresh_seeds_text(spec)}"
    confirmed = by if is_confirmed else ""
    metrics = ", ".join([*spec.objective.metrics, *spec.search.constraints])
    metrics += f", of the front {spec.objective.front_choice_text}" if spec.objective.has_several_metrics else ""
    metrics += f", {spec.margin_rule_text}" if spec.margin_rule_text else ""
    trial = f"trial {best.trial.number}{confirmed}"
    chosen = f"{results.reference_as_result.name_in_sentence}, before {trial}" if results.reference_as_result else trial
    yield f"This study chose by {metrics}: {chosen}. What other rules pick changes nothing."
    others = "Each other rule" if spec.objective.has_several_metrics else "Each rule"
    yield f"{others} picks by the values of the search; rank is the pick's place by this study's own ranking."
    if spec.objective.epoch_window is not None:
        yield "A rule's values are at its own best epochs, test at those that this study's rule chose."


def _test_reading_sentences(results: Results, table: RulePickResults) -> Iterator[str]:
    """Yield how the test split was read for this."""
    plan, fresh = results.confirmation.settings, formatting.fresh_seeds_text(results.spec)
    if not plan.rules:
        yield (
            "Test is read only for what this study chose, the best of its search, its baseline and models that need no "
            "search, so what other picks reach is not known. "
            f"{command_as_code(f'study confirm {results.spec.name} --rules')} runs each of them on {fresh} and reads "
            "test for it."
        )
        return
    if not isinstance(plan.rules, bool):
        yield f"On {fresh} ran only what these rules picked: {formatting.join_with_and(plan.rules)}."
    yield (
        f"{table.judging_metric} is the mean ± sample standard deviation over {fresh}, regret how far a "
        "pick is behind the best of them and of this study's choice."
    )
