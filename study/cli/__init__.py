"""The `study` command.

Each command reads its arguments and makes one call into a module; imports are made there, so that `study --help` is
instant.

Exit status: 0 done; 1 the study failed or had to stop, or there is a bug; 2 something given cannot be used; 130 stopped
by Ctrl-C, SIGTERM or SIGHUP.
"""

import atexit
import codecs
import errno
import gc
import io
import os
import signal
import sys
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from study import writable_folders
from study.cli import cluster, help, models, preparing, run_commands, study_commands
from study.cluster import job_answer
from study.errors import (
    StartInterruptedError,
    StudyStoppedError,
    UserError,
    closest_spellings,
    disk_remedy,
    find_disk_error,
)
from study.text import print_text
from study.upstream import interrupt
from study.upstream.logging import is_verbose, show_library_messages

COMMAND_BY_SYNONYM = {
    "show": "status",
    "ls": "list",
    "rm": "delete",
    "remove": "delete",
    "start": "run",
    "continue": "resume",
    "results": "report",
    "test": "evaluate",
    "cost": "status",
    "help": "guide",
}
"""Words that users type for a command, and the command."""


class SuggestingCommandGroup(TyperGroup):
    """Commands, of which an unknown one is answered with the one that is meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and (meant := COMMAND_BY_SYNONYM.get(args[0])):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {meant!r}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as refused:
            raise _invalid_number_error(refused) or refused from None
        except UsageError as refused:
            _suggest_option(refused)
            raise


UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""Error of what was typed; Typer does not give it by name."""


def _suggest_option(refused: Any) -> None:
    """Say in an error which option is meant by one that there is not, or which key of a study file."""
    typed, ctx = getattr(refused, "option_name", None), refused.ctx
    if typed is None or ctx is None or not typed.startswith("--"):
        return
    word = typed.removeprefix("--")
    names = [name for param in ctx.command.params for name in param.opts if name.startswith("--")]
    meant = {name.removeprefix("--"): name for name in names}
    if not (near := closest_spellings(word, meant)) and "--set" in names:
        meant = {key.split(".")[-1]: f"--set {key}=..." for key in _keys_taken_for_options()}
        near = closest_spellings(word.replace("-", "_"), meant)
    if near:
        refused.message, refused.possibilities = f"No such option: {typed}. Did you mean {meant[near[0]]!r}?", None


def _keys_taken_for_options() -> list[str]:
    """Return the keys of a study file that users may take for options; of two of one name the last is meant."""
    from study.knobs import read_knobs
    from study.spec.schema import SearchOptions, TrialResources
    from study.training.config import TrainOptions

    search = [f"search.{key}" for key in SearchOptions.model_fields]
    resources = [f"resources.{key}" for key in TrialResources.model_fields]
    return [*search, *resources, *(f"train.{knob.key}" for knob in read_knobs(TrainOptions))]


def _invalid_number_error(refused: typer.BadParameter) -> UserError | None:
    """Return in one line why an option's number cannot be used; None for other values."""
    from pydantic import ValidationError  # as Typer does, where it converts values

    if not isinstance(refused.__cause__, ValidationError) or refused.param is None:
        return None
    detail, name = refused.__cause__.errors()[0], max(refused.param.opts, key=len)
    limits = detail.get("ctx", {})
    if detail["type"].startswith("int_"):
        return UserError(f"{name} {detail['input']}: a whole number is needed")
    for key, bound in (("ge", "at least"), ("le", "at most")):
        if key in limits:
            return UserError(f"{name} {detail['input']}: {bound} {limits[key]} is needed")
    return None


app = typer.Typer(
    cls=SuggestingCommandGroup,
    name="study",
    help="Hyperparameter studies for debiased and fair contrastive learning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
data_app = typer.Typer(help="List the data sets, and get one onto disk.", no_args_is_help=True)
models_app = typer.Typer(help="List networks with published weights, and get them onto disk.", no_args_is_help=True)
cluster_app = typer.Typer(help="A Ray cluster on this machine, for trying things out.", no_args_is_help=True)

COMMANDS_BY_APP: dict[typer.Typer, dict[str, Callable[..., None]]] = {
    app: {
        "run": run_commands.run,
        "resume": run_commands.resume,
        "confirm": run_commands.confirm,
        "ablate": run_commands.ablate,
        "attach": run_commands.attach,
        "stop": study_commands.stop,
        "enqueue": study_commands.enqueue,
        "delete": study_commands.delete,
        "init": preparing.init,
        "spaces": preparing.spaces,
        "schema": preparing.schema,
        "plan": study_commands.plan,
        "trial": run_commands.trial,
        "list": study_commands.list_studies,
        "status": study_commands.show_status,
        "logs": cluster.logs,
        "report": study_commands.report,
        "compare": study_commands.compare,
        "suite": run_commands.suite,
        "reproduce": run_commands.reproduce,
        "export": study_commands.export,
        "train": models.train,
        "predict": models.predict,
        "evaluate": models.evaluate,
        "ui": study_commands.ui,
        "import": study_commands.import_trials,
        "submit": cluster.submit,
        "fetch": cluster.fetch,
        "doctor": help.doctor,
        "guide": help.guide,
    },
    data_app: {"list": preparing.list_data, "prepare": preparing.prepare_data, "export": preparing.export_data},
    models_app: {"list": models.list_models, "prepare": models.prepare_model},
    cluster_app: {"up": cluster.up, "down": cluster.down, "status": cluster.cluster_status},
}
"""Every command, in the order of the help."""

for group, commands in COMMANDS_BY_APP.items():
    for name, command in commands.items():
        group.command(name)(command)
app.command("share", hidden=True)(cluster.share_logs)
app.command("drive", hidden=True)(run_commands.drive_piped_task)
app.add_typer(data_app, name="data")
app.add_typer(models_app, name="models")
app.add_typer(cluster_app, name="cluster")


def main() -> None:
    """Run the command that was typed, and turn each error into a message and an exit status.

    What the user can set right is one message and status 2; Ctrl-C, SIGTERM and SIGHUP are 130; a full disk, or one
    that fails, is 1. Anything else is a bug: its traceback, and a line that says what to do about it. With `--verbose`
    there is always a traceback.
    """
    _open_closed_streams()
    _tolerate_unencodable_output()
    _ignore_closed_terminal()
    writable_folders.set_library_folders()
    if not sys.warnoptions:
        warnings.simplefilter("ignore", FutureWarning)  # these are for developers
    atexit.register(_skip_final_garbage_collection)
    try:
        interrupt.raise_interrupt_on_signals()
        app(standalone_mode=True)
    except KeyboardInterrupt:  # before the command began
        _exit_interrupted("stopped")
    except SystemExit as ended:
        if isinstance(getattr(ended.__context__, "__cause__", None), KeyboardInterrupt):  # no command has answered it
            _exit_interrupted("stopped")
        if ended.code == StartInterruptedError.exit_status:
            # while Python ends it has no handlers any more: a second signal would end it at once
            for number in interrupt.STOP_SIGNALS:
                signal.signal(number, signal.SIG_IGN)
        raise
    except StartInterruptedError as interrupted:
        _exit_interrupted(str(interrupted))
    except Exception as error:
        expected = _as_expected_error(error)
        if _was_interrupted(error) or (expected is None and interrupt.has_stop_signal_come()):
            _exit_interrupted("stopped")
        if expected is None or is_verbose():
            traceback.print_exc()
        told = expected or StudyStoppedError(f"{_error_in_one_line(error)}. {BUG_REPORT_REQUEST}")
        print_text(f"error: {told}", sys.stderr)
        job_answer.write_error_to_log(told)
        raise SystemExit(told.exit_status) from None
    finally:
        atexit.register(_lengthen_thread_switch_interval)  # last, so it runs first


def _open_closed_streams() -> None:
    """Put the null device where standard input, output or error is closed, as it may be under a service manager.

    Python has None for it then, and the next file that is opened would take its place.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, number)
            if null != number:
                os.close(null)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _replace_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Return what is shown for characters that the output's encoding does not have, and where the text goes on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return error.object[error.start : error.end].translate(ASCII_REPLACEMENTS), error.end


ASCII_REPLACEMENTS = defaultdict(lambda: "?", {ord("±"): "+-"})
"""Replacement of a character, by the character's number."""


def _tolerate_unencodable_output() -> None:
    """Replace what standard output and error, of this process and those that it starts, cannot show.

    Where Python takes names of files for another encoding than UTF-8, as with `LC_ALL=C PYTHONUTF8=0`, start it again
    with UTF-8: it would not find files that are listed by their names.
    """
    shown = sys.stdout.encoding or "ascii"
    if codecs.lookup(shown).name != "utf-8":
        os.environ["PYTHONIOENCODING"] = f"{shown}:replace"
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1" and sys.executable:
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    codecs.register_error("study", _replace_unencodable)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="study")


class _ClosableTerminal(io.FileIO):
    """A terminal that drops what is written after it was closed.

    A study is then stopped cleanly, or goes on where no signal stops it.
    """

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return len(data)


def _ignore_closed_terminal() -> None:
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream.isatty():
            raw = io.BufferedWriter(_ClosableTerminal(stream.fileno(), "w", closefd=False))
            setattr(sys, name, io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=True))


def _skip_final_garbage_collection() -> None:
    """Spare Python the search of Ray, MLflow and PyTorch for reference cycles before it ends, which takes seconds.

    Not where Triton is loaded: it would print a list of what was not collected.
    """
    if "triton" not in sys.modules:
        gc.freeze()


def _lengthen_thread_switch_interval() -> None:
    """Let other threads have turns of 0.2 s, not of 5 ms, while Python ends.

    A thread that makes or drops a `weakref.finalize`, as one that opens MLflow's database does, would otherwise make
    Python's loop over them fail.
    """
    sys.setswitchinterval(0.2)
    with suppress(KeyboardInterrupt):  # the command is over
        time.sleep(0.01)  # a thread that waits by the old interval gets its turn now


def _was_interrupted(error: BaseException | None) -> bool:
    """Return whether an interrupt caused an error, as in a library that was being loaded.

    Only chained errors tell it: some libraries, as pydantic's compiled core, turn an interrupt into an error's text.
    """
    while error and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _exit_interrupted(message: str) -> None:
    """End with status 130.

    Python itself would end by SIGINT where the interrupt came during an `exec`, as of a library that is being imported.
    """
    print_text(message, sys.stderr)
    job_answer.write_error_to_log(StartInterruptedError(message))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(StartInterruptedError.exit_status)


BUG_REPORT_REQUEST = "This is a bug in study: please report it, with the traceback above and what `study doctor` prints"


def _as_expected_error(error: Exception) -> UserError | StudyStoppedError | None:
    """Return the error that a command ends by; None for a bug."""
    if isinstance(error, UserError | StudyStoppedError):
        return error
    if problem := find_disk_error(error):
        reason = f"{problem.filename or 'disk'}: {problem.strerror}"
        return StudyStoppedError(f"{reason}. {disk_remedy(problem)}, then type the same command again")
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM):
        return UserError(f"{error.filename or 'disk'}: {error.strerror}")
    return None


def _error_in_one_line(error: Exception) -> str:
    """Return kind and message of an error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":").removesuffix(".")[:300]


@app.callback(invoke_without_command=True)
def _global_options(
    version: Annotated[bool, Option("--version", help="Show the version, and the commit of a checkout.")] = False,
    verbose: Annotated[
        bool, Option("-v", "--verbose", help="Show what libraries log, and the traceback behind an error.")
    ] = False,
) -> None:
    if verbose:
        show_library_messages()
    if version:
        from study.home.provenance import version_line

        print_text(version_line())
        raise typer.Exit()
