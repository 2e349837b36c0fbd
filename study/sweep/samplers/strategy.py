"""What every way to search is asked."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from study.spec import StudySpec
from study.sweep.samplers.history import History, TrialEnd


class Strategy(ABC):
    """Suggests parameters.

    A suggestion depends on the study's seed, the trial's number, and the history: on what was adopted and ended, in
    that order, and never on how often something was suggested. What a strategy remembers is made in `adopted` and
    `ended` alone, which are called after the history took it in.
    """

    def __init__(self, spec: StudySpec, history: History) -> None:
        self._spec, self._history, self._space = spec, history, spec.space

    @abstractmethod
    def suggest(self, number: int) -> dict[str, Any] | None:
        """Parameters for the trial of this number, None where everything was tried."""

    def adopted(self, number: int, params: Mapping[str, Any]) -> None:  # noqa: B027 (most remember nothing)
        """A trial with these parameters was decided on."""

    def ended(self, end: TrialEnd) -> None:  # noqa: B027
        """A trial ended."""

    def _seed(self, number: int, attempt: int = 0) -> int:
        """For all that is drawn for this trial, another for each attempt to do so."""
        return (self._spec.search.seed * 1_000_003 + number + attempt * 500_009) % 2**32
