"""Studies as jobs of a Ray cluster that is reached over HTTP, from a machine outside its network.

The first driver of a study is the job `study-NAME`, one that resumes it `study-NAME-2` and so on: if two people submit
the same study at the same moment, Ray tells the second that the job exists.
"""

import os
import re
import shlex
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import study
from study import data
from study.cluster import job_answer, job_log
from study.cluster.dashboard import ClusterDashboard, dashboard_unreachable_error
from study.cluster.driver_job import DRIVER_MODULE, FINAL_TRAINING_DRIVER, DriverJob, driver_job_id, driver_job_metadata
from study.errors import StudyStoppedError, UserError
from study.spec import StudySpec
from study.spec.yaml_document import shipped_studies_folder
from study.text import study_command
from study.upstream import ray_internals
from study.upstream.logging import hide_library_messages
from study.upstream.ray_token import token_refused_error

SUBMITTED_STUDY_FILE = "job-study.yaml"
UPLOADED_CODE_SUFFIXES = (".py", ".yaml", ".j2", ".html", ".css", ".js")
"""Endings of the package's files that are uploaded; caches, notes and stray files are not."""


@contextmanager
def make_upload_folder(spec: StudySpec | None) -> Iterator[Path]:
    """Make a folder of what a job needs, until the block is left.

    It has this package, the shipped study files and the study file. Ray uploads at most 500 MiB; this is about 2.5.

    Raises:
        UserError: its training function was defined in a notebook or a script, or its data are named by their place
            below the current folder.
    """
    if spec is not None and spec.is_function_pickled:
        raise UserError(
            f"{spec.name}: its function was defined in a notebook or a script, and cannot be submitted. Put it into a "
            "module that the cluster's Python can import, and name it in method.function"
        )
    for section in spec.trial_data_sections if spec is not None else ():
        path = Path(str(section.get("path", ""))).expanduser()
        if path.parts and path.exists() and not path.is_absolute() and not (data.data_root() / path).exists():
            raise UserError(
                f"data.path: {path}: is a path from this folder, and data are not uploaded. The head needs them: under "
                f"their whole path, --set data.path={shlex.quote(str(path.resolve()))}, or below its STUDY_DATA"
            )
    folder = Path(tempfile.mkdtemp(prefix="study-upload-"))
    try:
        _copy_package_code(Path(study.__file__).parent, folder / "study")
        _copy_package_code(shipped_studies_folder(), folder / "search_spaces")
        if spec is not None:
            (folder / SUBMITTED_STUDY_FILE).write_text(spec.to_yaml(), encoding="utf-8")
        yield folder
    finally:
        shutil.rmtree(folder)


def count_files_and_bytes(folder: Path) -> tuple[int, int]:
    """Return the number of files in a folder, and their bytes."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


def _copy_package_code(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        inside = path.relative_to(source)
        hidden = any(part.startswith((".", "__pycache__")) for part in inside.parts)
        if path.is_file() and not path.is_symlink() and path.suffix in UPLOADED_CODE_SUFFIXES and not hidden:
            (target / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / inside)


@contextmanager
def convert_ray_errors(address: str) -> Iterator[None]:
    """Raise what Ray's job client raises in the block as an error that a user can act on."""
    from ray.exceptions import RayError

    try:
        yield
    except UserError:
        raise
    except ConnectionError:
        raise dashboard_unreachable_error(address) from None
    except (RayError, RuntimeError, OSError, ValueError) as error:
        text = str(error)
        if re.search(r"status(?: code)? (401|403)|Unauthorized|[Aa]uthentication", text):
            raise token_refused_error(address) from None
        last = text.strip().splitlines()[-1][:500] if text.strip() else repr(error)
        raise UserError(f"--address {address}: {last}") from None


JOB_POLL_INTERVAL_S = 0.5
"""Seconds between two looks at a job that is waited for."""

STUDY_STOP_TIMEOUT_S = 180.0
"""Seconds that the driver of a study gets to stop."""

COMMAND_ANSWER_TIMEOUT_S = 180.0
"""Seconds that a command's answer may take: a job has to start for it, and all cores of the head may be busy."""


@dataclass(frozen=True)
class SubmissionResult:
    """The outcome of `study submit`.

    Attributes:
        job: its id.
        files, bytes: number and bytes of the files that it uploaded.
    """

    job: str
    files: int
    bytes: int


class JobClient:
    """The jobs of a cluster.

    Args:
        address: of the head's dashboard.

    Raises:
        UserError: it does not answer, or refuses the token.
    """

    def __init__(self, address: str) -> None:
        self.address, self.head = address, ClusterDashboard(address)
        for name in ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS"):  # they would override the given address
            os.environ.pop(name, None)
        from ray.job_submission import JobSubmissionClient

        hide_library_messages(*ray_internals.JOB_CLIENT_LOGGERS)
        with convert_ray_errors(address):
            self._client = JobSubmissionClient(address)

    def all_driver_jobs(self) -> list[DriverJob]:
        """Return every study's drivers, the oldest first."""
        return self.head.driver_jobs()

    def jobs_of_study(self, name: str) -> list[DriverJob]:
        """Return the drivers of one study, the oldest first."""
        return sorted((job for job in self.all_driver_jobs() if job.study == name), key=lambda job: job.driver_number)

    def last_job_of_study(self, name: str) -> DriverJob:
        """Return the newest driver of a study.

        Raises:
            UserError: it has none; says which studies have.
        """
        if drivers := self.jobs_of_study(name):
            return drivers[-1]
        there = sorted({job.study for job in self.all_driver_jobs()})
        raise UserError(
            f"{name}: no such study at {self.address}. There: {', '.join(there) or 'none'}. "
            "A restarted head has forgotten its jobs: study submit of the same file continues the study"
        )

    def submit_study(self, spec: StudySpec, python: str, environment: Mapping[str, str]) -> SubmissionResult:
        """Run a study, or resume it where its last driver failed or was stopped, perhaps before it made the study.

        Args:
            python: the interpreter on the cluster that has this project's dependencies.
            environment: variables for the driver and its trials; whoever has the cluster's token can read them.

        Raises:
            UserError: the study is there already, or another one of its name.
        """
        before = self.jobs_of_study(spec.name)
        if before and before[-1].state not in ("failed", "stopped"):
            raise self._name_taken_error(before[-1], spec)
        number = before[-1].driver_number + 1 if before else 1
        command = ["run", SUBMITTED_STUDY_FILE, "--address", "auto", "--or-resume"]
        metadata = driver_job_metadata(spec.name, spec.hash, number, python)
        try:
            return self.submit_job(driver_job_id(spec.name, number), command, metadata, environment, spec)
        except UserError:
            now = self.jobs_of_study(spec.name)
            if len(now) == len(before):
                raise
            raise self._name_taken_error(now[-1], spec) from None  # somebody else was faster

    def _name_taken_error(self, last: DriverJob, spec: StudySpec) -> UserError:
        """Return the error of a study that is not submitted because one of its name is there."""
        if last.spec_hash != spec.hash:
            return UserError(f"{spec.name}: another study of that name is there. Under another name: --name")
        verb, ran, what = ["report"], "ran already", "Its report"
        if last.state != "succeeded":
            verb, ran, what = ["resume"] if last.has_ended else ["logs", "-f"], "was submitted already", "Go on with it"
        how = study_command(*verb, spec.name, "--address", self.address)
        anew = "to run it anew, under another name: --name"
        return UserError(f"{spec.name}: {ran} ({last.id}, {last.state}). {what}: {how}; {anew}")

    def resume_driver(self, command: str, name: str, options: Sequence[str] = ()) -> SubmissionResult:
        """Continue a study by another driver, with the variables of the last one.

        Args:
            command: resume, confirm or ablate.
            options: further ones of this command.

        Raises:
            UserError: it was never submitted, or runs.
        """
        last = self.check_driver_ended(self.last_job_of_study(name))
        metadata = driver_job_metadata(name, last.spec_hash, last.driver_number + 1, last.python, kind=last.driver_kind)
        words = [command, name, "--address", "auto", *options]
        return self.submit_job(driver_job_id(name, last.driver_number + 1), words, metadata, last.environment)

    def check_driver_ended(self, driver: DriverJob) -> DriverJob:
        """Return a driver that is over.

        Raises:
            UserError: it is not.
        """
        if not driver.has_ended:
            how = study_command("stop", driver.study, "--address", self.address)
            raise UserError(f"{driver.study}: runs ({driver.id}). Stop it first: {how}")
        return driver

    def stop_study(self, name: str) -> DriverJob:
        """Ask the driver of a study to stop, and wait until it has.

        Raises:
            UserError: it does not run, or does not stop within `STUDY_STOP_TIMEOUT_S`.
        """
        last = self.last_job_of_study(name)
        if last.has_ended:
            raise UserError(f"{name}: does not run ({last.id}, {last.state})")
        with convert_ray_errors(self.address):
            self._client.stop_job(last.id)
        return self.wait_for_job(last.id, STUDY_STOP_TIMEOUT_S)

    def wait_for_job(self, job: str, patience: float | None = None, expected: str = "stop") -> DriverJob:
        """Wait until a job is over, and return it.

        Args:
            patience: most seconds; None: without limit.
            expected: what the message says that it did not do in time.

        Raises:
            UserError: it is not over in time.
        """
        deadline = None if patience is None else time.monotonic() + patience
        while True:
            with convert_ray_errors(self.address):
                latest = DriverJob.from_ray_job(self._client.get_job_info(job))
            if latest.has_ended:
                return latest
            if deadline and time.monotonic() > deadline:
                of_study = f"Its log: {study_command('logs', latest.study, '--address', self.address)}"
                log = of_study if latest.study else latest.ray_message
                raise UserError(f"{job}: did not {expected} within {patience:.0f} s, is {latest.state}. {log}")
            time.sleep(JOB_POLL_INTERVAL_S)

    def follow_log(self, job: str) -> Iterator[str]:
        """Yield the log of a job as it is written, until the job is over; see `study.cluster.job_log`."""
        yield from job_log.iterate_log_chunks(self._client.tail_job_logs(job), self.address)

    def follow_job(self, job: str, show: Callable[[str], object], study: str = "") -> DriverJob:
        """Show the log of a job as it is written, without colours, and return the ended job.

        Args:
            show: is given what comes of the log.
            study: whose driver it is, if it is one.

        Raises:
            StudyStoppedError: the connection was lost, as where the head ends, and with it the log; says what to do.
        """
        log = self.follow_log(job)
        while True:
            with self._convert_connection_errors(job, study):
                if (piece := next(log, None)) is None:
                    return self.wait_for_job(job)
            show(job_log.ANSI_COLOUR_PATTERN.sub("", piece))

    @contextmanager
    def _convert_connection_errors(self, job: str, study: str) -> Iterator[None]:
        from aiohttp import ClientError

        try:
            yield
        except (ClientError, RuntimeError, OSError, UserError):
            lost = f"the connection to {self.address} was lost"
            if not study:
                raise StudyStoppedError(f"{lost}; {job} may go on there or not") from None
            state = study_command("status", study, "--address", self.address)
            raise StudyStoppedError(
                f"{lost}. {study} may go on or not; no trial that has ended is lost. Once it answers: {state}. "
                "If it was started anew and has forgotten the study: study submit of the same file"
            ) from None

    def run_short_command(self, name: str, *command: str) -> Any:
        """Return the answer, a JSON document, of a short command about a study, run on the cluster where its home is.

        Raises:
            UserError, StudyStoppedError, StartInterruptedError: see `wait_for_answer`.
        """
        last = self.last_job_of_study(name)
        job = self.begin_command([*command, "--json"], last.python, last.environment)
        return self._wait_for_answer_or_stop(job, COMMAND_ANSWER_TIMEOUT_S)

    def run_long_command(self, name: str, *command: str) -> Any:
        """Return the answer as `run_short_command` does, without a time limit, also if the head forgot the drivers."""
        drivers = self.jobs_of_study(name)
        python, environment = (drivers[-1].python, drivers[-1].environment) if drivers else ("python", {})
        return self._wait_for_answer_or_stop(self.begin_command([*command, "--json"], python, environment))

    def _wait_for_answer_or_stop(self, job: str, patience: float | None = None) -> Any:
        try:
            return self.wait_for_answer(job, patience)
        except BaseException:  # Ctrl-C, too
            with suppress(RuntimeError, OSError):
                self._client.stop_job(job)
            raise

    def begin_command(self, command: Sequence[str], python: str, environment: Mapping[str, str]) -> str:
        """Start a command of `study` other than a driver; return its job's id. See `submit_job`."""
        job = f"study-{command[0]}-{uuid.uuid4().hex[:8]}"
        environment = {**environment, job_answer.ANSWER_ID_VARIABLE: job}
        return self.submit_job(job, command, {"python": python}, environment).job

    def wait_for_answer(self, job: str, patience: float | None = None) -> Any:
        """Return the answer of a command that `begin_command` started, once it is over.

        Raises:
            UserError, StudyStoppedError, StartInterruptedError: see `study.cluster.job_answer.read_answer_from_log`; or
                no answer came.
        """
        ended = self.wait_for_job(job, patience, "answer")
        log = self.head.driver_log(job)
        self.delete_job(job)
        return job_answer.read_answer_from_log(ended, log)

    def delete_job(self, job: str) -> None:
        """Remove a job that is over from the cluster's list."""
        with convert_ray_errors(self.address):
            self._client.delete_job(job)

    def submit_job(
        self,
        job: str,
        command: Sequence[str],
        metadata: dict[str, str],
        environment: Mapping[str, str],
        spec: StudySpec | None = None,
    ) -> SubmissionResult:
        """Submit a command of `study`.

        Args:
            metadata: what the job says of itself; at least its `python`.
            spec: the study file that is uploaded with it, `SUBMITTED_STUDY_FILE` there.

        Raises:
            UserError: the cluster does not take it, or there is a job of that id.
        """
        module = DRIVER_MODULE if "study" in metadata else "study"  # a driver starts only if there is memory for it
        line = shlex.join([metadata["python"], "-m", module, *command])
        with make_upload_folder(spec) as folder, convert_ray_errors(self.address):
            files, bytes_ = count_files_and_bytes(folder)
            runtime = {"working_dir": str(folder), "env_vars": dict(environment)}
            self._client.submit_job(entrypoint=line, submission_id=job, runtime_env=runtime, metadata=metadata)
        return SubmissionResult(job, files, bytes_)


def submit_final_training(
    jobs: JobClient, spec: StudySpec, final: StudySpec, options: Sequence[str], environment: Mapping[str, str]
) -> SubmissionResult:
    """Train a configuration on the cluster, or further seeds of a training that is there.

    The job runs with the interpreter and the variables of the training's last driver; a first one with those of the
    study that the configuration was exported from.

    Args:
        spec: the configuration, as it is uploaded.
        final: the training that is made of it.
        options: of `study train`.
        environment: further variables, see `JobClient.submit_study`.

    Raises:
        UserError: the training runs, or the cluster does not take the job.
    """
    own = jobs.jobs_of_study(final.name)
    if own:
        jobs.check_driver_ended(own[-1])
    known = own or jobs.jobs_of_study(str((spec.origin or {}).get("study", spec.name)))
    python, variables = (known[-1].python, known[-1].environment) if known else ("python", {})
    number = own[-1].driver_number + 1 if own else 1
    command = ["train", SUBMITTED_STUDY_FILE, "--name", final.name, *options, "--address", "auto"]
    metadata = driver_job_metadata(final.name, final.hash, number, python, kind=FINAL_TRAINING_DRIVER)
    return jobs.submit_job(driver_job_id(final.name, number), command, metadata, {**variables, **environment}, spec)
