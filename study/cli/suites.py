"""The command that runs many studies as one."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from study.cli.options import AnyAddress, Json, Quiet, print_json, view
from study.cli.remote import Follow, check_follow, is_elsewhere, options, show_submitted
from study.text import tell

if TYPE_CHECKING:
    from study.commands.suite import SuiteEnd


def suite(
    file: Annotated[str, typer.Argument(metavar="SUITE", help="A shipped suite's name, or the path of a YAML file.")],
    plan: Annotated[bool, typer.Option("--plan", help="Show how far it is and what is left; starts nothing.")] = False,
    measure: Annotated[
        bool, typer.Option("--measure", help="With --plan: run an epoch of each method here to estimate the time.")
    ] = False,
    only_report: Annotated[bool, typer.Option("--report", help="Run nothing; print the tables so far.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="FILE", help="Also write the tables: .md, .tex or .csv, by its ending."),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option("--judge", metavar="METRIC", help="With --report: the tables of another test metric."),
    ] = None,
    address: AnyAddress = None,
    follow: Follow = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run methods x data sets x searches, and print the table. Example: study suite quickstart_suite --plan"""
    from study.analysis.tables import suite_tables
    from study.commands import suite as suites
    from study.commands.suite import plan_suite, plan_text
    from study.errors import UserError
    from study.home.folder import Home
    from study.spec.suite import judged_by, load_suite

    if (plan and only_report) or (measure and not plan):
        raise UserError("--plan, --report: give one of them; --measure goes with --plan")
    if judge is not None and not only_report:
        raise UserError("--judge: goes with --report")
    if is_elsewhere(address, follow):
        if out is not None or only_report or measure:
            raise UserError("-o, --report, --measure: need the studies here. With --address: --plan, or none")
        _there(address, file, plan, follow, quiet, as_json)
        return
    suites.check_out(out)
    home, wanted = Home.locate(), load_suite(file)
    if plan:
        planned = plan_suite(home, wanted, measure)
        print_json(planned) if as_json else tell(plan_text(planned))
        return
    silent = quiet or as_json
    end = None
    if only_report:
        suites.check_same(home, wanted)
    else:
        end = suites.run(home, wanted, file, view(silent), (lambda _: None) if silent else tell, address)
    found = suites.tables(home, wanted if judge is None else judged_by(wanted, judge))
    if out is not None:
        suites.write_out(found, out)
    print_json(suite_tables.to_json(found)) if as_json else tell(suite_tables.markdown(found), end="")
    if end is not None:
        _show(end, file)


def _there(address: str, file: str, plan: bool, follow: bool, quiet: bool, as_json: bool) -> None:
    """A suite on a cluster elsewhere: run there, or how far it is as that is told here."""
    from study.cluster.jobs import STUDY_FILE, Jobs, run_suite
    from study.commands.suite import plan_text
    from study.home.provenance import owner
    from study.spec.suite import SuiteFile

    check_follow(follow, as_json)
    suite, remote = SuiteFile.of(file), Jobs(address)
    if plan:
        answer = remote.compute(suite.name, "suite", STUDY_FILE, "--plan", spec=suite)
        print_json(answer) if as_json else tell(plan_text(answer))
        return
    done = run_suite(remote, suite, options(quiet=quiet), {"STUDY_OWNER": owner()})
    show_submitted(remote, suite.name, done, follow, as_json)


def _show(end: "SuiteEnd", file: str) -> None:
    """Show what came of the run besides its tables.

    Raises:
        Exit: 1 if a study failed or lacks something in MLflow, 130 if it was stopped.
    """
    from study.text import typed

    for name in end.failed:
        tell(f"{name}: failed, no trial is complete; why: study status {name}", sys.stderr)
    for name in end.untracked:
        tell(f"{name}: not everything is in MLflow; once it answers again: {typed('suite', file)}", sys.stderr)
    if end.stopped:
        tell(f"stopped. Nothing is lost; go on with it: {typed('suite', file)}", sys.stderr)
        raise typer.Exit(130)
    if end.failed or end.untracked:
        raise typer.Exit(1)
