"""The best configuration against the others that were compared with it on the same seeds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from study.analysis.statistics.difference import Difference, Side, chosen_among, difference, side_of
from study.home.record import StudyRecord
from study.ranking import candidates
from study.spec import StudySpec

# How sure the choice of the best is: against the runner-up, and which others may be the truly best.


def against_runner_up(spec: StudySpec, record: StudyRecord) -> Difference | None:
    """The best configuration of the search minus the second, in the study's metric; None with fewer than two.

    Both were chosen by what they are compared by. The interval allows for the best among all (see
    `study.analysis.statistics.difference`); the runner-up's own luck makes the difference smaller.
    """
    peers = peers_of_best(spec, record)
    if len(peers) < 2:
        return None
    best, second = peers[:2]
    return difference(best.values(spec.metric), second.values(spec.metric), best.among)


def cannot_be_told_from_best(spec: StudySpec, record: StudyRecord) -> list[int]:
    """The configurations, by the number of their trial, that the data cannot tell from the best, the nearest first.

    Among the best and these is the truly best of all that were compared, with 95% confidence or more: a configuration
    is left out only where the interval of its difference to the best, which allows for the choice of the best and is
    the one that is printed, leaves out zero (subset selection: Gupta 1965; multiple comparisons with the best: Hsu
    1984; here with each pair's own variance). With one seed nothing is told apart, so that all are named.

    Those that miss the constraints by more than the best are left out: they are not in question.
    """
    peers = peers_of_best(spec, record)
    return [other.number for other in peers[1:] if not _is_worse(spec, peers[0], other)]


def peers_of_best(spec: StudySpec, record: StudyRecord) -> Sequence[Side]:
    """The best configuration of the search and those that were compared with it on the same seeds, in their order."""
    ranked = candidates(record, spec)
    if not ranked:
        return []
    among, fresh = chosen_among(spec, record, ranked[0]), ranked[0].confirmed is not None
    sides = []
    for candidate in ranked:
        if fresh and candidate.confirmed_score:
            score, seen = candidate.confirmed_score, candidate
        elif not fresh:
            score, seen = candidate.score, replace(candidate, repeats=[], confirmed=None)
        else:
            continue
        sides.append((score.violation, side_of(spec, seen)))
    least = sides[0][0] if sides else 0.0
    return [replace(side, among=among if place == 0 else 1) for place, (missed, side) in enumerate(sides)
            if missed <= least]  # fmt: skip


def _is_worse(spec: StudySpec, best: Side, other: Side) -> bool:
    """Return whether a configuration is left out."""
    gap = difference(best.values(spec.metric), other.values(spec.metric), best.among)
    return bool(gap and gap.clear and spec.better(gap.value, 0.0))


@dataclass(frozen=True)
class Rivals:
    """The configurations that may be as good as the best.

    Attributes:
        best, runner_up: the best searched configuration, and the second.
        gap: the best minus the runner-up, in the study's metric; its interval allows for the choice of the best.
        compared: how many configurations ran on these seeds.
        undecided: the trials that cannot be told from the best, see `study.analysis.statistics.rivals`.
    """

    best: Side
    runner_up: Side
    gap: Difference
    compared: int
    undecided: tuple[int, ...]


def rivals(spec: StudySpec, record: StudyRecord) -> Rivals | None:
    """The rivals of the best searched configuration.

    None where fewer than two configurations were compared, or the study has several metrics: a front has no single
    best.
    """
    if len(spec.objective.metrics) > 1 or spec.final_seeds is not None:
        return None
    gap, peers = against_runner_up(spec, record), peers_of_best(spec, record)
    if gap is None:
        return None
    best, runner_up = peers[:2]
    others = [peer.number for peer in peers[1:]]
    undecided = others if gap.interval is None else cannot_be_told_from_best(spec, record)
    return Rivals(best, runner_up, gap, len(peers), tuple(undecided))
