"""Which of a final training's networks are its model: that of one seed, or their ensemble."""

import math
from collections.abc import Sequence

from study.home.record import StudyRecord, TrialRecord
from study.metrics import is_standard_error
from study.ranking.arms import Arm
from study.ranking.results import Results
from study.ranking.trial_statistics import (
    RELATIVE_TOLERANCE,
    SeedStatistics,
    mean_score,
    statistics_of_single_evaluation,
)
from study.spec import StudySpec
from study.spec.objective import TrialScore


def trial_of_best_seed(spec: StudySpec, trials: Sequence[TrialRecord]) -> TrialRecord:
    """Return the trial with the best validation metric, the first of equals; without validation the first trial.

    A trial that misses the study's constraints comes after those that keep them.
    """
    scores = [(trial, mean_score(spec.objective, [trial])) for trial in trials]
    scored = [(trial, score) for trial, score in scores if score is not None]
    ordered = sorted(scored, key=lambda pair: (*pair[1].first_metric_sort_key, pair[0].number))
    return ordered[0][0] if ordered else trials[0]


def final_model_trials(results: Results) -> list[TrialRecord]:
    """Return the trials whose networks are the model of a final training; empty: none is complete.

    They are those of the ensemble where it is better on validation than the network of every seed, or where nothing
    validates, though no test split measures it either: its log loss is at most the mean of theirs, and any one seed
    would be arbitrary. Else it is that of the best seed. `tests/benchmarks/results/seed-ensemble.md` says what each way
    is worth.
    """
    spec, record = results.spec, results.record
    if not results.final_training_trials:
        return []
    best = trial_of_best_seed(spec, results.final_training_trials)
    if record.ensemble is None:
        return [best]
    one, joined = mean_score(spec.objective, [best]), spec.objective.score_of_report(record.ensemble.metrics)
    if one is not None and (joined is None or not _is_score_better_beyond_rounding(joined, one)):
        return [best]
    return [record.trials[number] for number in record.ensemble.trials]


def final_model_arm(results: Results) -> Arm | None:
    """Return the model of a final training, by its own values and not the means over seeds; None: none is complete."""
    trials = final_model_trials(results)
    if not trials:
        return None
    measured = results.record.ensemble if len(trials) > 1 else None
    return Arm("model", trials[0].number, trials, results.spec, ensemble=measured)


def ensemble_statistics(record: StudyRecord) -> dict[str, SeedStatistics]:
    """Return each metric of a final training's networks as one model, with its split's error; empty without it."""
    if (measured := record.ensemble) is None:
        return {}
    known = [name for name, value in measured.metrics.items() if value is not None and not is_standard_error(name)]
    return {name: statistics_of_single_evaluation(measured.metrics, name, len(measured.trials)) for name in known}


def _is_score_better_beyond_rounding(one: TrialScore, other: TrialScore) -> bool:
    """Return whether a score is better by the constraints, then by the first metric, beyond the noise of rounding."""
    for ours, theirs in zip(one.first_metric_sort_key, other.first_metric_sort_key, strict=True):
        if not math.isclose(ours, theirs, rel_tol=RELATIVE_TOLERANCE):
            return ours < theirs
    return False
