"""Which trials' states are kept once they have ended, so that the trials can be extended from there."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from study.home.events import ENDED
from study.home.folder import StudyFolder
from study.home.record import StudyRecord, TrialRecord
from study.ranking import Results, mean_score
from study.spec import StudySpec
from study.spec.objective import Score

STAGES = ("baseline", "search", "replicate", "confirm")
"""Stages whose trials are extended with their configuration."""


class KeptStates:
    """The state files of a study's ended trials, as `resources.keep_checkpoints` says.

    For a number, these are the states after the last epoch of that many best configurations and of the baseline, on all
    their seeds; for `all`, those of every trial, and the last states of what early stopping ended. What was extended in
    this session is kept as well, until `tidy`.
    """

    def __init__(self, folder: StudyFolder, spec: StudySpec, record: StudyRecord) -> None:
        self._folder, self._spec, self._record = folder, spec, record
        self._most: int | Literal["all"] = spec.resources.keep_checkpoints
        found = Results(spec, record).searched[: self._most] if isinstance(self._most, int) else []
        self._best: list[tuple[Score, int]] = [(each.score, each.trial.number) for each in found]

    def file(self, trial: TrialRecord) -> Path | None:
        """Return where a trial that begins is to write its state after its last epoch; None: nowhere."""
        return self._folder.end_file(trial.number) if self._most != 0 and trial.stage in STAGES else None

    def ended(self, trial: TrialRecord) -> None:
        """Remove the files of a trial that has ended, or of a configuration that is no longer among the best.

        Calling it again for the same trial changes nothing.
        """
        if self._most != "all" or trial.state != "pruned":
            self._folder.checkpoint_file(trial.number).unlink(missing_ok=True)
        if trial.state != "complete":
            self._remove([trial])
        if not isinstance(self._most, int) or trial.stage not in STAGES or trial.until is not None:
            return
        leader = trial if trial.repeats is None else self._record.trials[trial.repeats]
        if leader.stage == "baseline":
            return
        seeds = [leader, *self._record.repeats_of(leader.number, "replicate")]
        if trial.stage == "confirm":
            if leader.number not in [number for _, number in self._best]:
                self._remove([trial])
        elif any(seed.state in ("pruned", "failed") for seed in seeds):
            self._remove(seeds)
        elif len(seeds) == len(self._spec.runs()) and all(seed.state == "complete" for seed in seeds):
            self._admit(leader, seeds)

    def _admit(self, leader: TrialRecord, seeds: Iterable[TrialRecord]) -> None:
        score = mean_score(self._spec.objective, list(seeds))
        if score is None:
            self._remove(seeds)
            return
        best = [*(one for one in self._best if one[1] != leader.number), (score, leader.number)]
        *self._best, last = (best[place] for place in self._spec.objective.order([one for one, _ in best]))
        if len(best) <= int(self._most):
            self._best.append(last)
        else:
            number = last[1]
            self._remove([self._record.trials[number], *self._record.repeats_of(number, "replicate")])

    def _remove(self, trials: Iterable[TrialRecord]) -> None:
        for trial in trials:
            self._folder.end_file(trial.number).unlink(missing_ok=True)


def tidy(folder: StudyFolder, spec: StudySpec, record: StudyRecord) -> None:
    """Move the end states of extended trials to where they go on from, and remove all states that are of no more use.

    Killed processes leave some of those.
    """
    needed = set()
    for trial in record.trials.values():
        file = folder.checkpoint_file(trial.number)
        if trial.state not in ENDED:
            if trial.is_extended and not file.exists() and folder.end_file(trial.number).exists():
                folder.end_file(trial.number).replace(file)
            needed.add(file)
    for path in set(folder.checkpoints.glob("*")) - needed - _kept(folder, spec, record):
        path.unlink(missing_ok=True)  # on a cluster a trial may have outlived its driver and moved its part


def _kept(folder: StudyFolder, spec: StudySpec, record: StudyRecord) -> set[Path]:
    most = spec.resources.keep_checkpoints
    ended = [trial for trial in record.trials.values() if trial.state in ENDED and trial.stage in STAGES]
    if isinstance(most, str):
        pruned = {folder.checkpoint_file(trial.number) for trial in ended if trial.state == "pruned"}
        return pruned | {folder.end_file(trial.number) for trial in ended}
    chosen = {candidate.trial.number for candidate in Results(spec, record).searched[:most]}
    chosen |= {trial.number for trial in record.by_stage("baseline") if most}
    of = {trial.number for trial in ended if (trial.number if trial.repeats is None else trial.repeats) in chosen}
    return {folder.end_file(number) for number in of}
