"""What the picks of the selection rules are worth on fresh seeds, and how well each rule agrees with the test split."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from study import ranking
from study.analysis.statistics.difference import CONFIDENCE
from study.analysis.statistics.frame import metric, param, param_keys
from study.home.record import StudyRecord, TrialRecord
from study.metrics import Direction
from study.ranking import Spread, epochs, spread
from study.ranking.picks import Pick, fresh_trials, picks, scores
from study.spec import StudySpec, objective
from study.spec.objective import Score

# How alike two orders of the same configurations are: Kendall's tau-b, with an interval that holds for few of them.
#
# The interval is normal in Fisher's z. Its variance is the larger of two: 0.437 / (n - 4) of Bonett and Wright, "Sample
# size requirements for estimating Pearson, Kendall and Spearman correlations" (2000), which is too small near 1, and
# the one estimated from the pairs of each configuration by Cliff and Charlin, "Variances and covariances of Kendall's
# tau and their estimation" (1991), which is too small for few. It takes Student's t, and a tau of 1 counts as a pair
# less. In simulations of 5 to 25 pairs of normal numbers with a tau of 0 to 0.91, it held the truth in 94% to 100% of
# the cases; a percentile bootstrap in 39% to 99%.

LEAST = 5
"""Configurations that a tau needs: of four, the same order or its reverse comes by chance in one of twelve cases."""


@dataclass(frozen=True)
class Agreement:
    """The tau-b of `n` configurations and its interval, None where there are fewer than `LEAST` or all tie."""

    n: int
    tau: float | None = None
    interval: tuple[float, float] | None = None


def agreement(order: Sequence[float], other: Sequence[float]) -> Agreement:
    """Kendall's tau-b of two orders of the same configurations, with its 95% interval."""
    n, first, second = len(order), np.asarray(order, float), np.asarray(other, float)
    if n < LEAST or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Agreement(n)
    signs = [(np.sign(first - one), np.sign(second - two)) for one, two in zip(first, second, strict=True)]
    rows = np.array([left @ right for left, right in signs])
    untied = [sum(float(np.abs(side).sum()) for side in sides) for sides in zip(*signs, strict=True)]
    scale = n * (n - 1) / math.sqrt(untied[0] * untied[1])  # 1 without ties
    means = scale * rows / (n - 1)
    tau = float(means.mean())
    both = sum(float(np.abs(left * right).sum()) for left, right in signs) / (n * (n - 1))
    of_pairs = max(0.0, scale**2 * both - tau**2)
    variance = (4 * (n - 2) * float(means.var(ddof=1)) + 2 * of_pairs) / (n * (n - 1))
    most = 1 - 2 / math.comb(n, 2)
    inner = min(max(tau, -most), most)
    deviation = math.sqrt(max(0.437 / (n - 4), variance / (1 - inner**2) ** 2))
    reach = float(stdtrit(n - 2, (1 + CONFIDENCE) / 2)) * deviation
    low, high = (math.tanh(math.atanh(inner) + sign * reach) for sign in (-1, 1))
    return Agreement(n, tau, (min(tau, low), max(tau, high)))


@dataclass(frozen=True)
class PickResult:
    """A pick on fresh seeds.

    Attributes:
        trials: its complete trials on fresh seeds, one per seed.
        val: of the rule's metric over them.
        test: of `RulePicks.judge` over those for which the test split was read.
        regret: by how much the best pick's mean is better, 0 for the best; None without `test`.
        agreement: of the rule with the test split, over configurations.
    """

    pick: Pick
    trials: Sequence[TrialRecord]
    val: Spread | None
    test: Spread | None
    regret: float | None
    agreement: Agreement


@dataclass(frozen=True)
class RulePicks:
    """The picks of a study's rules.

    Attributes:
        judge: the test metric that compares them: that of the study, or accuracy where the test split lacks it.
        by_seed: whether the agreement is over the confirmed configurations, by their fresh seeds; else over all, by the
            test metrics of the search's own trials (`train.report_test`).
        better: which direction of `judge` is.
    """

    judge: str
    results: Sequence[PickResult]
    by_seed: bool
    better: Direction = "max"

    @property
    def tests(self) -> Mapping[int, Spread]:
        """The test metric of each pick that has one, by the number of its trial."""
        return {result.pick.number: result.test for result in self.results if result.test}

    def turned(self, value: float) -> float:
        """A test value turned so that larger is better."""
        return -value if self.better == "min" else value


def rule_picks(spec: StudySpec, record: StudyRecord) -> RulePicks:
    """Return what every rule picks, and what is known of it on fresh seeds."""
    ranked = ranking.comparable(record, spec)
    fresh = {candidate.trial.number: fresh_trials(record, candidate.trial.number) for candidate in ranked}
    judge = _judge(spec, [trial for trials in fresh.values() for trial in trials])
    tests = {number: spread(metric(spec, trial, judge) for trial in trials) for number, trials in fresh.items()}
    all_picks = picks(record, spec)
    in_search = {c.trial.number: spread(metric(spec, trial, judge) for trial in c.replicates) for c in ranked}
    by_seed = not all(in_search.values())
    known = {number: test.mean for number, test in (tests if by_seed else in_search).items() if test}
    better = spec.direction(judge) or "max"
    table = RulePicks(judge, [], by_seed, better)
    gains = {number: table.turned(value) for number, value in known.items()}
    best = max((table.turned(test.mean) for pick in all_picks if (test := tests[pick.number])), default=math.nan)
    results = []
    for pick in all_picks:
        test, trials = tests[pick.number], fresh[pick.number]
        scored = {c.trial.number: score for c, score in scores(pick.rule.goal, ranked)}
        both = [number for number in scored if number in gains]
        results.append(
            PickResult(
                pick,
                trials,
                spread(epochs.value(pick.rule.goal, trial, pick.rule.goal.metrics[0]) for trial in trials),
                test,
                best - table.turned(test.mean) if test else None,
                agreement(_standing([scored[number] for number in both]), [gains[number] for number in both]),
            )
        )
    return RulePicks(judge, results, by_seed, better)


def picks_frame(spec: StudySpec, record: StudyRecord) -> pd.DataFrame:
    """Return what each selection rule would have picked, one row per rule, those that need least first.

    Returns:
        Indexed by rule: `needs`, `own` (whether the study searched by it), `trial` (the pick), `value` in the search,
        `violation` (by how much it misses the rule's limit), `ties` (configurations that share the top), `among`,
        `rank` (by the study's own ranking). On fresh seeds, missing where there are none: `val mean`, `val sd`, `val n`
        of the rule's metric; `test mean`, `test sd`, `test n` and `regret` of the test metric `judge`; `tau`,
        `tau low`, `tau high`, `tau n`: Kendall's tau-b of the rule with it. Then the pick's parameters. Empty where
        there is nothing to pick from: nothing is complete, or it is a final training.
    """
    rows = document(spec, rule_picks(spec, record))
    return pd.DataFrame(rows, columns=None if rows else ["rule"]).set_index("rule")


def document(spec: StudySpec, table: RulePicks) -> list[dict[str, Any]]:
    """`picks_frame` as plain values for JSON: a dictionary per rule, None where a value is missing."""
    keys = list(
        dict.fromkeys(key for result in table.results for key in param_keys(spec, [result.pick.candidate.trial]))
    )
    return [{"rule": result.pick.rule.name, **_row(spec, table.judge, result, keys)} for result in table.results]


def _row(spec: StudySpec, judge: str, result: PickResult, keys: Sequence[str]) -> dict[str, object]:
    pick, agreed = result.pick, result.agreement
    low, high = agreed.interval or (None, None)
    return {
        "needs": pick.rule.needs,
        "own": pick.rule.is_own,
        "trial": pick.number,
        "value": pick.score.values[0],
        "violation": pick.score.violation,
        **{"ties": pick.ties, "among": pick.among, "rank": pick.rank},
        **_spread("val", result.val),
        "judge": judge,
        **_spread("test", result.test),
        **{"regret": result.regret, "tau": agreed.tau, "tau low": low, "tau high": high, "tau n": agreed.n},
        **{key: param(spec, pick.candidate.trial, key) for key in keys},
    }


def _spread(name: str, values: Spread | None) -> dict[str, float | int | None]:
    mean, deviation, count = (values.mean, values.deviation, values.count) if values else (None, None, 0)
    return {f"{name} mean": mean, f"{name} sd": deviation, f"{name} n": count}


def _judge(spec: StudySpec, trials: Sequence[TrialRecord]) -> str:
    tested = [trial.tested for trial in trials if trial.tested]
    return spec.test_metric if not tested or any(spec.test_metric in one for one in tested) else "test/accuracy"


def _standing(values: Sequence[Score]) -> list[float]:
    """The place of each score in their order, the larger the better; equal ones share theirs."""
    standing = [0.0] * len(values)
    before: Score | None = None
    place = 0.0
    for at in objective.order(values):
        score = values[at]
        place -= before is None or (score.gains, score.violation) != (before.gains, before.violation)
        standing[at], before = place, score
    return standing
