"""The commands about clusters: studies as jobs of one elsewhere, and one on this machine for trying things out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from study.cli.options import Json, Profile, Rename, Set, Spec, print_json
from study.errors import UserError
from study.text.shell import typed

if TYPE_CHECKING:
    from study.cluster.jobs import Jobs

Head = Annotated[str, typer.Option("--address", metavar="URL", help="The head's dashboard, as http://head:8265.")]
Where = Annotated[
    str | None, typer.Option("--address", metavar="URL", help="The head's dashboard; default: this machine.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A study.")]
Python = Annotated[str, typer.Option("--python", metavar="P", help="The cluster's interpreter with the dependencies.")]
Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="KEY", help="Give the job this variable; the cluster's users can read it."),
]
Follow = Annotated[bool, typer.Option("-f", "--follow", help="Show its log until it ends; Ctrl-C only detaches.")]


def submit(
    spec: Spec,
    address: Head,
    follow: Follow = False,
    join: Annotated[bool, typer.Option("--join", help="If the study was already submitted, use that job.")] = False,
    name: Rename = None,
    assignments: Set = None,
    profile: Profile = None,
    env: Env = None,
    python: Python = "python",
    as_json: Json = False,
) -> None:
    """Have a cluster run a study. Example: study submit quickstart --address http://head:8265 --follow"""
    from study.cluster.job_variables import from_this_shell
    from study.cluster.jobs import Jobs
    from study.home.provenance import owner
    from study.spec import load_study

    _check(follow, as_json)
    variables = {"STUDY_OWNER": owner(), **from_this_shell(env or ())}  # else it would be whoever runs the cluster
    study = load_study(spec, assignments or (), profile, name)
    remote = Jobs(address)
    done = remote.submit(study, python, variables, join)
    if as_json:
        print_json({"name": study.name, "job": done.job, "files": done.files, "bytes": done.bytes})
        return
    taken = f"uploaded {done.files} files, {done.bytes / 1e6:.1f} MB" if done.files else "already submitted"
    print(f"{study.name}: job {done.job} at {address}, {taken}")
    if follow:
        _follow(remote, study.name, done.job)
    else:
        print(f"its state: {typed('status', study.name, '--address', address)}")
        print(f"its log:   {typed('logs', study.name, '-f', '--address', address)}")


def jobs(address: Head, as_json: Json = False) -> None:
    """List the studies of a cluster. Example: study jobs --address http://head:8265"""
    from study.cluster.jobs import Jobs
    from study.commands import cluster_status as remote_status

    listed = Jobs(address).all()
    print_json(remote_status.jobs_document(listed)) if as_json else print(remote_status.jobs_table(address, listed))


def logs(
    name: Name,
    follow: Follow = False,
    trial: Annotated[
        int | None, typer.Option("--trial", metavar="T", help="Show one trial only, with its traceback.")
    ] = None,
    address: Where = None,
    as_json: Json = False,
) -> None:
    """Show a study's log, or what became of a trial. Example: study logs quickstart --trial 3"""
    from study.cluster.jobs import Jobs
    from study.commands import logs as trial_log
    from study.home.folder import Home

    if follow and (address is None or trial is not None):
        raise UserError(f"-f follows the log of a study's driver on a cluster: study logs {name} -f --address URL")
    _check(follow, as_json)
    if address is not None and trial is None:
        remote = Jobs(address)
        job = remote.last(name).id
        if follow:
            _follow(remote, name, job)
            return
        log = remote.log(job)
        print_json({"name": name, "job": job, "log": log}) if as_json else print(log, end="")
        return
    if address is None:
        document = trial_log.document(Home.locate().find(name), trial)
    else:
        document = Jobs(address).ask(name, "logs", name, "--trial", str(trial))
    print_json(document) if as_json else print(trial_log.text(document))


def resume(name: str, trials: str | None, address: str) -> None:
    """`study resume` on a cluster elsewhere."""
    from study.cluster.jobs import Jobs

    done = Jobs(address).resume(name, ("--trials", trials) if trials else ())
    print(f"{name}: job {done.job} at {address}; its log: {typed('logs', name, '-f', '--address', address)}")


def status(name: str, address: str, as_json: bool) -> None:
    """`study status` of a study on a cluster elsewhere."""
    from study.cluster.jobs import Jobs
    from study.commands import cluster_status as remote_status

    document = remote_status.document(Jobs(address), name)
    print_json(document) if as_json else print(remote_status.text(document))


def carry_out(address: str, command: list[str], python: str, env: Sequence[str], as_json: bool) -> None:
    """A command that needs no study, on the head of a cluster elsewhere.

    Raises:
        Exit: 1 if it failed there.
    """
    from study.cluster.job_variables import from_this_shell
    from study.cluster.jobs import Jobs

    remote = Jobs(address)
    job = remote.begin([*command, "--json"] if as_json else command, python, from_this_shell(env))
    if as_json:
        print_json(remote.answer(job))
        return
    try:
        for text in remote.follow(job):
            print(text, end="", flush=True)
    except KeyboardInterrupt:
        print(f"\ndetached; {job} goes on at {address}")
        raise typer.Exit(130) from None
    if remote.wait(job).state != "succeeded":
        raise typer.Exit(1)


def up(
    nodes: Annotated[
        int, typer.Option("--nodes", min=1, max=64, help="Nodes beside the head, which runs no trials.")
    ] = 2,
    cpus: Annotated[int, typer.Option("--cpus-per-node", min=1)] = 1,
    gpus: Annotated[int, typer.Option("--gpus-per-node", min=0, help="Ray takes your word for it.")] = 0,
    as_json: Json = False,
) -> None:
    """Start a cluster with token and MLflow, on loopback. Example: study cluster up --nodes 3"""
    from study.cluster.local import LocalCluster
    from study.home.folder import Home
    from study.tracking.opening import check_database

    home = Home.locate()
    check_database(home)
    cluster = LocalCluster.of(home)
    cluster.start(home, nodes, cpus, gpus)
    print_json(cluster.document()) if as_json else print("\n".join(cluster.lines()))


def down() -> None:
    """Stop what study cluster up started. Example: study cluster down"""
    from study.cluster.local import LocalCluster
    from study.home.folder import Home

    cluster = LocalCluster.of(Home.locate())
    count = len(cluster.processes)
    cluster.stop()
    print(f"stopped {count} processes" if count else "nothing to stop")


def cluster_status(as_json: Json = False) -> None:
    """Show what runs of the cluster. Example: study cluster status"""
    from study.cluster.local import LocalCluster
    from study.home.folder import Home

    cluster = LocalCluster.of(Home.locate())
    print_json(cluster.document()) if as_json else print("\n".join(cluster.lines()))


def _check(follow: bool, as_json: bool) -> None:
    """Refuse --json with --follow: a log is not one JSON document.

    Raises:
        UserError: both are given.
    """
    if follow and as_json:
        raise UserError("--json prints one document, --follow the log as it comes. Give only one of them")


def _follow(remote: "Jobs", name: str, job: str) -> None:
    """Show a driver's log until it ends.

    Raises:
        Exit: 1 if the job failed.
    """
    try:
        for text in remote.follow(job):
            print(text, end="", flush=True)
    except KeyboardInterrupt:
        print(f"\ndetached; {name} goes on. Again: {typed('logs', name, '-f', '--address', remote.address)}")
        print(f"To stop it: {typed('stop', name, '--address', remote.address)}")
        raise typer.Exit(130) from None
    ended = remote.wait(job)
    print(f"{name}: job {job} {ended.state}")
    if ended.state == "failed":
        raise typer.Exit(1)
