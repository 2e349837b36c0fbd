"""The commands about data sets."""

from pathlib import Path
from typing import Annotated

import typer

from study.cli import cluster
from study.cli.cluster import Env, Python
from study.cli.options import Json, Quiet, Set, Where, print_json
from study.text import tell


def list_data(as_json: Json = False) -> None:
    """List the data sets and whether their files are there. Example: study data list --json"""
    from study.commands import data as data_commands

    rows = data_commands.overview()
    print_json(rows) if as_json else tell(data_commands.table(rows))


def prepare_data(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set; see study data list.")],
    assignments: Set = None,
    address: Where = None,
    env: Env = None,
    python: Python = "python",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Download, check and build a data set, here or on a cluster's head. Example: study data prepare biased_mnist"""
    from study.commands import data as data_commands

    if address is not None:
        overrides = [word for assignment in assignments or () for word in ("--set", assignment)]
        command = ["data", "prepare", name, *overrides, "--quiet"]
        cluster.carry_out(address, command, python, env or (), as_json)
        return
    with data_commands.download_bars(quiet) as progress:
        document = data_commands.prepare(name, assignments or (), progress)
    print_json(document) if as_json else tell(data_commands.text(document))


def export_data(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A data set of images; see study data list.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A new folder.")],
    assignments: Set = None,
    as_json: Json = False,
) -> None:
    """Write a data set's images as PNG, with a table of labels. Example: study data export biased_digits photos"""
    from study.commands.data import export

    labels = export(name, folder, assignments or ())
    print_json({"labels": str(labels)}) if as_json else tell(labels)
