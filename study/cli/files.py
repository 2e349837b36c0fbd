"""The commands about study files."""

from pathlib import Path
from typing import Annotated

import typer

from study.cli.options import Json, print_json


def spaces(as_json: Json = False) -> None:
    """List the shipped study files, and what files can name. Example: study spaces --json"""
    from study import spaces as shipped

    document = shipped.document()
    print_json(document) if as_json else print(shipped.text(document))


def schema(
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="FILE", help="The file to write; else it is printed.")
    ] = None,
) -> None:
    """Give the JSON Schema of study files, for editors. Example: study schema -o study.schema.json"""
    from study.spec import json_schema

    print(json_schema.text(), end="") if out is None else out.write_text(json_schema.text(), encoding="utf-8")
