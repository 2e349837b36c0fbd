"""What several commands take and how they answer."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from study.commands.progress import ProgressView
    from study.commands.run_end import RunEnd

Spec = Annotated[str, typer.Argument(metavar="SPEC", help="A shipped study file's name, or the path of a YAML file.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A study of this home; see study list.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key; may be repeated.")]
Profile = Annotated[str | None, typer.Option("--profile", metavar="P", help="Apply a block of the file's `profiles`.")]
Rename = Annotated[str | None, typer.Option("--name", metavar="N", help="Run under another name.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else.")]
Address = Annotated[
    str | None, typer.Option("--address", metavar="ADDR", help="Ray cluster, from within its network: auto, HOST:PORT.")
]
AnyAddress = Annotated[
    str | None,
    typer.Option("--address", metavar="ADDR", help="A cluster's address: http://HEAD:8265 from outside."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def print_json(document: Any) -> None:
    """One JSON document on standard output."""
    print(json.dumps(document, indent=2, allow_nan=False))


def printable(text: str) -> str:
    """Text with names of files in it, which need not be UTF-8: bytes that are none as `\\xe9`."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def view(quiet: bool) -> "ProgressView":
    """What shows a study while it runs."""
    from rich.console import Console

    from study.commands.progress import ProgressView

    return ProgressView(Console(), quiet)


def show(outcome: "RunEnd") -> None:
    """The end of a run: what came out, where it is, what to type next.

    Raises:
        Exit: see `end`.
    """
    from study.commands.run_end import closing_lines

    print("\n".join(closing_lines(outcome)))
    end(outcome)


def end(outcome: "RunEnd") -> None:
    """The exit status of a run.

    Raises:
        Exit: 1 if the study failed, or MLflow lacks something and that was all there was to do; 130 if it was stopped.
    """
    state = outcome.record.state
    if state != "complete":
        raise typer.Exit(1 if state == "failed" else 130)
    if outcome.untracked and not outcome.ran:
        raise typer.Exit(1)
