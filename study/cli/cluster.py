"""Commands about clusters: studies as jobs of a remote one, and one on this machine for trying things out."""

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, TypeGuard

import typer
from typer import Argument, Option

from study.cli import options
from study.errors import UserError
from study.text import print_text, study_command

if TYPE_CHECKING:
    from study.cluster.driver_job import DriverJob
    from study.cluster.job_client import JobClient, SubmissionResult
    from study.cluster.local import LocalClusterState
    from study.home.folder import StudyFolder

FollowOption = Annotated[
    bool, Option("-f", "--follow", help="On a cluster: show the log until the end; Ctrl-C detaches.")
]


def is_remote_address(address: str | None, follow: bool = False) -> TypeGuard[str]:
    """Return whether a command's address is that of a cluster's dashboard, so that the command runs there as a job.

    Raises:
        UserError: it is not, and the command is to be followed.
    """
    if address is not None and address.startswith(("http://", "https://")):
        return True
    if follow:
        raise UserError("--follow: shows the log of a job, so it goes with --address http://HEAD:8265")
    return False


def check_follow_without_json(follow: bool, as_json: bool) -> None:
    """Refuse --json with --follow: a log is not one JSON document.

    Raises:
        UserError: both are given.
    """
    if follow and as_json:
        raise UserError("--json prints one document, --follow the log as it comes. Give only one of them")


def resume_on_cluster(
    address: str,
    command: list[str],
    name: str,
    follow: bool,
    as_json: bool = False,
    check: Callable[["StudyFolder"], object] | None = None,
) -> None:
    """Have a study of a cluster go on by another driver.

    Args:
        command: resume, confirm or ablate, and its options.
        check: refuses what the driver would refuse, by the study as it is read there.

    Raises:
        Exit: see `follow_driver`.
    """
    from study.cluster.job_client import JobClient
    from study.commands import remote_studies

    check_follow_without_json(follow, as_json)
    remote = JobClient(address)
    remote.check_driver_ended(remote.last_job_of_study(name))
    if check is not None:
        check(remote_studies.fetch_local_copy(remote, name))
    show_submitted_driver(remote, name, remote.resume_driver(command[0], name, command[1:]), follow, as_json)


def show_submitted_driver(
    remote: "JobClient", name: str, done: "SubmissionResult", follow: bool, as_json: bool = False
) -> None:
    """Show a driver that was submitted: as a document, or with its log, or with how to see it.

    Raises:
        Exit: see `follow_driver`.
    """
    if as_json:
        options.print_json({"name": name, "job": done.job, "files": done.files, "bytes": done.bytes})
        return
    print_text(f"{name}: job {done.job} at {remote.address}, uploaded {done.files} files, {done.bytes / 1e6:.1f} MB")
    if follow:
        follow_driver(remote, name, done.job)
        return
    print_text(f"its state: {study_command('status', name, '--address', remote.address)}")
    print_text(f"its log:   {study_command('logs', name, '-f', '--address', remote.address)}")


def follow_driver(remote: "JobClient", name: str, job: str) -> None:
    """Show a driver's log until it ends, then what to type here.

    Raises:
        Exit: with the exit status of its command; 130 too where Ctrl-C detached.
        StudyStoppedError: the connection was lost.
    """
    from study.commands.remote_studies import driver_end_lines

    there = "--address", remote.address
    again, stop = study_command("logs", name, "-f", *there), study_command("stop", name, *there)
    ended = _show_log_until_end(remote, job, name, f"{name} goes on. Again: {again}\nTo stop it: {stop}")
    print_text("\n".join(["", *driver_end_lines(remote.address, ended)]))
    if ended.command_exit_status:
        raise typer.Exit(ended.command_exit_status)


def _show_log_until_end(remote: "JobClient", job: str, study: str, detached: str) -> "DriverJob":
    """Show a job's log until it ends, and return the ended job.

    Args:
        study: whose driver it is, if it is one.
        detached: what Ctrl-C is answered with.

    Raises:
        Exit: Ctrl-C detached.
        StudyStoppedError: the connection was lost.
    """
    try:
        return remote.follow_job(job, partial(print_text, end=""), study)
    except KeyboardInterrupt:
        print_text(f"\ndetached; {detached}")
        raise typer.Exit(130) from None


def to_option_words(**given: object) -> list[str]:
    """Return options as words of a command line, without those at their default.

    `top=3` is `--top 3`, `rules=True` is `--rules`; an option that may be repeated has a list.
    """
    words = []
    for name, value in given.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not None and value is not False:
            for one in value if isinstance(value, list) else [value]:
                words += [f"--{name}", str(one)]
    return words


RemoteStudyArgument = Annotated[str, Argument(metavar="NAME", help="A study.")]
PythonOption = Annotated[str, Option("--python", metavar="P", help="The cluster's interpreter with the dependencies.")]
ShellVariablesOption = Annotated[
    list[str] | None,
    Option("--env", metavar="KEY", help="Give the job this shell's variable; the cluster's users can read it."),
]


def submit(
    spec: options.SpecArgument,
    address: options.DashboardOption,
    follow: FollowOption = False,
    name: options.NameOption = None,
    assignments: options.SetOption = None,
    profile: options.ProfileOption = None,
    env: ShellVariablesOption = None,
    python: PythonOption = "python",
    as_json: options.JsonOption = False,
) -> None:
    """Run a study on a cluster, as a job. Example: study submit quickstart --address http://head:8265 --follow"""
    from study.cluster.driver_job import select_shell_variables
    from study.cluster.job_client import JobClient
    from study.home.provenance import study_owner
    from study.spec import load_study

    check_follow_without_json(follow, as_json)
    # else the owner is who runs the cluster
    variables = {"STUDY_OWNER": study_owner(), **select_shell_variables(env or ())}
    study = load_study(spec, assignments or (), profile, name)
    remote = JobClient(address)
    done = remote.submit_study(study, python, variables)
    show_submitted_driver(remote, study.name, done, follow, as_json)


def logs(
    name: RemoteStudyArgument,
    follow: FollowOption = False,
    trial: Annotated[
        int | None, Option("--trial", metavar="T", help="Show one trial only, with its traceback.")
    ] = None,
    address: options.OptionalDashboardOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show a study's log, or what became of a trial. Example: study logs quickstart --trial 3"""
    from study.cluster.job_client import JobClient
    from study.cluster.job_log import ANSI_COLOUR_PATTERN
    from study.commands import logs as history
    from study.commands.remote_studies import RemoteStudies
    from study.home.folder import Home

    if follow and (address is None or trial is not None):
        raise UserError(f"-f follows the log of a study's driver on a cluster: study logs {name} -f --address URL")
    check_follow_without_json(follow, as_json)
    if address is not None and trial is None:
        remote = JobClient(address)
        job = remote.last_job_of_study(name).id
        if follow:
            follow_driver(remote, name, job)
            return
        log = ANSI_COLOUR_PATTERN.sub("", remote.head.driver_log(job))
        options.print_json({"name": name, "job": job, "log": log}) if as_json else print_text(log, end="")
        return
    home = Home.locate() if address is None else RemoteStudies(address).update_home([name])
    document = history.read_history(home.find_study(name), trial)
    options.show_answer(document, as_json, history.event_history_text)


def fetch(
    name: RemoteStudyArgument,
    address: options.DashboardOption,
    models: Annotated[bool, Option("--models", help="Also the weights of its models.")] = False,
    rename: Annotated[
        str | None, Option("--name", metavar="N", help="Its name here; default: as on the cluster.")
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Copy a cluster's study into this home, or what is new of it. Example: study fetch quickstart --models"""
    from study.commands import fetch as fetching
    from study.home.folder import Home

    done = fetching.fetch_study(Home.locate(), name, address, models, rename)
    options.show_answer(done, as_json, fetching.fetch_outcome_lines, fetching.fetch_outcome_to_dict)


def share_logs(name: RemoteStudyArgument, as_json: options.JsonOption = False) -> None:
    """Show a study to whoever has the cluster's token; for the jobs of a cluster."""
    from study.cluster import log_share
    from study.home.folder import Home

    options.show_answer(log_share.create_share_of_study(Home.locate(), name), as_json, itemgetter("folder"))


def run_study_command_on_head(address: str, command: list[str], python: str, env: Sequence[str], as_json: bool) -> None:
    """Run a command that needs no study on the head of a cluster.

    Raises:
        Exit: 1 if it failed there.
    """
    from study.cluster.driver_job import select_shell_variables
    from study.cluster.job_client import JobClient

    remote = JobClient(address)
    job = remote.begin_command([*command, "--json"] if as_json else command, python, select_shell_variables(env))
    if as_json:
        options.print_json(remote.wait_for_answer(job))
        return
    if _show_log_until_end(remote, job, "", f"{job} goes on at {address}").state != "succeeded":
        raise typer.Exit(1)


def up(
    nodes: Annotated[int, Option("--nodes", min=1, max=64, help="Nodes beside the head, which runs no trials.")] = 2,
    cpus: Annotated[int, Option("--cpus-per-node", min=1)] = 1,
    gpus: Annotated[
        int, Option("--gpus", metavar="N", min=0, help="Number of this machine's GPUs that the nodes share.")
    ] = 0,
    as_json: options.JsonOption = False,
) -> None:
    """Start a cluster on loopback, with token and MLflow. Example: study cluster up --nodes 3"""
    from rich.console import Console

    from study.commands import local_cluster
    from study.home.folder import Home

    cluster = local_cluster.start_cluster(Home.locate(), nodes, cpus, gpus, None if as_json else Console())
    _show_cluster_status(cluster, as_json)


def _show_cluster_status(cluster: "LocalClusterState", as_json: bool) -> None:
    from study.commands import local_cluster

    options.show_answer(cluster, as_json, local_cluster.cluster_status_lines, local_cluster.local_cluster_status)


def down() -> None:
    """Stop what study cluster up started. Example: study cluster down"""
    from study.commands import local_cluster
    from study.home.folder import Home

    print_text(local_cluster.stop_cluster(Home.locate()))


def cluster_status(as_json: options.JsonOption = False) -> None:
    """Show what runs of the cluster that study cluster up started. Example: study cluster status"""
    from study.cluster.local import LocalCluster
    from study.home.folder import Home

    _show_cluster_status(LocalCluster.of_home(Home.locate()), as_json)
