"""What a run left, and how its end is told."""

from dataclasses import dataclass
from pathlib import Path

from study import ranking
from study.home.folder import StudyFolder
from study.home.record import StudyRecord
from study.ranking import summary
from study.spec import StudySpec

TRACEBACK = 30
"""Last lines of a traceback that are shown."""


@dataclass(frozen=True)
class Outcome:
    """What a run left.

    Attributes:
        untracked: why MLflow lacks something, None if it has everything.
    """

    folder: StudyFolder
    spec: StudySpec
    record: StudyRecord
    untracked: str | None


def farewell(outcome: Outcome) -> list[str]:
    """The end of a run: how it ended, what came out, where things are and what to type next."""
    folder, spec, record = outcome.folder, outcome.spec, outcome.record
    found = ["", *summary.lines(summary.summary(spec, record))]
    if record.state == "complete":
        found += ["", f"report     {folder.report / 'report.html'}"]
        if spec.final_seeds is not None:
            found += [f"models     {folder.model_file(0).parent}", f"card       {folder.card_file}"]
        if folder.best_file.exists():
            found.append(f"best       {folder.best_file}")
        found += ["MLflow UI  study ui", "", *_next(outcome)]
    else:
        found += _first_failure(outcome)
        found.append(f"go on with it: study resume {spec.name}")
    if outcome.untracked:
        found += ["", f"not everything is in MLflow: {outcome.untracked}"]
        found.append(f"nothing is lost; once MLflow answers again: study resume {spec.name}")
    return found


def _first_failure(outcome: Outcome) -> list[str]:
    """What the first failed trial ended with, and its traceback; the others' are beside it."""
    folder, trials = outcome.folder, outcome.record.trials.values()
    first = next((trial for trial in trials if trial.state == "failed"), None)
    if first is None:
        return []
    found = [f"trial {first.number} failed, {first.why}"]
    file = folder.error_file(first.number)
    if outcome.record.state == "failed" and file.exists():
        found += ["", *file.read_text(encoding="utf-8").splitlines()[-TRACEBACK:], ""]
    return [*found, f"tracebacks: {file.parent}"] if file.parent.exists() else found


def _next(outcome: Outcome) -> list[str]:
    folder, spec = outcome.folder, outcome.spec
    if spec.final_seeds is not None:
        return [f"next: study predict {spec.name} IMAGES", f"      study evaluate {spec.name} --split test"]
    fresh = ranking.confirm_seeds(outcome.record, spec).stop  # none that made the choice
    seeds = ",".join(str(seed) for seed in range(fresh, fresh + 3))
    return [f"next: study train {_short(folder.best_file)} --seeds {seeds}"]


def _short(path: Path) -> Path:
    try:
        here = Path.cwd()
    except FileNotFoundError:  # a job's folder, which Ray has removed
        return path
    return path.relative_to(here) if path.is_relative_to(here) else path
