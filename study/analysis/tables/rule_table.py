"""The table of what each selection rule would have picked, as text."""

import pandas as pd

from study.analysis.statistics import formatting
from study.analysis.statistics.frame import param_keys, shown
from study.analysis.statistics.rule_picks import PickResult, RulePicks
from study.spec import StudySpec


def printed_picks(spec: StudySpec, table: RulePicks) -> pd.DataFrame:
    """One row per rule; what is known on fresh seeds only where any pick ran on them."""
    is_fresh = any(result.trials for result in table.results)
    is_ordered = any(result.agreement.tau is not None for result in table.results)
    keys = param_keys(spec, [result.pick.candidate.trial for result in table.results])
    rows = []
    for result in table.results:
        row = _in_search(result)
        if is_fresh:
            row |= _on_fresh_seeds(table, result)
        if is_ordered:
            row["tau"] = _tau(result)
        trial = result.pick.candidate.trial
        rows.append(row | {key: shown(spec, trial, key) for key in keys})
    return pd.DataFrame(rows, dtype=object)


def _in_search(result: PickResult) -> dict[str, str]:
    pick = result.pick
    name = f"{pick.number} (baseline)" if pick.candidate.trial.stage == "baseline" else str(pick.number)
    missed = f", misses its limit by {pick.score.violation:.3f}" if pick.score.violation else ""
    return {
        "rule": f"{pick.rule.name} (this study's)" if pick.rule.is_own else pick.rule.name,
        "needs": pick.rule.needs or formatting.MISSING,
        "pick": f"{name}, first of {pick.ties} that tie" if pick.ties > 1 else name,
        "in the search": formatting.value(pick.rule.goal.metrics[0], pick.score.values[0]) + missed,
        "rank": str(pick.rank),
    }


def _on_fresh_seeds(table: RulePicks, result: PickResult) -> dict[str, str]:
    seeds = f" ({result.test.count} seeds)" if result.test and result.test.count > 1 else ""
    regret = (
        formatting.MISSING if result.regret is None else formatting.change(table.judge, result.regret, signed=False)
    )
    return {
        "on fresh seeds": formatting.mean(result.pick.rule.goal.metrics[0], result.val),
        table.judge: formatting.mean(table.judge, result.test) + seeds,
        "regret": regret,
    }


def _tau(result: PickResult) -> str:
    agreed = result.agreement
    if agreed.tau is None or agreed.interval is None:
        return formatting.MISSING
    return f"{agreed.tau:.2f} ({agreed.interval[0]:.2f} to {agreed.interval[1]:.2f}; n {agreed.n})"
