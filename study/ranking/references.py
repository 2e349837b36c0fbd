"""What needs no search, as it was judged beside a search; which of it has to be beaten."""

from collections.abc import Mapping
from dataclasses import dataclass

from study.home.record import StudyRecord
from study.spec import StudySpec
from study.spec.objective import Score
from study.spec.references import REFERENCES, Kind


@dataclass(frozen=True)
class Reference:
    """A reference that was fitted.

    Attributes:
        metrics: by name, `val/NAME` and, where the test split was read, `test/NAME`.
        score: by the study's objective; None: it lacks a metric of it, and is shown alone.
        draws: where it was judged on all folds, its metrics for samples drawn anew, those of `Joined.draws`.
    """

    name: str
    metrics: Mapping[str, float | None]
    score: Score | None
    draws: Mapping[str, list[float]]

    @property
    def kind(self) -> Kind:
        return REFERENCES[self.name]

    @property
    def words(self) -> str:
        """Its name within a sentence."""
        return self.kind.words

    @property
    def label(self) -> str:
        """The same with what it needs, in a list of results."""
        return f"{self.words} (needs the group, randomised)" if self.kind.needs_group else self.words


def references(record: StudyRecord, spec: StudySpec) -> list[Reference]:
    """The references that were fitted, the best first by the study's objective, last those that it cannot judge."""
    fitted = [event for name in REFERENCES if (event := record.references.get(name)) and event.metrics is not None]
    found = [
        Reference(one.name, one.metrics or {}, spec.objective.score(one.metrics or {}), one.draws or {})
        for one in fitted
    ]
    scored = [(one, one.score) for one in found if one.score is not None]
    in_order = [scored[place][0] for place in spec.objective.order([score for _, score in scored])]
    return in_order + [one for one in found if one.score is None]


def best_reference(record: StudyRecord, spec: StudySpec) -> Reference | None:
    """The best of those that can be chosen; None: there is none that the objective can judge."""
    return next((one for one in references(record, spec) if one.score and not one.kind.needs_group), None)


def failed(record: StudyRecord) -> Mapping[str, str]:
    """Why references could not be fitted, by name."""
    return {name: event.reason for name, event in record.references.items() if event.reason is not None}
