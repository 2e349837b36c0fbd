"""A study of a published table: started, gone on with, or left as it is; and looked at in any state."""

from dataclasses import dataclass

from study import published
from study.commands import run as running
from study.commands.final import parse_seeds
from study.commands.outcome import Outcome
from study.commands.run import View
from study.errors import UserError
from study.home.folder import Home
from study.home.record import StudyRecord
from study.reproduce.sheet import Sheet, sheet
from study.reproduce.tabulate import tabulate
from study.spec import StudySpec, load_study


@dataclass(frozen=True)
class Given:
    """What is given for a run.

    Attributes:
        name: of the study; None: the table's.
        profile, assignments: as for `study run`.
        seeds: training seeds, as `0,1,2`; None: those of the study file.
    """

    name: str | None = None
    profile: str | None = None
    assignments: tuple[str, ...] = ()
    seeds: str | None = None


def reproduce(home: Home, table: str, given: Given, view: View) -> Outcome | None:
    """Run the study of a table, or go on with it.

    Args:
        table: a published table; its study file has the same name.

    Returns:
        How it ended; None where it was complete already.

    Raises:
        UserError: there is no such table, a study of that name has other settings, or see `study.commands.run.start`.
    """
    published.load(table)
    name = given.name or table
    if not _has_begun(home, name):
        return running.start(home, _asked(table, given), view)
    folder = home.find(name)
    if given.assignments or given.seeds or given.profile:
        _check_same(folder.checked_spec(), _asked(table, given))
    is_complete = StudyRecord.load(folder.ledger_file).state == "complete"
    return None if is_complete else running.resume(home, name, view)


def look(home: Home, table: str, given: Given) -> Sheet:
    """The table of its study as far as it is; before the study has begun, the paper's numbers and what would run.

    Raises:
        UserError: there is no such table, or no study of the name that is given.
    """
    printed, name = published.load(table), given.name or table
    if given.name is None and not _has_begun(home, name):
        return sheet(printed, _asked(table, given), StudyRecord(), load_study(table))
    return tabulate(home.find(name), table)


def _has_begun(home: Home, name: str) -> bool:
    return name in [folder.name for folder in home.studies()]


def _asked(table: str, given: Given) -> StudySpec:
    """The study of a table, as the command asks for it."""
    return load_study(table, [*given.assignments, *_seeds(given.seeds)], given.profile, given.name or table)


def _seeds(given: str | None) -> list[str]:
    """The overrides that give a configuration's trials these seeds; their order means nothing.

    Seeds that follow each other are given by their number, as the study files do: it is the same study.
    """
    if given is None:
        return []
    seeds = sorted(parse_seeds(given))
    in_turn = seeds == list(range(seeds[0], seeds[0] + len(seeds)))
    return [f"train.seed={seeds[0]}", f"search.replicates={len(seeds) if in_turn else seeds}"]


def _check_same(there: StudySpec, asked: StudySpec) -> None:
    if there.hash != asked.hash:
        raise UserError(
            f"{there.name}: exists already, with other settings. Go on with it as it is: leave --profile, --seeds and "
            "--set out. Run it anew under another name: --name"
        )
