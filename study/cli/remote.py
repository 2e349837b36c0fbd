"""Where --address names a cluster elsewhere: a command there, as a job, followed from here if wished."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, TypeGuard

import typer

from study.cli.options import HERE, print_json
from study.errors import UserError
from study.text import tell, typed

if TYPE_CHECKING:
    from study.cluster.jobs import Jobs, Submitted

Follow = Annotated[
    bool, typer.Option("-f", "--follow", help="Of a cluster elsewhere: show the log until the end; Ctrl-C detaches.")
]

NotThere = Annotated[
    str | None, typer.Option("--address", metavar="URL", help="Not taken: says what to type for a cluster elsewhere.")
]


def check_here(address: str | None, instead: str) -> None:
    """Refuse an address for a command that runs here alone.

    Raises:
        UserError: says what to type instead.
    """
    if address not in (None, HERE):
        raise UserError(f"--address {address}: this command runs on this machine alone. {instead}")


def is_elsewhere(address: str | None, follow: bool = False) -> TypeGuard[str]:
    """Return whether a command's address is that of a cluster elsewhere, which has jobs; without one nothing can be
    followed.

    Raises:
        UserError: it is not, and is to be followed.
    """
    if address is not None and address.startswith(("http://", "https://")):
        return True
    if follow:
        raise UserError("--follow: shows the log of a job, so it goes with --address http://HEAD:8265")
    return False


def check_follow(follow: bool, as_json: bool) -> None:
    """Refuse --json with --follow: a log is not one JSON document.

    Raises:
        UserError: both are given.
    """
    if follow and as_json:
        raise UserError("--json prints one document, --follow the log as it comes. Give only one of them")


def go_on(
    address: str,
    command: list[str],
    name: str,
    follow: bool,
    as_json: bool = False,
    check: Callable[["Jobs"], object] = lambda remote: None,
) -> None:
    """Have a study of a cluster go on by another driver.

    Args:
        command: resume, confirm or ablate, and its options.
        check: refuses what the driver would refuse, see `study.commands.on_cluster`.

    Raises:
        Exit: see `follow_driver`.
    """
    from study.cluster.jobs import Jobs

    check_follow(follow, as_json)
    remote = Jobs(address)
    remote.idle(remote.last(name))
    check(remote)
    show_submitted(remote, name, remote.go_on(command[0], name, command[1:]), follow, as_json)


def show_submitted(
    remote: "Jobs", name: str, done: "Submitted", follow: bool, as_json: bool = False, with_rays: bool = False
) -> None:
    """A driver that was submitted: as a document, or with its log, or with how to see it.

    Args:
        with_rays: see `follow_driver`.

    Raises:
        Exit: see `follow_driver`.
    """
    if as_json:
        print_json({"name": name, "job": done.job, "files": done.files, "bytes": done.bytes})
        return
    taken = f"uploaded {done.files} files, {done.bytes / 1e6:.1f} MB" if done.files else "already submitted"
    tell(f"{name}: job {done.job} at {remote.address}, {taken}")
    if follow:
        follow_driver(remote, name, done.job, with_rays)
        return
    tell(f"its state: {typed('status', name, '--address', remote.address)}")
    tell(f"its log:   {typed('logs', name, '-f', '--address', remote.address)}")


def follow_driver(remote: "Jobs", name: str, job: str, with_rays: bool = False) -> None:
    """Show a driver's log until it ends, then what to type here.

    Args:
        with_rays: Ray's own lines, too.

    Raises:
        Exit: with the exit status that its command has at home; 130 too where Ctrl-C detached.
        Stopped: the connection was lost.
    """
    from study.cluster.following import followed, outcome
    from study.commands.on_cluster import closing_lines

    try:
        for text in followed(remote, job, name, with_rays):
            tell(text, end="")
        ended = outcome(remote, job, name)
    except KeyboardInterrupt:
        tell(f"\ndetached; {name} goes on. Again: {typed('logs', name, '-f', '--address', remote.address)}")
        tell(f"To stop it: {typed('stop', name, '--address', remote.address)}")
        raise typer.Exit(130) from None
    tell("\n".join(["", *closing_lines(remote.address, ended)]))
    if ended.exit_status:
        raise typer.Exit(ended.exit_status)


def options(**given: object) -> list[str]:
    """Options of a command as they were given, those at their default left out: `top=3` is `--top 3`, `rules=True` is
    `--rules`."""
    words = []
    for name, value in given.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words
