"""Metrics that cannot choose, as most configurations share a value."""

from collections import Counter
from collections.abc import Iterable, Sequence

from study.metrics.selection_rules import SELECTION_RULES
from study.ranking.candidates import Candidate
from study.ranking.json_documents import Statement
from study.spec import StudySpec

MIN_CONFIGURATIONS_FOR_TIES = 4
"""Smallest number of complete configurations before anything is said."""


class TiedMetric(Statement):
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


def find_tied_metrics(spec: StudySpec, comparable: Iterable[Candidate]) -> list[TiedMetric]:
    """Return the study's metrics of which more than half of the complete configurations share a value.

    Configurations are those of baseline and search. Empty for a final training, and while fewer than
    `MIN_CONFIGURATIONS_FOR_TIES` configurations are complete.
    """
    complete = sorted(comparable, key=lambda one: one.trial.stage == "search")
    if spec.final_seeds is not None or len(complete) < MIN_CONFIGURATIONS_FOR_TIES:
        return []
    by_metric = zip(spec.objective.metrics, zip(*(one.score.values for one in complete), strict=True), strict=True)
    most = [(metric, *Counter(values).most_common(1)[0]) for metric, values in by_metric]
    tied = [(metric, value, count) for metric, value, count in most if 2 * count > len(complete)]
    instead = _untied_metrics(complete) if tied else ()
    return [TiedMetric(metric, value, count, len(complete), instead) for metric, value, count in tied]


def _untied_metrics(complete: Sequence[Candidate]) -> tuple[str, ...]:
    """Return the rules' metrics, as `val/NAME`, that all of them report and of which at most half share a value.

    Those that know most of the samples come first: `accuracy` is the last resort on a biased split.
    """
    names = dict.fromkeys(f"val/{rule.metric}" for rule in reversed(SELECTION_RULES) if rule.limit is None)
    values = {name: [one.trial.last_metric(name) for one in complete] for name in names}
    return tuple(
        name
        for name, own in values.items()
        if None not in own and 2 * Counter(own).most_common(1)[0][1] <= len(complete)
    )
