"""Read the studies of a cluster: what is new of them is copied here, then read as those of this home are."""

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from study.cluster.dashboard import ClusterDashboard, ClusterNodes, DashboardUnreachableError
from study.cluster.driver_job import FINAL_TRAINING_DRIVER, DriverJob
from study.cluster.job_client import JobClient
from study.cluster.mirror import RemoteStudyNotFoundError, StudyMirror
from study.commands import export_configurations, final_training, status
from study.commands.status import StudyRow
from study.errors import StudyNotFoundError, UserError, did_you_mean
from study.home.folder import Home, StudyFolder
from study.home.record import StudyRecord
from study.ranking import Results
from study.spec import StudySpec
from study.text import format_time, print_text, study_command

MAX_REASON_CHARACTERS = 300
"""Characters of a job's message that are shown; Ray appends the end of its log to it."""

MAX_SHOWN_LOST_NODES = 5
"""Lost nodes that are shown, the last ones."""


@dataclass(frozen=True)
class DriverJobSummary:
    """A driver's job, as `--json` has it; see `study.cluster.driver_job.DriverJob`."""

    id: str
    study: str
    spec: str
    state: str
    message: str
    owner: str | None
    began: float | None
    ended: float | None


@dataclass(frozen=True)
class RemoteStudyStatus:
    """The newest driver of a study, the study's status, and the cluster's resources.

    Attributes:
        study: None where the cluster does not know the study, as before a driver has made it.
        reason: why there is no `study`, or why it is as it was last read: it cannot be read now.
        cluster: see `study.cluster.dashboard.summarise_nodes`; of the lost nodes those since the first driver began.
    """

    name: str
    job: DriverJobSummary
    study: status.StudyStatus | None
    reason: str | None
    cluster: ClusterNodes


def remote_study_status(
    name: str, drivers: Sequence[DriverJob], cluster: ClusterNodes, study: status.StudyStatus | None, reason: str | None
) -> RemoteStudyStatus:
    """Return the status of a study on a cluster.

    Args:
        drivers: of the study, the oldest first; at least one.
        cluster: with all lost nodes.
    """
    began = min((job.began for job in drivers if job.began), default=float("inf"))
    lost = [node for node in cluster["lost"] if node["ended"] >= began]
    job = drivers[-1]
    about = job.id, job.study, job.spec_hash, job.state, job.ray_message, job.study_owner
    job_summary = DriverJobSummary(*about, job.began, job.ended)
    return RemoteStudyStatus(name, job_summary, study, reason, {**cluster, "lost": lost})


def remote_status_text(remote: RemoteStudyStatus) -> str:
    """Return the lines that tell a user the status of a study on a cluster."""
    job = remote.job
    reason = f": {_failure_reason(job.message)}" if job.state in ("pending", "failed") and job.message.strip() else ""
    lines = [f"job       {job.id}: {job.state}{reason}"]
    lines += status.study_status_lines(remote.study) if remote.study else [f"study     {remote.reason}"]
    if remote.study and remote.reason:
        lines.append(f"warning   {remote.reason}")
    return "\n".join([*lines, *_cluster_lines(remote.cluster)])


def _cluster_lines(cluster: ClusterNodes) -> list[str]:
    """Return lines on the nodes, the resources in use, and lost nodes."""
    used = ", ".join(
        f"{'?' if amount['used'] is None else format(amount['used'], 'g')} of {amount['there']:g} {name}"
        for name, amount in cluster["usage"].items()
    )
    counts = f"{cluster['nodes']} nodes, {len(cluster['lost'])} lost since it began"
    lines = [f"cluster   {counts}; in use: {used or 'nothing'}"]
    for node in cluster["lost"][-MAX_SHOWN_LOST_NODES:]:
        at, reason = format_time(node["ended"]), node["why"] or "Ray does not say why"
        lines.append(f"lost      node {node['id'][:12]} at {at}: {reason}")
    return lines


def _failure_reason(message: str) -> str:
    """Return why a job failed: its error line if it has one, otherwise the end of its log or Ray's message."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    line = errors[-1].removeprefix("error: ") if errors else lines[-1] if lines[0].endswith(":") else lines[0]
    return line if len(line) <= MAX_REASON_CHARACTERS else f"{line[:MAX_REASON_CHARACTERS]} ..."


BEST_FILE_NAME = "best.yaml"
"""Name of the file that the proposed `study export` writes."""


def driver_end_lines(address: str, job: DriverJob) -> list[str]:
    """Return how a study's driver ended, and the commands to type here for its results or to go on with it.

    Args:
        address: of the cluster's dashboard, as it is reached from here.
        job: the driver, which is over.
    """
    name, there = job.study, ("--address", address)
    lines = [f"{name}: job {job.id} {job.state}"]
    if job.state == "succeeded":
        lines.append(f"report     {study_command('report', name, *there)}")
        if job.driver_kind == FINAL_TRAINING_DRIVER:
            lines.append(f"models     {study_command('fetch', name, '--models', *there)}")
            lines.append(f"           then, for files of this machine: {study_command('predict', name, 'INPUTS')}")
        else:
            lines.append(f"best       {study_command('export', name, '-o', BEST_FILE_NAME, *there)}")
            lines.append(f"all of it  {study_command('fetch', name, *there)}")
        # it reads a model and files of this machine
        aside = ", predict aside," if job.driver_kind == FINAL_TRAINING_DRIVER else ""
        take = f"Commands that the log proposes{aside} take"
        if os.environ.get("STUDY_ADDRESS", "").rstrip("/") == address:
            return [*lines, f"{take} the address from STUDY_ADDRESS"]
        return [*lines, f"{take} --address {address} as well; or once: export STUDY_ADDRESS={shlex.quote(address)}"]
    if job.state == "failed" and job.command_exit_status == UserError.exit_status:
        return lines
    return [*lines, f"go on with it: {study_command('resume', name, *there)}"]


def remote_deletion_sentence(jobs: JobClient, name: str) -> str:
    """Return a sentence about what `delete_remote_study` would remove.

    Raises:
        UserError: its driver runs.
    """
    drivers = jobs.jobs_of_study(name)
    if drivers:
        jobs.check_driver_ended(drivers[-1])
    there = f"{len(drivers)} job(s), the last one {drivers[-1].state}" if drivers else "no job is known"
    return f"{name} at {jobs.address}: its folder, its checkpoints and runs in MLflow there, and its jobs: {there}."


def delete_remote_study(jobs: JobClient, name: str) -> int:
    """Remove a study of a cluster: what its home has of it, its drivers from the list of jobs, and its copy here.

    Where no study was made of a submission, its jobs are all that there is.

    Returns:
        The number of drivers.

    Raises:
        UserError: there is neither a study nor a job of this name, it runs, or MLflow there does not answer.
        StudyStoppedError: it failed there.
    """
    drivers = jobs.jobs_of_study(name)
    if drivers:
        jobs.check_driver_ended(drivers[-1])
    try:
        jobs.run_long_command(name, "delete", name, "--yes")
    except StudyNotFoundError:
        if not drivers:
            raise
    for driver in drivers:
        jobs.delete_job(driver.id)
    StudyMirror(Home.locate(), jobs.address).remove_study(name)
    return len(drivers)


class RemoteStudies:
    """Studies of a cluster, read from here.

    Args:
        address: of the head's dashboard.

    Raises:
        UserError: it is no such address, or lacks a token that can be sent there.
    """

    def __init__(self, address: str) -> None:
        self._head, self._mirror = ClusterDashboard(address), StudyMirror(Home.locate(), address)
        self.address = self._head.address

    def update_home(self, names: Sequence[str]) -> Home:
        """Return a home with these studies, brought up to date.

        Where the head does not answer, or no longer knows one, they are as they were last read; standard error says so.

        Raises:
            UserError: the cluster refuses the token, has no such study, or it cannot be read.
        """
        try:
            jobs = self._head.driver_jobs()
        except DashboardUnreachableError:
            if any(self._mirror.known_origin(name) is None for name in names):
                raise
            jobs = None
        for name in dict.fromkeys(names):
            drivers = [job for job in jobs or () if job.study == name]
            if drivers:
                self._mirror.update_study(self._head, name, drivers)
            elif (known := self._mirror.known_origin_with_lease(name)) is not None:
                why = "does not answer" if jobs is None else "does not know it, as a head that was started anew"
                print_text(f"{name}: as it was on {known.download_time_text}; {self.address} {why}", sys.stderr)
            else:
                raise self._no_such_study_error(name, jobs or [])
        return self._mirror.home

    def status(self, name: str) -> RemoteStudyStatus:
        """Return the document of `study status NAME --address URL`.

        Raises:
            UserError: as `update_home`; where the head has gone, or was started again, says what is known and what to
                do.
        """
        jobs = self._driver_jobs(name)
        drivers = [job for job in jobs if job.study == name]
        if not drivers:
            if self._mirror.known_origin(name):
                error = f"{self.address} does not know {name}: a restarted head has forgotten its jobs"
                raise UserError(f"{error}. {self._unreachable_ledger_note(name)}")
            raise self._no_such_study_error(name, jobs)
        study, reason = None, None
        try:
            self._mirror.update_study(self._head, name, drivers)
            study = replace(status.study_status(self._mirror.home.find_study(name)), fetched=None)
        except RemoteStudyNotFoundError as error:
            reason = str(error)
            # its node is lost, and the head has not noticed yet
            if known := self._mirror.known_origin_with_lease(name):
                study = replace(status.study_status(self._mirror.home.find_study(name)), fetched=None)
                reason = f"as it was on {known.download_time_text}; {reason}"
        return remote_study_status(name, drivers, self._head.nodes_and_resources(), study, reason)

    def list_rows(self) -> list[StudyRow]:
        """Return a row for every study that was submitted or read, as `study.commands.status.list_study_rows` does.

        Each has a `job` more: the state of its newest driver, None where the head knows none.
        """
        jobs = self._driver_jobs(*self._mirror.mirrored_study_names())
        newest = {job.study: job for job in jobs}
        problems: dict[str, str] = {}
        for name in newest:
            try:
                self._mirror.update_study(self._head, name, [job for job in jobs if job.study == name])
            except UserError as error:
                problems[name] = str(error)
        for name in {*self._mirror.mirrored_study_names()} - {*newest}:
            self._mirror.known_origin_with_lease(name)
        read = {row["name"]: row for row in status.list_study_rows(self._mirror.home)}
        rows: list[StudyRow] = []
        for name in dict.fromkeys([*newest, *read]):
            job = newest[name].state if name in newest else None
            row = read.get(name) or status.unreadable_row(name, job or "unreadable")
            rows.append({**row, "job": job, "reason": problems.get(name)})
        return rows

    def studies_table(self, rows: Sequence[StudyRow]) -> str:
        """Format the rows of `list_rows` as a table for people."""
        if not rows:
            first = study_command("submit", "quickstart", "--address", self.address)
            return f"no studies at {self.address}; a first one: {first}"
        lines = [status.studies_table(self._mirror.home, rows)]
        if forgotten := [row["name"] for row in rows if row["job"] is None]:
            lines.append(f"not among the head's jobs, as they were last read: {', '.join(forgotten)}")
        outdated = [row for row in rows if row["reason"]]
        lines += [f"{'not up to date: ' if row['began'] else ''}{row['reason']}" for row in outdated]
        return "\n".join(lines)

    def _driver_jobs(self, *names: str) -> list[DriverJob]:
        try:
            return self._head.driver_jobs()
        except DashboardUnreachableError as error:
            notes = [words for name in names if (words := self._unreachable_ledger_note(name))]
            raise DashboardUnreachableError(". ".join([str(error), *notes])) from None

    def _unreachable_ledger_note(self, name: str) -> str:
        """Return what is known of a study since it was last read, where its ledger lies, and what to do."""
        known = self._mirror.known_origin_with_lease(name)
        if known is None:
            return ""
        folder, address = self._mirror.home.find_study(name), ("--address", self.address)
        state = StudyRecord.load(folder.ledger_file).state
        return (
            f"{name} was {state} on {known.download_time_text}: {study_command('report', name, *address)}. "
            f"Its ledger: {known.folder}/ledger.jsonl on {known.host}. On a head that runs, this goes on with it: "
            f"{study_command('submit', folder.spec_file, *address)}"
        )

    def _no_such_study_error(self, name: str, jobs: Sequence[DriverJob]) -> UserError:
        names, look = sorted({job.study for job in jobs}), study_command("fetch", name, "--address", self.address)
        here = "This home has one: --address local. " if Home.locate().study_or_none(name) else ""
        return UserError(
            f"{name}: no such study at {self.address}. {did_you_mean(name, names)}There: {', '.join(names) or 'none'}. "
            f"{here}A restarted head has forgotten its jobs: {look} looks into its home"
        )


def export_from_cluster(address: str, name: str) -> Path | None:
    """Read a study of the cluster, and write what it chose as a file; None: it is a final training.

    Raises:
        UserError: there is no such study, or it is not complete.
    """
    folder = RemoteStudies(address).update_home([name]).find_study(name)
    results = Results.load(folder)
    if results.spec.final_seeds is not None:
        return None
    if results.record.state != "complete" or results.best is None:
        so_far = study_command("export", name, "-o", BEST_FILE_NAME, "--address", address)
        how = f". The best so far: {so_far}" if results.best else ""
        raise UserError(f"{name}: is {results.record.state} on the cluster, not complete{how}")
    export_configurations.export_best(folder, results, folder.best_file)
    return folder.best_file


def check_final_training(jobs: JobClient, final: StudySpec) -> None:
    """Refuse a final training that the cluster would refuse, before a job is submitted.

    Raises:
        UserError: its name belongs to another configuration, or it runs.
    """
    if drivers := jobs.jobs_of_study(final.name):
        jobs.check_driver_ended(drivers[-1])
        if drivers[-1].state == "succeeded":
            final_training.seeds_of_training(fetch_local_copy(jobs, final.name).load_spec(), final, jobs.address)


def final_training_seeds(jobs: JobClient, spec: StudySpec, name: str | None, with_val: bool) -> list[int]:
    """Return the seeds of a final training there where none are named, see `final_training.default_final_seeds`.

    They follow the cluster's copy of this training if it has one, else this home.
    """
    trained = final_training.final_training_spec(spec, range(1), name, with_val).name
    home = Home.locate()
    if jobs.jobs_of_study(trained):
        with suppress(RemoteStudyNotFoundError):
            home = Home(fetch_local_copy(jobs, trained).path.parent)
    return final_training.default_final_seeds(home, spec, name, with_val)


def fetch_local_copy(jobs: JobClient, name: str) -> StudyFolder:
    """Read a study of a cluster, and return its folder here; raise as `RemoteStudies.update_home`."""
    return RemoteStudies(jobs.address).update_home([name]).find_study(name)
