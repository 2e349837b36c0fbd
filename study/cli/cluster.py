"""The commands about clusters: studies as jobs of one elsewhere, and one on this machine for trying things out."""

from collections.abc import Sequence
from typing import Annotated

import typer

from study.cli.options import Head, Json, Profile, Rename, Set, Spec, Where, print_json
from study.cli.remote import Follow, check_follow, follow_driver, show_submitted
from study.errors import UserError
from study.text import tell

Name = Annotated[str, typer.Argument(metavar="NAME", help="A study.")]
Python = Annotated[str, typer.Option("--python", metavar="P", help="The cluster's interpreter with the dependencies.")]
Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="KEY", help="Give the job this variable; the cluster's users can read it."),
]
Ray = Annotated[bool, typer.Option("--ray", help="Show Ray's own lines of the log as well.")]


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
    priority: Annotated[
        int, typer.Option("--priority", min=-1000, max=1000, help="Of its turn to begin; higher ones first.")
    ] = 0,
    share: Annotated[
        float, typer.Option("--share", min=0.01, max=100, help="Of the trials at once, beside other studies' 1.")
    ] = 1.0,
    slots: Annotated[int | None, typer.Option("--max-slots", min=1, help="Trials at once at most.")] = None,
    ray: Ray = False,
    as_json: Json = False,
) -> None:
    """Have a cluster run a study. Example: study submit quickstart --address http://head:8265 --follow"""
    from study.cluster.job import from_this_shell
    from study.cluster.jobs import Jobs
    from study.home.driver_queue import Standing
    from study.home.provenance import owner
    from study.spec import load_study

    check_follow(follow, as_json)
    if ray and not follow:
        raise UserError("--ray: is about the log, which --follow shows")
    variables = {"STUDY_OWNER": owner(), **from_this_shell(env or ())}  # else it would be whoever runs the cluster
    study = load_study(spec, assignments or (), profile, name)
    remote = Jobs(address)
    done = remote.submit(study, python, variables, join, Standing(priority, share, slots))
    show_submitted(remote, study.name, done, follow, as_json, ray)


def jobs(address: Head, as_json: Json = False) -> None:
    """List the studies of a cluster. Example: study jobs --address http://head:8265"""
    from study.commands import on_cluster
    from study.commands.on_cluster import Elsewhere

    listed = Elsewhere(address).jobs()
    print_json(on_cluster.jobs_document(listed)) if as_json else tell(on_cluster.jobs_table(address, listed))


def logs(
    name: Name,
    follow: Follow = False,
    trial: Annotated[
        int | None, typer.Option("--trial", metavar="T", help="Show one trial only, with its traceback.")
    ] = None,
    address: Where = None,
    ray: Ray = False,
    as_json: Json = False,
) -> None:
    """Show a study's log, or what became of a trial. Example: study logs quickstart --trial 3"""
    from study.cluster.following import ours_alone
    from study.cluster.head import HeadGone
    from study.cluster.jobs import Jobs
    from study.commands import logs as trial_log
    from study.commands.on_cluster import Elsewhere
    from study.home.folder import Home

    if follow and (address is None or trial is not None):
        raise UserError(f"-f follows the log of a study's driver on a cluster: study logs {name} -f --address URL")
    check_follow(follow, as_json)
    if ray and (address is None or trial is not None):
        raise UserError(f"--ray: is about the log of a driver on a cluster: study logs {name} --ray --address URL")
    if address is not None and trial is None:
        try:
            remote = Jobs(address)
        except HeadGone:
            Elsewhere(address).check(name)
            raise
        job = remote.last(name).id
        if follow:
            follow_driver(remote, name, job, ray)
            return
        log = remote.log(job) if ray else ours_alone(remote.log(job))
        print_json({"name": name, "job": job, "log": log}) if as_json else tell(log, end="")
        return
    home = Home.locate() if address is None else Elsewhere(address).home([name])
    document = trial_log.document(home.find(name), trial)
    print_json(document) if as_json else tell(trial_log.text(document))


def fetch(
    name: Name,
    address: Head,
    models: Annotated[bool, typer.Option("--models", help="Also the weights of its models.")] = False,
    rename: Annotated[
        str | None, typer.Option("--name", metavar="N", help="Its name here; default: as on the cluster.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Bring a cluster's study into this home, or what is new of it. Example: study fetch quickstart --models"""
    from study.commands import fetch as fetching
    from study.home.folder import Home

    done = fetching.fetch(Home.locate(), name, address, models, rename)
    print_json(fetching.to_document(done)) if as_json else tell("\n".join(fetching.words(done)))


def window(name: Name, as_json: Json = False) -> None:
    """Show a study to who has the cluster's token; for the jobs of a cluster."""
    from study.cluster import log_share as windows
    from study.home.folder import Home

    document = windows.make(Home.locate(), name)
    print_json(document) if as_json else tell(document["folder"])


def status(name: str, address: str, as_json: bool) -> None:
    """`study status` of a study on a cluster elsewhere."""
    from study.commands import on_cluster
    from study.commands.on_cluster import Elsewhere

    document = Elsewhere(address).status(name)
    print_json(document) if as_json else tell(on_cluster.text(document))


def carry_out(address: str, command: list[str], python: str, env: Sequence[str], as_json: bool) -> None:
    """A command that needs no study, on the head of a cluster elsewhere.

    Raises:
        Exit: 1 if it failed there.
    """
    from study.cluster.following import followed, outcome
    from study.cluster.job import from_this_shell
    from study.cluster.jobs import Jobs

    remote = Jobs(address)
    job = remote.begin([*command, "--json"] if as_json else command, python, from_this_shell(env))
    if as_json:
        print_json(remote.answer(job))
        return
    try:
        for text in followed(remote, job):
            tell(text, end="")
        ended = outcome(remote, job)
    except KeyboardInterrupt:
        tell(f"\ndetached; {job} goes on at {address}")
        raise typer.Exit(130) from None
    if ended.state != "succeeded":
        raise typer.Exit(1)


def up(
    nodes: Annotated[
        int, typer.Option("--nodes", min=1, max=64, help="Nodes beside the head, which runs no trials.")
    ] = 2,
    cpus: Annotated[int, typer.Option("--cpus-per-node", min=1)] = 1,
    gpus: Annotated[
        int, typer.Option("--gpus", metavar="N", min=0, help="Of this machine's GPUs, so many for all nodes together.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Start a cluster with token and MLflow, on loopback. Example: study cluster up --nodes 3"""
    from rich.console import Console

    from study.commands import local_cluster
    from study.home.folder import Home

    cluster = local_cluster.up(Home.locate(), nodes, cpus, gpus, None if as_json else Console())
    print_json(local_cluster.document(cluster)) if as_json else tell("\n".join(local_cluster.lines(cluster)))


def down() -> None:
    """Stop what study cluster up started. Example: study cluster down"""
    from study.commands import local_cluster
    from study.home.folder import Home

    tell(local_cluster.down(Home.locate()))


def cluster_status(as_json: Json = False) -> None:
    """Show what runs of the cluster. Example: study cluster status"""
    from study.cluster.local import LocalCluster
    from study.commands import local_cluster
    from study.home.folder import Home

    cluster = LocalCluster.of(Home.locate())
    print_json(local_cluster.document(cluster)) if as_json else tell("\n".join(local_cluster.lines(cluster)))
