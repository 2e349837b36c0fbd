"""The command that asks what a study would do."""

from pathlib import Path
from typing import Annotated

import typer

from study.cli.options import Json, Quiet, Set, one_line, print_json


def simulate(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A study of this home; with --curves a study file, default: the curves'."),
    ] = None,
    curves: Annotated[
        Path | None, typer.Option("--curves", metavar="FILE", help="Recorded curves (.npz), not those of a study.")
    ] = None,
    assignments: Set = None,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="KEY=V,V", help="A variant for each value; KEY may be slots; may be repeated."),
    ] = None,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Courses of each variant.")] = 100,
    slots: Annotated[
        int | None, typer.Option("--slots", min=1, help="Trials at once; default: as the study had, or 1.")
    ] = None,
    nodes: Annotated[
        list[str] | None,
        typer.Option("--nodes", metavar="KEY=N,...", help="Nodes of a kind: count, slots, start, preempted, price ..."),
    ] = None,
    like: Annotated[
        str | None, typer.Option("--like", metavar="NAME", help="A study whose time besides epochs it takes.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Also write figure, table and numbers there.")
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Say what a study would find, when, at what cost. Example: study simulate mine --vary search.sampler=tpe,random"""
    from study.commands import simulate as simulating
    from study.home.folder import Home

    wanted = simulating.Wanted(name, curves, assignments or (), vary or (), repeats, slots, nodes or (), like)

    with one_line(quiet) as tell:
        found = simulating.simulate(Home.locate(), wanted, tell)
    if out is not None:
        simulating.write(found, out)
    print_json(simulating.document(found)) if as_json else print(simulating.text(found))
