"""The way from the baseline to the best configuration, one knob at a time: its configurations and their trials.

A step is a knob, or several that can only move together (`study.ranking.ablation_steps`), which gets the best's value
instead of the baseline's. The configurations are the baseline and the best; the baseline with each step alone (adding);
the best without each step (removing); and those on the path that takes the steps in order. All run on the same seeds,
which had no part in the choice of the best. Their trials are a stage of their own, `ablation`, which no ranking looks
at; confirm and rule trials of the same configuration and seed count and do not run again.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from study import ranking
from study.home.events import ENDED, Ablating
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Candidate
from study.ranking.ablation_steps import Moved, Steps, configurations, mixed
from study.spec import StudySpec
from study.spec.same import same

SEEDS = 5
"""Seeds of an ablation where neither the user nor the study's confirmation says how many."""


@dataclass(frozen=True)
class Ablation:
    """What an ablation compares.

    Attributes:
        reference, best: the trials whose configurations it begins and ends with.
        steps: the keys of each step, in the order of the path.
        seeds: the training seeds of every configuration.
    """

    reference: TrialRecord
    best: TrialRecord
    steps: Steps
    seeds: Sequence[int]

    @property
    def configurations(self) -> list[Moved]:
        """All that run on each seed."""
        return configurations(len(self.steps))

    def params(self, spec: StudySpec, moved: Moved) -> Mapping[str, Any]:
        """The parameters of a configuration."""
        if repeated := self.repeated(moved):
            return repeated.params
        return mixed(spec, self.reference.params, self.best.params, [self.steps[place] for place in sorted(moved)])

    def repeated(self, moved: Moved) -> TrialRecord | None:
        """The trial whose configuration this is, of the two ends."""
        return {0: self.reference, len(self.steps): self.best}.get(len(moved))


def asked(record: StudyRecord) -> Ablation | None:
    """The ablation that was asked for last; None without one."""
    reference = next(record.by_stage("baseline"), None)
    if record.ablating is None or reference is None:
        return None
    trial, steps, first, seeds = record.ablating
    return Ablation(reference, record.trials[trial], steps, range(first, first + seeds))


def seeds_for(record: StudyRecord, spec: StudySpec, best: Candidate, count: int | None) -> range:
    """The seeds to judge the way to the best on: none of those that it was chosen by, as it was lucky on these.

    Where several configurations were confirmed, these are the seeds behind those of the confirmation; else its own
    seeds, whose trials of baseline and best then count. An ablation of the same configuration keeps its seeds, and
    gets more of them.
    """
    confirm_seeds, before = ranking.confirm_seeds(record, spec), record.ablating
    if before is not None and before.trial == best.trial.number:
        return range(before.first, before.first + max(before.seeds, count or 0))
    first = confirm_seeds.stop if is_chosen_by(record, spec, confirm_seeds) else confirm_seeds.start
    return range(first, first + (count or len(confirm_seeds) or SEEDS))


def is_chosen_by(record: StudyRecord, spec: StudySpec, seeds: Collection[int]) -> bool:
    """Whether several configurations of the search were confirmed on some of these seeds, which chose the best then."""
    confirmed = (candidate.repeats for candidate in ranking.searched(record, spec))
    return sum(any(trial.seed in seeds for trial in repeats) for repeats in confirmed) > 1


def runs(record: StudyRecord, spec: StudySpec, ablation: Ablation) -> dict[Moved, dict[int, TrialRecord]]:
    """The trials on fresh seeds of each configuration, whatever they ran for: one per seed, a complete one if any."""
    fresh = [trial for trial in record.by_stage("confirm", "rule", "ablation") if trial.seed in ablation.seeds]
    fresh.sort(key=lambda trial: (trial.state == "complete", -trial.number))
    found = {}
    for moved in ablation.configurations:
        params = ablation.params(spec, moved)
        found[moved] = {trial.seed: trial for trial in fresh if same(trial.params, params)}
    return found


def missing(record: StudyRecord, spec: StudySpec, ablation: Ablation | None) -> Iterator[tuple[Moved, int]]:
    """The configurations and seeds of an ablation that have no trial yet."""
    if ablation is not None:
        by_configuration = runs(record, spec, ablation)
        for moved, by_seed in by_configuration.items():
            yield from ((moved, seed) for seed in ablation.seeds if seed not in by_seed)


def to_test(record: StudyRecord, spec: StudySpec) -> list[TrialRecord]:
    """The complete trials of the ablation that was asked for: test is read for each of them."""
    ablation = asked(record)
    by_configuration = runs(record, spec, ablation) if ablation else {}
    trials = [trial for by_seed in by_configuration.values() for trial in by_seed.values()]
    return [trial for trial in trials if trial.state == "complete"]


def is_measured(record: StudyRecord, spec: StudySpec) -> bool:
    """Whether all that was asked for has run, and test was read for it as far as that could be."""
    ablation = asked(record)
    if ablation is None or next(missing(record, spec, ablation), None):
        return False
    trials = [trial for by_seed in runs(record, spec, ablation).values() for trial in by_seed.values()]
    return all(trial.state in ENDED and (trial.state != "complete" or _is_read(trial)) for trial in trials)


def progress(record: StudyRecord, spec: StudySpec) -> dict[str, Any] | None:
    """How far the ablation that was asked for is, as plain values; None without one."""
    ablation = asked(record)
    if ablation is None:
        return None
    trials = [trial for by_seed in runs(record, spec, ablation).values() for trial in by_seed.values()]
    return {
        "baseline": ablation.reference.number,
        "best": ablation.best.number,
        "steps": [list(step) for step in ablation.steps],
        "seeds": list(ablation.seeds),
        "trials": len(ablation.configurations) * len(ablation.seeds),
        "complete": sum(trial.state == "complete" for trial in trials),
        "is_measured": is_measured(record, spec),
    }


def as_event(ablation: Ablation) -> Ablating:
    """An ablation as the ledger tells it."""
    steps = tuple(tuple(step) for step in ablation.steps)
    return Ablating(ablation.best.number, steps, ablation.seeds[0], len(ablation.seeds))


def _is_read(trial: TrialRecord) -> bool:
    return bool(trial.tested or trial.untested)
