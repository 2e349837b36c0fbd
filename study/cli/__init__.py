"""The `study` command. Each command reads its arguments and makes one call into a module; imports are made there,
so that `study --help` is instant.

Exit status: 0 done; 1 the study failed or had to stop; 2 something given cannot be used; 130 stopped by Ctrl-C.
"""

import errno
import sys
from collections.abc import Callable
from typing import Annotated

import typer

from study import __version__
from study.cli import cluster, data, files, running, studies
from study.errors import Stopped, UserError

app = typer.Typer(
    name="study",
    help="Hyperparameter studies for debiased and fair contrastive learning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
data_app = typer.Typer(help="The data sets: what there is, and getting one onto disk.", no_args_is_help=True)
cluster_app = typer.Typer(help="A Ray cluster of this machine, for trying things.", no_args_is_help=True)

COMMANDS: dict[typer.Typer, dict[str, Callable[..., None]]] = {
    app: {
        "run": running.run,
        "resume": running.resume,
        "stop": cluster.stop,
        "delete": studies.delete,
        "init": files.init,
        "spaces": files.spaces,
        "schema": files.schema,
        "plan": studies.plan,
        "trial": running.trial,
        "list": studies.list_studies,
        "status": studies.show_status,
        "logs": cluster.logs,
        "report": studies.report,
        "compare": studies.compare,
        "reproduce": running.reproduce,
        "export": studies.export,
        "train": running.train,
        "ui": studies.ui,
        "submit": cluster.submit,
        "jobs": cluster.jobs,
    },
    data_app: {"list": data.list_data, "prepare": data.prepare_data},
    cluster_app: {"up": cluster.up, "down": cluster.down, "status": cluster.cluster_status},
}
"""Every command, in the order of the help."""

for group, commands in COMMANDS.items():
    for name, command in commands.items():
        group.command(name)(command)
app.add_typer(data_app, name="data")
app.add_typer(cluster_app, name="cluster")


def main() -> None:
    """Entry point: what the user can mend is one message and exit status 2; Ctrl-C is 130; a full disk is 1."""
    try:
        app(standalone_mode=True)
    except (UserError, Stopped) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1 if isinstance(error, Stopped) else 2) from None
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if not full and error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        print(f"error: {error.filename or 'disk'}: {error.strerror}", file=sys.stderr)
        raise SystemExit(1 if full else 2) from None


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        print(__version__)
        raise typer.Exit()
