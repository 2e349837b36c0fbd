"""More of a study that ended: further configurations to try, further seeds for the best."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from study import ranking
from study.errors import UserError
from study.home.folder import StudyFolder
from study.home.ledger import Ledger, read
from study.home.record import StudyRecord
from study.spec import StudySpec


def search(folder: StudyFolder, spec: StudySpec, trials: str) -> StudyRecord:
    """Let the search of a study try so many more configurations.

    Args:
        trials: how many, as `+50`.

    Returns:
        The record with that in it.

    Raises:
        UserError: no such number, or the study has no search that could go on; or another process runs it.
    """
    if not re.fullmatch(r"\+[1-9]\d{0,6}", trials):
        raise UserError(f"--trials {trials}: a number of further trials is needed, as in --trials +50")
    if spec.final_seeds is not None:
        raise UserError(f"{spec.name}: a final training has no search; further seeds: study train FILE --seeds ...")
    if spec.search.sampler == "grid" or not spec.search.space:
        raise UserError(
            f"{spec.name}: a {'grid' if spec.search.space else 'single configuration'} has no further trials"
        )
    with _opened(folder) as (ledger, record):
        tried = len(list(record.by_stage("baseline", "search")))
        planned = record.limit(spec.trials) if record.enough in (None, "trials") else tried
        record.apply(ledger.append("extended", trials=planned + int(trials)))
        return record


def confirm(folder: StudyFolder, spec: StudySpec, top: int, seeds: int) -> None:
    """Let the best configurations of a study run again on fresh seeds; those that ran before count.

    Raises:
        UserError: its search is not over or left nothing, or all of this has run; or another process runs it.
    """
    if spec.final_seeds is not None:
        raise UserError(f"{spec.name}: a final training; further seeds of it: study train FILE --seeds ...")
    with _opened(folder) as (ledger, record):
        if record.state != "complete":
            raise UserError(f"{spec.name}: is {record.state}, its search must end first: study resume {spec.name}")
        wanted = StudyRecord.fold(read(folder.ledger_file))
        wanted.apply({"event": "confirming", "top": top, "seeds": seeds, "time": 0.0})
        chosen = ranking.to_confirm(wanted, spec)
        if top > (found := len(ranking.searched(record, spec))):
            raise UserError(f"--top {top}: {spec.name} has {found} complete configurations")
        if ranking.is_confirmed(wanted, spec):
            told = f"trial{'s' if len(chosen) > 1 else ''} {', '.join(str(one.number) for one in chosen)}"
            raise UserError(f"{spec.name}: {told} have run on {seeds} fresh seeds or more. More: --top, --seeds")
        ledger.append("confirming", top=top, seeds=seeds)


@contextmanager
def _opened(folder: StudyFolder) -> Iterator[tuple[Ledger, StudyRecord]]:
    ledger = Ledger(folder.ledger_file)
    try:
        yield ledger, StudyRecord.fold(read(folder.ledger_file))
    finally:
        ledger.close()
