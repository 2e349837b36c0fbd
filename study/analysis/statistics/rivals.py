"""The best configuration against the others that were compared with it on the same seeds."""

from dataclasses import dataclass

from study.analysis.statistics.choice import against_runner_up, cannot_be_told_from_best, peers_of_best
from study.analysis.statistics.difference import Difference, Side
from study.home.record import StudyRecord
from study.spec import StudySpec


@dataclass(frozen=True)
class Rivals:
    """How sure the choice of the best is.

    Attributes:
        best, runner_up: the best searched configuration, and the second.
        gap: the best minus the runner-up, in the study's metric; its interval allows for the choice of the best.
        compared: how many configurations ran on these seeds.
        undecided: the trials that cannot be told from the best, see `study.analysis.statistics.choice`.
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
