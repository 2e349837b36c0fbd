"""The command that checks the installation, the machine and a cluster."""

from typing import Annotated

import typer

from study.cli.options import Json, print_json

Address = Annotated[
    str | None,
    typer.Option("--address", metavar="ADDR", help="A cluster to check: http://HEAD:8265, auto or HOST:PORT."),
]


def doctor(address: Address = None, as_json: Json = False) -> None:
    """Show what a bug report needs, and what is wrong with its remedy. Example: study doctor --json"""
    from study import doctor as doctors

    document = doctors.document(doctors.diagnose(address))
    print_json(document) if as_json else print(doctors.text(document))
    if document["state"] == "problem":
        raise typer.Exit(1)
