"""What runs behind a search: repeats on fresh seeds, the steps of an ablation, the seeds of a final training, and
whose model the test split is read with.
"""

from collections.abc import Iterable

from study import ranking
from study.home.events import ENDED, Stage
from study.home.record import StudyRecord, TrialRecord
from study.ranking import ablation
from study.ranking.picks import fresh_trials, picked
from study.spec import StudySpec
from study.sweep.search_stage import Decision


class LaterStages:
    """Which trial comes when the search has none. It changes neither ledger nor record."""

    def __init__(self, spec: StudySpec, record: StudyRecord) -> None:
        self._spec, self._record = spec, record
        self._picked: list[TrialRecord] | None = None

    def next(self) -> Decision | None:
        """The next trial to decide on; None: there is none, as far as is known."""
        record, spec = self._record, self._spec
        return self._next_confirm() or ablation_step(record, spec) or final_seed(record, spec)

    def to_test(self) -> list[TrialRecord]:
        """Trials whose configuration is final: final ones, the baseline's repeats, at the end those of the best, of
        the rules' picks and of an ablation."""
        chosen = [ranking.baseline(self._record, self._spec)]
        if not self.under_way("baseline", "search", "replicate", "confirm"):
            chosen.append(ranking.best(self._record, self._spec))
        repeats = [trial for choice in chosen if choice for trial in choice.repeats]
        repeats += [trial for pick in self._rule_picks() for trial in fresh_trials(self._record, pick.number)]
        repeats += ablation.to_test(self._record, self._spec)
        return repeats + [trial for trial in self._record.by_stage("final") if trial.state == "complete"]

    def under_way(self, *stages: Stage) -> bool:
        """Whether a trial of these stages has not ended; what runs is mostly among the newest."""
        newest = (trial for stage in stages for trial in reversed(list(self._record.by_stage(stage))))
        return any(trial.state not in ENDED for trial in newest)

    def _next_confirm(self) -> Decision | None:
        """The baseline's repeats can run while the last searched trials do, those of the best only after them, and
        those of the rules' picks at last."""
        record, spec = self._record, self._spec
        best = ranking.to_confirm(record, spec, top=not self.under_way("baseline", "search", "replicate"))
        return repeat(record, spec, "confirm", best, "confirm") or repeat(
            record, spec, "rule", self._rule_picks(), "confirm", "rule"
        )

    def _rule_picks(self) -> list[TrialRecord]:
        """What the rules pick, where the picks are to run again; known once the search has ended for good."""
        asked = ranking.confirm(self._record, self._spec).rules
        if self._picked is None and asked and not self.under_way("baseline", "search", "replicate"):
            self._picked = picked(self._record, self._spec)
        return self._picked or []


def repeat(
    record: StudyRecord, spec: StudySpec, stage: Stage, chosen: Iterable[TrialRecord], *counted: Stage
) -> Decision | None:
    """The first fresh seed on which a chosen configuration has no trial of these stages; None: there is none."""
    have = {(trial.repeats, trial.seed) for trial in record.by_stage(*counted)}
    seeds = ranking.confirm_seeds(record, spec)
    wanted = ((trial, seed) for trial in chosen for seed in seeds if (trial.number, seed) not in have)
    found = next(wanted, None)
    return Decision(stage, found[0].params, found[1], repeats=found[0].number) if found else None


def ablation_step(record: StudyRecord, spec: StudySpec) -> Decision | None:
    """The next step of the ablation that was asked for, on one of its seeds; None: there is none."""
    asked = ablation.asked(record)
    step = next(ablation.missing(record, spec, asked), None)
    if asked is None or step is None:
        return None
    repeated, params = asked.repeated(step[0]), asked.params(spec, step[0])
    return Decision("ablation", params, step[1], repeats=repeated.number if repeated else None)


def final_seed(record: StudyRecord, spec: StudySpec) -> Decision | None:
    """The next seed of a final training; None: there is none."""
    have = {trial.seed for trial in record.by_stage("final")}
    seed = next((seed for seed in spec.final_seeds or () if seed not in have), None)
    return None if seed is None else Decision("final", {}, seed)
