"""Configurations that may be as good as the best."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from study.ranking import Results
from study.ranking.arms import Arm, arm_of_candidate
from study.ranking.difference import Difference
from study.spec import StudySpec


def arms_compared_with_best(results: Results) -> Sequence[Arm]:
    """Return the best of the search and those that were compared with it on the same seeds, in their order."""
    ranked = results.ranked_search
    if not ranked:
        return []
    among = results.n_candidates_for(ranked[0])
    if ranked[0].confirm_statistics is not None:
        seen = [(candidate.confirmed_score, candidate) for candidate in ranked if candidate.confirmed_score]
    else:
        seen = [
            (candidate.score, replace(candidate, confirm_trials=[], confirm_statistics=None)) for candidate in ranked
        ]
    least = next((score.total_violation for score, _ in seen), 0.0)
    peers = [arm_of_candidate(results.spec, candidate) for score, candidate in seen if score.total_violation <= least]
    return [replace(peer, n_candidates=among) for peer in peers[:1]] + peers[1:]


def _is_clearly_worse(spec: StudySpec, best: Arm, other: Arm) -> bool:
    """Return whether a configuration is worse than the best beyond the spread over seeds."""
    gap = best.difference_to(other, spec.metric)
    return bool(gap and gap.is_clear and spec.is_better(gap.value, 0.0))


@dataclass(frozen=True)
class Rivals:
    """The configurations that may be as good as the best.

    Attributes:
        best, runner_up: the best searched configuration, and the second.
        difference_to_runner_up: the best minus the runner-up, in the study's metric. Both were chosen by what they are
            compared by: its interval allows for the best among all (see `study.ranking.difference`); the runner-up's
            own luck makes the difference smaller.
        n_compared: how many configurations were compared on these seeds.
        seed_counts: on how many of them the one ran that ran on the fewest, and on the most.
        undecided_trials: the trials that cannot be told from the best, the nearest first. Among the best and these is
            the truly best of all that were compared, with 95% confidence or more: one is left out only where the
            interval of its difference to the best, which allows for the choice of the best and is the one that is
            printed, leaves out zero (subset selection: Gupta 1965; multiple comparisons with the best: Hsu 1984; here
            with each pair's own variance). With one seed nothing is told apart, so that all are named. Those that miss
            the constraints by more than the best are not in question.
    """

    best: Arm
    runner_up: Arm
    difference_to_runner_up: Difference
    n_compared: int
    seed_counts: tuple[int, int]
    undecided_trials: tuple[int, ...]


def find_rivals(results: Results) -> Rivals | None:
    """Return the rivals of the best searched configuration.

    None where fewer than two configurations were compared, or the study has several metrics: a front has no single
    best.
    """
    if len(results.spec.objective.metrics) > 1 or results.spec.final_seeds is not None:
        return None
    peers = arms_compared_with_best(results)
    if len(peers) < 2:
        return None
    best, *others = peers
    gap = best.difference_to(others[0], results.spec.metric)
    if gap is None:
        return None
    undecided = [other.trial_number for other in others if not _is_clearly_worse(results.spec, best, other)]
    ran = [len(peer.metric_by_seed(results.spec.metric)) for peer in peers]
    return Rivals(best, others[0], gap, len(peers), (min(ran), max(ran)), tuple(undecided))
