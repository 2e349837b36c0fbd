"""The best configurations of a study as files that `study train`, `study trial` and `study run` take."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from study import ranking
from study.errors import UserError
from study.home import StudyFolder
from study.ranking import Candidate
from study.record import StudyRecord
from study.spec import StudySpec
from study.spec.schema import Search
from study.tracking.progress import Progress

FORMAT = 1
"""Version of an exported file."""


def export(folder: StudyFolder, spec: StudySpec, record: StudyRecord, out: Path, top: int = 1) -> list[Path]:
    """Write the best configuration, or the `top` best as OUT-1, OUT-2 ...

    Returns:
        The files, the best first.

    Raises:
        UserError: no trial is complete, or fewer than `top` are, or a file cannot be written.
    """
    everyone = ranking.ranked(record, spec)
    if len(everyone) < top:
        raise UserError(f"{spec.name}: {len(everyone)} complete trials, --top {top} asked for")
    if not out.name or out.is_dir():
        raise UserError(f"{out}: cannot be written: it is a folder, a file's path is needed")
    paths = [out] if top == 1 else [out.with_stem(f"{out.stem}-{place}") for place in range(1, top + 1)]
    for path, one in zip(paths, everyone, strict=False):
        text = HEADER.format(study=spec.name, path=path.name) + exported(folder, spec, record, one).to_yaml()
        part = path.with_name(f".{path.name}.part")
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        except OSError as error:
            with suppress(OSError):
                part.unlink()
            raise UserError(f"{path}: cannot be written: {error.strerror}") from None
    return paths


HEADER = """\
# A configuration of the study {study}, complete: its best or among them. Train it: study train {path}
# `origin` says how it was found; the trial's metrics come back with: study trial {path}
"""


def exported(folder: StudyFolder, spec: StudySpec, record: StudyRecord, one: Candidate) -> StudySpec:
    """A configuration as a study file of one trial."""
    began = one.trial.started or 0.0
    session = [session for session in record.sessions if session["time"] <= began or session is record.sessions[0]][-1]
    rule = "mean over the confirm seeds" if ranking.is_confirmed(record, spec) else "one seed"
    origin: dict[str, Any] = {
        "format": FORMAT,
        "study": spec.name,
        "study_id": record.id,
        "study_hash": spec.hash,
        "trial": one.trial.number,
        "mlflow_run": Progress.load(folder.tracking_file, folder.tracking_uri).runs.get(str(one.trial.number)),
        "trials": len(list(record.by_stage("baseline", "search"))),
        "chosen_by": f"{spec.metric}, {rule}",
        "metrics": {name: value for name, value in one.trial.reports[-1].items() if name.startswith("val/")},
        "confirmed": _confirmed(one),
        "code": {key: value for key, value in session.items() if key not in ("event", "time", "spec", "owner")},
    }
    base = spec.trial_document({**one.trial.params, "train.seed": one.trial.seed})
    search = Search(trials=1, metric=spec.search.metric, constraints=spec.search.constraints)
    return replace(spec, name=f"{spec.name[:95]}-best", base=base, search=search, origin=origin)


def _confirmed(one: Candidate) -> dict[str, Any]:
    """Mean, sample standard deviation and seeds of each validation and test metric over the confirm trials."""
    if not one.repeats:
        return {}
    found = {name: value.to_document() for name, value in ranking.spreads(one.repeats).items()}
    return {"seeds": [trial.seed for trial in one.repeats], **found}
