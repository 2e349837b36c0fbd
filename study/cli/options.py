"""Options that several commands take, and how the commands answer."""

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from study.cluster import job_answer
from study.errors import UserError
from study.text import tell
from study.upstream.ray_internals import is_ray_job

if TYPE_CHECKING:
    from study.commands.progress_view import ProgressView
    from study.driver.session import RunEnd

Spec = Annotated[str, typer.Argument(metavar="SPEC", help="A shipped study file's name, or the path of a YAML file.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A study of this home; see study list.")]
Set = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Override a key; may be repeated.")]
Profile = Annotated[str | None, typer.Option("--profile", metavar="P", help="Apply a block of the file's `profiles`.")]
Rename = Annotated[str | None, typer.Option("--name", metavar="N", help="Run under another name.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, nothing else.")]
Address = Annotated[
    str | None, typer.Option("--address", metavar="ADDR", help="Ray cluster, from within its network: auto, HOST:PORT.")
]
VARIABLE = "STUDY_ADDRESS"
"""Variable that stands for a left out `--address` of commands that take the address of a head's dashboard."""

HERE = "local"
"""Value of `--address` for this machine, whatever the variable says."""


def _cluster_or_here(context: typer.Context, parameter: typer.CallbackParam, given: str | None) -> str | None:
    """Return the address that is meant; None: this machine.

    Within a job the variable, which the head may have, does not count: the cluster would ask itself.
    """
    source = context.get_parameter_source(parameter.name or "")
    by_variable = source is not None and source.name == "ENVIRONMENT"
    return None if given == HERE or (by_variable and is_ray_job()) else given


def _required_cluster(context: typer.Context, parameter: typer.CallbackParam, given: str) -> str:
    """Return the address that is meant where a cluster is needed.

    Raises:
        UserError: it is this machine.
    """
    address = _cluster_or_here(context, parameter, given)
    if address is None:
        raise UserError(f"--address {given}: a cluster is needed here: http://HOST:PORT of the head's dashboard")
    return address


Head = Annotated[
    str,
    typer.Option(
        "--address",
        metavar="URL",
        envvar=VARIABLE,
        callback=_required_cluster,
        help="The head's dashboard, as http://head:8265.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="URL",
        envvar=VARIABLE,
        callback=_cluster_or_here,
        help="The head's dashboard, as http://head:8265; local: this machine.",
    ),
]
AnyAddress = Annotated[
    str | None,
    typer.Option(
        "--address",
        metavar="ADDR",
        envvar=VARIABLE,
        callback=_cluster_or_here,
        help="A cluster: http://HEAD:8265 from outside, auto or HOST:PORT from within; local: this machine.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


def print_json(document: Any) -> None:
    """Print one JSON document on standard output; null for what is not a finite number."""
    from study.ranking.documents import to_plain

    document = _finite(to_plain(document))
    print(json.dumps(document, indent=2, allow_nan=False))
    job_answer.write_answer_to_log(document)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def view(quiet: bool) -> "ProgressView":
    """Return a view that shows a study on the terminal while it runs."""
    from rich.console import Console

    from study.commands.progress_view import ProgressView

    return ProgressView(Console(), quiet)


def show_run_end(outcome: "RunEnd") -> None:
    """Show the end of a run: what came out, where it is, what to type next.

    Raises:
        Exit: see `end`.
    """
    from study.driver.session import closing_lines

    tell("\n".join(closing_lines(outcome)))
    end(outcome)


def end(outcome: "RunEnd") -> None:
    """Exit with the status of a run, unless all is well.

    Raises:
        Exit: 1 if the study failed or MLflow lacks something of it, 130 if it was stopped.
    """
    state = outcome.record.state
    if state != "complete":
        raise typer.Exit(1 if state == "failed" else 130)
    if outcome.untracked_reason:
        raise typer.Exit(1)
