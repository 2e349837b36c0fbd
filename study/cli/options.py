"""Options that several commands take, and how the commands answer."""

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from typer import Argument, Option

from study.cluster import job_answer
from study.errors import UserError
from study.text import print_text
from study.upstream.ray_internals import is_ray_job

if TYPE_CHECKING:
    from study.commands.progress_view import ProgressView
    from study.driver.session import RunEnd

AnswerT = TypeVar("AnswerT")

SpecArgument = Annotated[str, Argument(metavar="SPEC", help="A shipped study file's name, or the path of a YAML file.")]
StudyArgument = Annotated[str, Argument(metavar="NAME", help="A study of this home; see study list.")]
SetOption = Annotated[list[str] | None, Option("--set", metavar="KEY=VALUE", help="Override a key; may be repeated.")]
ProfileOption = Annotated[str | None, Option("--profile", metavar="P", help="Apply a block of the file's `profiles`.")]
NameOption = Annotated[str | None, Option("--name", metavar="N", help="Run under another name.")]
JsonOption = Annotated[bool, Option("--json", help="One JSON document on standard output, nothing else.")]
RayAddressOption = Annotated[
    str | None, Option("--address", metavar="ADDR", help="Ray cluster, from within its network: auto, HOST:PORT.")
]
ADDRESS_VARIABLE = "STUDY_ADDRESS"
"""Variable that stands for a left out `--address` of commands that take the address of a head's dashboard."""

LOCAL_ADDRESS = "local"
"""Value of `--address` for this machine, whatever the variable says."""


def _resolve_optional_address(context: typer.Context, parameter: typer.CallbackParam, given: str | None) -> str | None:
    """Return the address that is meant; None: this machine.

    Within a job the variable, which the head may have, does not count: the cluster would ask itself.
    """
    source = context.get_parameter_source(parameter.name or "")
    by_variable = source is not None and source.name == "ENVIRONMENT"
    return None if given == LOCAL_ADDRESS or (by_variable and is_ray_job()) else given


def _resolve_required_address(context: typer.Context, parameter: typer.CallbackParam, given: str) -> str:
    """Return the address that is meant where a cluster is needed.

    Raises:
        UserError: it is this machine.
    """
    address = _resolve_optional_address(context, parameter, given)
    if address is None:
        raise UserError(f"--address {given}: a cluster is needed here: http://HOST:PORT of the head's dashboard")
    return address


def _address_option(callback: Callable[..., str | None], metavar: str, text: str) -> Any:
    return Option("--address", metavar=metavar, envvar=ADDRESS_VARIABLE, callback=callback, help=text)


HEAD_ADDRESS_HELP = "The head's dashboard, as http://head:8265"
ANY_ADDRESS_HELP = "A cluster: http://HEAD:8265 from outside, auto or HOST:PORT from within"
DashboardOption = Annotated[str, _address_option(_resolve_required_address, "URL", f"{HEAD_ADDRESS_HELP}.")]
OptionalDashboardOption = Annotated[
    str | None, _address_option(_resolve_optional_address, "URL", f"{HEAD_ADDRESS_HELP}; local: this machine.")
]
AnyAddressOption = Annotated[
    str | None, _address_option(_resolve_optional_address, "ADDR", f"{ANY_ADDRESS_HELP}; local: this machine.")
]
QuietOption = Annotated[bool, Option("--quiet", "-q", help="Show no progress.")]


def print_json(document: Any) -> None:
    """Print one JSON document on standard output; null for what is not a finite number."""
    from study.ranking.json_documents import to_plain_value

    document = _null_if_not_finite(to_plain_value(document))
    print(json.dumps(document, indent=2, allow_nan=False))
    job_answer.write_answer_to_log(document)


def show_answer(
    answer: AnswerT,
    as_json: bool,
    text: Callable[[AnswerT], object],
    document: Callable[[AnswerT], object] = lambda answer: answer,
) -> None:
    """Show the answer of a command: its text or lines for people, or its document as JSON."""
    if as_json:
        print_json(document(answer))
    else:
        shown = text(answer)
        print_text("\n".join(shown) if isinstance(shown, list) else shown)


def _null_if_not_finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _null_if_not_finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_null_if_not_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def create_progress_view(quiet: bool) -> "ProgressView":
    """Return a view that shows a study on the terminal while it runs."""
    from rich.console import Console

    from study.commands.progress_view import ProgressView

    return ProgressView(Console(), quiet)


def show_run_end(outcome: "RunEnd") -> None:
    """Show the end of a run: what came out, where it is, what to type next.

    Raises:
        Exit: see `exit_unless_complete`.
    """
    from study.driver.session import run_end_lines

    print_text("\n".join(run_end_lines(outcome)))
    exit_unless_complete(outcome)


def exit_unless_complete(outcome: "RunEnd") -> None:
    """Exit with the status of a run, unless all is well.

    Raises:
        Exit: 1 if the study failed or MLflow lacks something of it, 130 if it was stopped.
    """
    state = outcome.record.state
    if state != "complete":
        raise typer.Exit(1 if state == "failed" else 130)
    if outcome.untracked_reason:
        raise typer.Exit(1)
