"""Studies as jobs of a Ray cluster that is reached over HTTP, from a machine outside its network.

The first driver of a study is the job `study-NAME`, one that goes on with it `study-NAME-2` and so on: whoever submits
the same study at the same moment is told by Ray that the job is there.
"""

import asyncio
import json
import os
import re
import shlex
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from study.address import check_jobs
from study.cluster import nodes
from study.cluster.job import Job, job_id, tags
from study.cluster.upload import STUDY_FILE, size, upload
from study.errors import UserError
from study.logging import hush
from study.spec import StudySpec
from study.text.shell import typed
from study.upstream import ray_internals

ASK = 0.5
"""Seconds between two looks at a job that is waited for."""

ANSWER = 180.0
"""Seconds that a question may take: a job has to begin for it, and all cores of the head may be busy."""


@dataclass(frozen=True)
class Submitted:
    """What `study submit` did.

    Attributes:
        job: its id.
        files, bytes: what it uploaded; 0 where it joined a job that was there.
    """

    job: str
    files: int = 0
    bytes: int = 0


class Jobs:
    """The jobs of a cluster.

    Args:
        address: of the head's dashboard.

    Raises:
        UserError: it does not answer, or refuses the token.
    """

    def __init__(self, address: str) -> None:
        check_jobs(address)
        for name in ("RAY_API_SERVER_ADDRESS", "RAY_ADDRESS"):  # they would win over what is given
            os.environ.pop(name, None)
        from ray.job_submission import JobSubmissionClient

        hush(*ray_internals.CLIENT_LOGGERS)
        self.address = address
        with _told_to_the_user(address):
            self._client = JobSubmissionClient(address)

    def all(self) -> list[Job]:
        """Every study's drivers, the oldest first."""
        with _told_to_the_user(self.address):
            drivers = [Job.of(details) for details in self._client.list_jobs() if "study" in (details.metadata or {})]
        return sorted(drivers, key=lambda job: (job.began or 0.0, job.number))

    def of(self, name: str) -> list[Job]:
        """The drivers of one study, the oldest first."""
        return sorted((job for job in self.all() if job.study == name), key=lambda job: job.number)

    def last(self, name: str) -> Job:
        """The newest driver of a study.

        Raises:
            UserError: it has none; says which studies have.
        """
        if drivers := self.of(name):
            return drivers[-1]
        there = sorted({job.study for job in self.all()})
        raise UserError(
            f"{name}: no such study at {self.address}. There: {', '.join(there) or 'none'}. "
            "A restarted head has forgotten its jobs: study submit of the same file continues the study"
        )

    def submit(self, spec: StudySpec, python: str, environment: Mapping[str, str], join: bool) -> Submitted:
        """Have a study run, or go on where its last driver failed or was stopped, perhaps before it made the study.

        Args:
            python: the interpreter on the cluster that has this project's dependencies.
            environment: variables for the driver and its trials; whoever has the cluster's token can read them.
            join: where a driver of the same study is there, that one will do.

        Raises:
            UserError: the study is there already, or another one of its name.
        """
        before = self.of(spec.name)
        if before and before[-1].state not in ("failed", "stopped"):
            return self._joined(before[-1], spec, join)
        number = before[-1].number + 1 if before else 1
        command = ["run", STUDY_FILE, "--address", "auto", "--or-resume"]
        metadata = tags(spec.name, spec.hash, number, python)
        try:
            return self._start(job_id(spec.name, number), command, metadata, environment, spec)
        except UserError:
            now = self.of(spec.name)
            if len(now) == len(before):
                raise
            return self._joined(now[-1], spec, join)  # somebody else's was sooner

    def _joined(self, last: Job, spec: StudySpec, join: bool) -> Submitted:
        if last.spec != spec.hash:
            raise UserError(f"{spec.name}: another study of that name is there. Under another name: --name")
        if join:
            return Submitted(last.id)
        verb = ["status"] if last.state == "succeeded" else ["resume"] if last.is_over else ["logs", "-f"]
        how = typed(*verb, spec.name, "--address", self.address)
        raise UserError(f"{spec.name}: was submitted already ({last.id}, {last.state}). Go on with it: {how}")

    def resume(self, name: str, options: Sequence[str] = ()) -> Submitted:
        """Have a study go on, by another driver with the variables of the last one.

        Args:
            options: further ones of `study resume`.

        Raises:
            UserError: it was never submitted, or runs.
        """
        last = self.last(name)
        if not last.is_over:
            raise UserError(f"{name}: runs ({last.id}). Its state: {typed('status', name, '--address', self.address)}")
        number = last.number + 1
        command = ["resume", name, "--address", "auto", *options]
        metadata = tags(name, last.spec, number, last.python)
        return self._start(job_id(name, number), command, metadata, last.environment)

    def stop(self, name: str, patience: float = 180.0) -> Job:
        """Have the driver of a study stop in good order, and wait until it has.

        Raises:
            UserError: it does not run, or does not stop in time.
        """
        last = self.last(name)
        if last.is_over:
            raise UserError(f"{name}: does not run ({last.id}, {last.state})")
        with _told_to_the_user(self.address):
            self._client.stop_job(last.id)
        return self.wait(last.id, patience)

    def wait(self, job: str, patience: float | None = None, expected: str = "stop") -> Job:
        """Until a job is over.

        Raises:
            UserError: it is not in time; says that it did not do what is expected.
        """
        deadline = None if patience is None else time.monotonic() + patience
        while True:
            with _told_to_the_user(self.address):
                latest = Job.of(self._client.get_job_info(job))
            if latest.is_over:
                return latest
            if deadline and time.monotonic() > deadline:
                of_study = f"Its log: {typed('logs', latest.study, '--address', self.address)}"
                log = of_study if latest.study else latest.message
                raise UserError(f"{job}: did not {expected} within {patience:.0f} s, is {latest.state}. {log}")
            time.sleep(ASK)

    def log(self, job: str) -> str:
        """What a job's driver wrote."""
        with _told_to_the_user(self.address):
            return str(self._client.get_job_logs(job))

    def follow(self, job: str) -> Iterator[str]:
        """The same as it comes, until the job is over."""

        async def next_of(lines: Any) -> str | None:
            return await anext(lines, None)

        with asyncio.Runner() as runner:  # Ctrl-C in it closes the connection first
            lines = self._client.tail_job_logs(job)
            while (text := runner.run(next_of(lines))) is not None:
                yield text

    def ask(self, name: str, *command: str) -> Any:
        """What a reading command answers on the cluster, where the home of a study is: its JSON document.

        Raises:
            UserError: what it said, where it failed; or it did not answer in time.
        """
        last = self.last(name)
        job = self.begin([*command, "--json"], last.python, last.environment)
        try:
            return self.answer(job, ANSWER)
        except BaseException:  # Ctrl-C, too
            with suppress(RuntimeError, OSError):
                self._client.stop_job(job)
            raise

    def begin(self, command: Sequence[str], python: str, environment: Mapping[str, str]) -> str:
        """Start a command of `study` other than a driver; gives its job's id. See `submit`."""
        return self._start(f"study-{command[0]}-{uuid.uuid4().hex[:8]}", command, {"python": python}, environment).job

    def answer(self, job: str, patience: float | None = None) -> Any:
        """The JSON document that such a command printed, once it is over.

        Raises:
            UserError: what it said, where it failed; or it did not answer in time.
        """
        ended = self.wait(job, patience, "answer")
        log = self.log(job)
        with _told_to_the_user(self.address):
            self._client.delete_job(job)
        if ended.state != "succeeded":
            error = next((line for line in log.splitlines() if line.startswith("error: ")), log[-2000:])
            raise UserError(error.removeprefix("error: ") or ended.message)
        return _document(log)

    def resources(self) -> dict[str, Any]:
        """The cluster's nodes and what of them is in use, see `study.cluster.nodes`."""
        with _told_to_the_user(self.address):
            return nodes.overview(ray_internals.nodes(self._client))

    def _start(
        self,
        job: str,
        command: Sequence[str],
        metadata: dict[str, str],
        environment: Mapping[str, str],
        spec: StudySpec | None = None,
    ) -> Submitted:
        line = shlex.join([metadata["python"], "-m", "study", *command])
        with upload(spec) as folder, _told_to_the_user(self.address):
            files, bytes_ = size(folder)
            runtime = {"working_dir": str(folder), "env_vars": dict(environment)}
            self._client.submit_job(entrypoint=line, submission_id=job, runtime_env=runtime, metadata=metadata)
        return Submitted(job, files, bytes_)


def _document(log: str) -> Any:
    """The JSON document in a job's log, among what libraries may have written."""
    for bracket in re.finditer(r"^[{\[]", log, re.MULTILINE):
        with suppress(ValueError):
            return json.JSONDecoder().raw_decode(log, bracket.start())[0]
    raise UserError(f"no answer came back: {log[-2000:]}")


@contextmanager
def _told_to_the_user(address: str) -> Iterator[None]:
    """Tell what Ray's client raises as what the user can mend."""
    from ray.exceptions import RayError

    try:
        yield
    except UserError:
        raise
    except ConnectionError:
        raise UserError(f"--address {address}: no Ray dashboard answers there") from None
    except (RayError, RuntimeError, OSError, ValueError) as error:
        text = str(error)
        if re.search(r"status(?: code)? (401|403)|Unauthorized|[Aa]uthentication", text):
            how = (
                "Put the cluster's token into a file of mode 0600 and set RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=FILE"
            )
            raise UserError(f"--address {address}: refuses the token, or none was given. {how}") from None
        last = text.strip().splitlines()[-1][:500] if text.strip() else repr(error)
        raise UserError(f"--address {address}: {last}") from None
