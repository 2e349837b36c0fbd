"""Commands that help: what is wrong here, and the guide."""

import sys
from typing import Annotated

import typer
from typer import Argument, Option

from study.cli.options import JsonOption, show_answer
from study.text import print_text

AddressOption = Annotated[
    str | None,
    Option("--address", metavar="ADDR", help="A cluster to check: http://HEAD:8265, auto or HOST:PORT."),
]


def doctor(
    address: AddressOption = None,
    clean: Annotated[
        bool, Option("--clean", help="End and remove what killed drivers left in the temporary folder.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check this machine: faults, remedies, facts for a bug report. Example: study doctor --json"""
    from study import doctor as doctors

    if clean:
        from study.upstream.scratch import remove_abandoned_scratch_folders

        removed = remove_abandoned_scratch_folders()
        for folder in removed:
            print_text(f"removed {folder}, and ended what ran in it: its driver was killed", sys.stderr)
        if not removed:
            print_text("no killed driver left anything in the temporary folder", sys.stderr)
    document = doctors.findings_document(doctors.run_checks(address))
    show_answer(document, as_json, doctors.findings_text)
    if document["state"] == "problem":
        raise typer.Exit(1)


TopicArgument = Annotated[
    list[str] | None, Argument(metavar="[TOPIC]...", help="A page's name, or any words; none: the list.")
]


def guide(topic: TopicArgument = None) -> None:
    """Show a page of the guide, or passages on some words. Examples: study guide selection, study guide limit time"""
    from study.commands.guide import guide_text as page

    text = page(topic or [])
    if not sys.stdout.isatty():
        print_text(text, end="")
        return
    import os

    import click
    from rich.console import Console
    from rich.markdown import Markdown

    os.environ.setdefault("LESS", "-FRX")  # as git: colours, and no pager where the text fits the screen
    console = Console()
    with console.capture() as written:
        console.print(Markdown(text, hyperlinks=False))
    try:
        click.echo_via_pager(written.get())
    except ValueError:  # what PAGER says is no command
        print_text(text, end="")
