"""A paper's table, run here and printed beside the paper's numbers.

The paper's numbers are in `study.published`, the study file of the same name in `search_spaces/`.
"""

from dataclasses import dataclass

from study import published
from study.commands.final_training import parse_seeds
from study.commands.run import differences, listed, run_left
from study.commands.session import RunEnd, View
from study.errors import UserError
from study.home.folder import Home
from study.home.record import StudyRecord
from study.reproduce.reproduction import Reproduction, build_reproduction, document, markdown, printed_alone, tabulate
from study.spec import StudySpec, load_study
from study.text import typed

__all__ = ["Request", "current_table", "document", "markdown", "reproduce", "tabulate"]


# The study of a published table: started or continued; and its table in any state.


@dataclass(frozen=True)
class Request:
    """The options of a reproduction.

    Attributes:
        name: of the study; None: that of the table.
        profile, assignments: as for `study run`.
        seeds: training seeds, as `0,1,2`; None: those of the study file.
    """

    name: str | None = None
    profile: str | None = None
    assignments: tuple[str, ...] = ()
    seeds: str | None = None


def reproduce(home: Home, table: str, request: Request, view: View) -> RunEnd | None:
    """Run the study of a table, or continue it.

    Args:
        table: a published table; its study file has the same name.

    Returns:
        How it ended; None if it was complete already.

    Raises:
        UserError: there is no such table, nothing of it can be run here, a study of that name has other settings, or
            see `study.commands.run.start`.
    """
    why_not = published.load(table).no_study
    if why_not:
        numbers = typed("reproduce", table, "--report")
        raise UserError(f"{table}: nothing of it can be run here: {why_not}. Its printed numbers: {numbers}")
    name = request.name or table
    if not _has_begun(home, name) or request.assignments or request.seeds or request.profile:
        spec = _requested_study(table, request)
    else:
        spec = home.find(name).checked_spec()
    if differing := list(differences(home, [spec])):
        raise UserError(
            f"{name}: exists already, with other settings. To go on with it as it is, leave out --profile, --seeds and "
            f"--set. To run it with these settings, give another name: --name\n{listed(differing)}"
        )
    return next(run_left(home, [spec], view), None)


def current_table(home: Home, table: str, request: Request) -> Reproduction:
    """The table with the results so far; before the study has begun, the paper's numbers and what would run.

    Raises:
        UserError: there is no such table, or no study of the given name.
    """
    paper_table, name = published.load(table), request.name or table
    if paper_table.no_study:
        return printed_alone(paper_table)
    if request.name is None and not _has_begun(home, name):
        return build_reproduction(paper_table, _requested_study(table, request), StudyRecord(), load_study(table))
    return tabulate(home.find(name), table)


def _has_begun(home: Home, name: str) -> bool:
    return name in [folder.name for folder in home.studies()]


def _requested_study(table: str, request: Request) -> StudySpec:
    """The study of a table with the requested options."""
    spec = load_study(table, [*request.assignments, *_seeds(request.seeds)], request.profile, request.name or table)
    if spec.objective.window is not None:
        raise UserError(
            "search.epoch: 'best' given, allowed is last: a table is compared at the last epoch, and where the paper "
            "did so at the best one on the test split"
        )
    if not spec.base["train"]["report_test"]:
        raise UserError(
            "train.report_test: false given, allowed is true: the cells of a table are test metrics of every trial"
        )
    return spec


def _seeds(seeds_text: str | None) -> list[str]:
    """The overrides that give a configuration's trials these seeds, in any order.

    Consecutive seeds are given by their number, as in the study files: it is then the same study.
    """
    if seeds_text is None:
        return []
    seeds = sorted(parse_seeds(seeds_text))
    in_turn = seeds == list(range(seeds[0], seeds[0] + len(seeds)))
    return [f"train.seed={seeds[0]}", f"search.replicates={len(seeds) if in_turn else seeds}"]
