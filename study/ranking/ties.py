"""Whether a study's metric tells its trials apart: on tiny groups most of them may share one value."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from study.home.record import StudyRecord
from study.metrics.rules import RULES
from study.ranking.order import Candidate, comparable
from study.spec import StudySpec

FEWEST = 4
"""Complete configurations before anything is said."""


@dataclass(frozen=True)
class Tie:
    """A metric that cannot choose between most of the complete configurations.

    Attributes:
        metric: as `val/NAME`.
        value: that they share.
        sharing, complete: how many share it, of how many.
        instead: the metrics of rules that are reported and do not tie.
    """

    metric: str
    value: float
    sharing: int
    complete: int
    instead: tuple[str, ...]

    def __str__(self) -> str:
        tied = f"{self.metric} is {self.value:.4g} in {self.sharing} of {self.complete} complete configurations"
        others = f" Metrics that tell more: {', '.join(self.instead)}." if self.instead else ""
        return f"{tied}: it does not tell these apart.{others}"


def ties(record: StudyRecord, spec: StudySpec) -> list[Tie]:
    """The study's metrics of which more than half of the complete configurations, baseline and search, share a value.

    None for a final training, or as long as fewer than `FEWEST` configurations are complete.
    """
    complete = sorted(comparable(record, spec), key=lambda one: one.trial.stage == "search")
    if spec.final_seeds is not None or len(complete) < FEWEST:
        return []
    by_metric = zip(spec.objective.metrics, zip(*(one.score.values for one in complete), strict=True), strict=True)
    most = [(metric, *Counter(values).most_common(1)[0]) for metric, values in by_metric]
    tied = [(metric, value, count) for metric, value, count in most if 2 * count > len(complete)]
    instead = _apart(complete) if tied else ()
    return [Tie(metric, value, count, len(complete), instead) for metric, value, count in tied]


def _apart(complete: Sequence[Candidate]) -> tuple[str, ...]:
    """The metrics of rules, as `val/NAME`, that all of them report and at most half of them share a value of.

    Those that know most of the samples come first: `accuracy` is the last resort on a biased split.
    """
    names = dict.fromkeys(f"val/{rule.metric}" for rule in reversed(RULES) if rule.limit is None)
    values = {name: [one.trial.last(name) for one in complete] for name in names}
    return tuple(
        name
        for name, own in values.items()
        if None not in own and 2 * Counter(own).most_common(1)[0][1] <= len(complete)
    )
