"""The worth of the selection rules' picks on fresh seeds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from study.analysis.statistics.trials_frame import param_key_columns, trial_metric, trial_param_value
from study.home.record import TrialRecord
from study.ranking import Results, SeedStatistics, seed_statistics
from study.ranking.chosen_epoch import metric_at_chosen_epoch
from study.ranking.rule_picks import RulePick, fresh_seed_trials
from study.ranking.trial_statistics import statistics_of_single_evaluation
from study.spec import StudySpec


@dataclass(frozen=True)
class RulePickResult:
    """A pick on fresh seeds.

    Attributes:
        trials: its complete trials on fresh seeds, one per seed.
        val_statistics: of the rule's metric over them.
        test_statistics: of `RulePickResults.judging_metric` over those for which the test split was read.
        regret_on_test: by how much the best mean of the picks and of the study's own choice is better, 0 for the best;
            None without `test_statistics`.
    """

    pick: RulePick
    trials: Sequence[TrialRecord]
    val_statistics: SeedStatistics | None
    test_statistics: SeedStatistics | None
    regret_on_test: float | None


@dataclass(frozen=True)
class RulePickResults:
    """The picks of a study's rules.

    Attributes:
        judging_metric: the test metric that compares them: that of the study, or accuracy where the test split lacks
            it.
        chosen_trial: the trial that the study itself chose, on fresh seeds where there are some.
    """

    judging_metric: str
    results: Sequence[RulePickResult]
    chosen_trial: int | None

    @property
    def test_metrics(self) -> Mapping[int, SeedStatistics]:
        """The test metric of each pick that has one, by the number of its trial."""
        return {result.pick.trial_number: result.test_statistics for result in self.results if result.test_statistics}


def judge_rule_picks(results: Results) -> RulePickResults:
    """Return what every rule picks, and what is known of it on fresh seeds."""
    ranked = results.ranked_all
    fresh = {candidate.trial.number: fresh_seed_trials(results.record, candidate.trial.number) for candidate in ranked}
    judge = _judging_metric(results.spec, [trial for trials in fresh.values() for trial in trials])
    tests = {
        number: seed_statistics(trial_metric(results.spec, trial, judge) for trial in trials)
        for number, trials in fresh.items()
    }
    sign = -1 if results.spec.direction(judge) == "min" else 1
    compared = [pick.trial_number for pick in results.rule_picks] + [candidate.trial.number for candidate in ranked[:1]]
    means = (test.mean for number in compared if (test := tests[number]))
    best = max((sign * mean for mean in means), default=math.nan)
    judged = []
    for pick in results.rule_picks:
        test, trials = tests[pick.trial_number], fresh[pick.trial_number]
        validated = _val_statistics_on_fresh_seeds(results, pick, trials)
        judged.append(RulePickResult(pick, trials, validated, test, best - sign * test.mean if test else None))
    return RulePickResults(judge, judged, ranked[0].trial.number if ranked else None)


def _val_statistics_on_fresh_seeds(
    results: Results, pick: RulePick, trials: Sequence[TrialRecord]
) -> SeedStatistics | None:
    """Return the rule's metric over trials on fresh seeds, at the rule's own epochs.

    Where these ran on all folds and the rule has no epochs of its own, it is that of the samples of all folds together,
    as everywhere on the page.
    """
    goal, joined = pick.rule.objective, results.record.joined_folds.get(pick.trial_number)
    name, is_same_epoch = goal.metrics[0], goal.epoch_window is None or pick.rule.is_study_objective
    is_joined = joined and is_same_epoch and {trial.number for trial in trials} == set(joined.runs)
    if joined and is_joined and joined.metrics.get(name) is not None:
        return statistics_of_single_evaluation(joined.metrics, name, len(trials))
    return seed_statistics(metric_at_chosen_epoch(goal, trial, name) for trial in trials)


def picks_frame(results: Results) -> pd.DataFrame:
    """Return what each selection rule would have picked, one row per rule, those that need least first.

    Returns:
        Indexed by rule: `needs`, `own` (whether the study searched by it), `trial` (the pick), `value` in the search,
        `violation` (by how much it misses the rule's limit), `ties` (configurations that share the top), `among`,
        `rank` (by the study's own ranking). On fresh seeds, missing where there are none: `val mean`, `val sd`, `val n`
        of the rule's metric; `test mean`, `test sd`, `test n` and `regret` of the test metric `judging_metric`.
        Then the pick's parameters. Empty where there is nothing to pick from: nothing is complete, or it is a final
        training.
    """
    rows = rule_picks_to_dicts(results.spec, judge_rule_picks(results))
    return pd.DataFrame(rows, columns=None if rows else ["rule"]).set_index("rule")


def rule_picks_to_dicts(spec: StudySpec, table: RulePickResults) -> list[dict[str, object]]:
    """Return `picks_frame` as plain values for JSON: a dictionary per rule, None where a value is missing."""
    keys = param_key_columns(spec, [result.pick.candidate.trial for result in table.results])
    return [
        {"rule": result.pick.rule.name, **_pick_row(spec, table.judging_metric, result, keys)}
        for result in table.results
    ]


def _pick_row(spec: StudySpec, judge: str, result: RulePickResult, keys: Sequence[str]) -> dict[str, object]:
    pick = result.pick
    return {
        "needs": pick.rule.required_labels,
        "own": pick.rule.is_study_objective,
        "trial": pick.trial_number,
        "value": pick.score.values[0],
        "violation": pick.score.total_violation,
        **{"ties": pick.n_tied, "among": pick.n_candidates, "rank": pick.rank},
        **_statistics_columns("val", result.val_statistics),
        "judge": judge,
        **_statistics_columns("test", result.test_statistics),
        "regret": result.regret_on_test,
        **{key: trial_param_value(spec, pick.candidate.trial, key) for key in keys},
    }


def _statistics_columns(name: str, values: SeedStatistics | None) -> dict[str, float | int | None]:
    mean, deviation, count = (values.mean, values.standard_deviation, values.count) if values else (None, None, 0)
    return {f"{name} mean": mean, f"{name} sd": deviation, f"{name} n": count}


def _judging_metric(spec: StudySpec, trials: Sequence[TrialRecord]) -> str:
    tested = [trial.test_metrics for trial in trials if trial.test_metrics]
    return spec.test_metric if not tested or any(spec.test_metric in one for one in tested) else "test/accuracy"
