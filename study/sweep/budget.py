"""When a search has had enough, besides its number of trials."""

from study.home.record import StudyRecord
from study.ranking.remaining_gain import SoFar, unsuitable
from study.spec import StudySpec
from study.spec.objective import Score

EVERY_CONFIGURATION = "every configuration of the space"
"""What ended a search that has nothing left to try."""


class Budget:
    """Time, GPU hours, a plateau and what more search would gain, read from the record: a resumed study counts on.

    A study that was extended by a number of trials runs these, whatever its other limits say.
    """

    def __init__(self, spec: StudySpec, record: StudyRecord) -> None:
        self._search, self._record = spec.search, record
        self._gpu = (spec.of_file or spec).resources.gpu
        self._front: list[Score] = []
        self._since = 0
        self._spec, self._so_far = spec, SoFar()

    @property
    def spent(self) -> str | None:
        """Return which limit is reached, None if none is."""
        search, record = self._search, self._record
        if record.extended is not None:
            return None
        if search.time is not None and record.worked >= search.time:
            return "time"
        if search.gpu_hours is not None and record.taken("gpu", self._gpu) >= search.gpu_hours * 3600:
            return "gpu_hours"
        if search.plateau is not None and self._since >= search.plateau.trials:
            return "plateau"
        return "stop" if self._gains_little else None

    @property
    def _gains_little(self) -> bool:
        """Return whether as many trials again would gain `stop.gain` at most."""
        stop, so_far = self._search.stop, self._so_far
        if stop is None or so_far.ended < stop.trials or unsuitable(self._spec) or so_far.lacks(self._spec):
            return False
        return so_far.gain(self._spec, stop.confidence, checked_often=True) <= stop.gain

    def settled(self, score: Score | None, drawn: bool = True) -> None:
        """A configuration has ended, with a score if it is complete; `drawn`: by the sampler, not given.

        Progress, which a plateau lacks, is to be better than the best before by more than `plateau.by`; with several
        metrics, to be dominated by none before.
        """
        self._so_far.add(score, drawn)
        self._since += 1
        if score is not None and all(self._adds_to(other, score) for other in self._front):
            self._since = 0
            self._front = [other for other in self._front if not score.dominates(other)] + [score]

    def _adds_to(self, other: Score, score: Score) -> bool:
        if len(score.gains) > 1:
            return score != other and not other.dominates(score)
        margin = self._search.plateau.by if self._search.plateau else 0.0
        feasible = score.violation == other.violation == 0
        return score.gains[0] > other.gains[0] + margin if feasible else score.dominates(other)
