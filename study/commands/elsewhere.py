"""The studies of a cluster elsewhere, read here: what is new of them is brought, then the same is done as with those of
this home."""

import sys
from collections.abc import Sequence
from typing import Any

from study import ranking
from study.cluster.head import Head, HeadGone
from study.cluster.job import Job
from study.cluster.mirror import Mirror
from study.cluster.queue_state import with_places
from study.cluster.reading import NotMade
from study.commands import cluster_status, status
from study.errors import UserError, nearest
from study.home.folder import Home
from study.home.record import StudyRecord
from study.text.shell import typed


class Elsewhere:
    """A cluster whose studies are read.

    Args:
        address: of the head's dashboard.

    Raises:
        UserError: it is no such address, or lacks a token that can be sent there.
    """

    def __init__(self, address: str) -> None:
        self._head, self._mirror = Head(address), Mirror(Home.locate(), address)
        self.address = self._head.address

    def home(self, names: Sequence[str]) -> Home:
        """A home with these studies, brought up to date. Where the head does not answer, or knows one no more, they
        are as they were when they were last read, which is told on standard error.

        Raises:
            UserError: the cluster refuses the token, has no such study, or it cannot be read.
        """
        try:
            jobs = self._head.jobs()
        except HeadGone:
            if any(self._mirror.known(name) is None for name in names):
                raise
            jobs = None
        for name in dict.fromkeys(names):
            drivers = [job for job in jobs or () if job.study == name]
            if drivers:
                self._mirror.update(self._head, name, drivers)
            elif (known := self._mirror.as_it_was(name)) is not None:
                why = "does not answer" if jobs is None else "does not know it, as a head that was started anew"
                print(f"{name}: as it was on {known.when}; {self.address} {why}", file=sys.stderr)
            else:
                raise self._unknown(name, jobs or [])
        return self._mirror.home

    def status(self, name: str) -> dict[str, Any]:
        """The document of `study.commands.cluster_status`.

        Raises:
            UserError: as `home`; where the head has gone, or was started anew, says what is known and what to do.
        """
        jobs = self._jobs(name)
        drivers = [job for job in jobs if job.study == name]
        if not drivers:
            if self._mirror.known(name):
                error = f"{self.address} does not know {name}: a restarted head has forgotten its jobs"
                raise UserError(f"{error}. {self._told(name)}")
            raise self._unknown(name, jobs)
        study, reason = None, None
        try:
            self._mirror.update(self._head, name, drivers)
            study = status.document(self._mirror.home.find(name)) | {"fetched": None}
        except NotMade as error:
            reason = str(error)
            if known := self._mirror.as_it_was(name):  # its node is gone, and the head does not know yet
                study = status.document(self._mirror.home.find(name)) | {"fetched": None}
                reason = f"as it was on {known.when}; {reason}"
        drivers = with_places(self._head.file, drivers)
        return cluster_status.document(name, drivers, self._head.resources(), study, reason)

    def jobs(self) -> list[Job]:
        """Every study's drivers, with their places in the queue.

        Raises:
            UserError: as `status`, for all studies that were read.
        """
        return with_places(self._head.file, self._jobs(*self._mirror.names()))

    def check(self, name: str) -> None:
        """See that the head answers; raises as `status`."""
        self._jobs(name)

    def overview(self) -> list[dict[str, Any]]:
        """Every study that was submitted or read, as `study.commands.status.overview` tells of one, with `job`: the
        state of its newest driver, None where the head knows none."""
        jobs = self._jobs(*self._mirror.names())
        newest = {job.study: job for job in jobs}
        problems: dict[str, str] = {}
        for name in newest:
            try:
                self._mirror.update(self._head, name, [job for job in jobs if job.study == name])
            except UserError as error:
                problems[name] = str(error)
        for name in {*self._mirror.names()} - {*newest}:
            self._mirror.as_it_was(name)
        read = {row["name"]: row for row in status.overview(self._mirror.home)}
        rows = []
        for name in dict.fromkeys([*newest, *read]):
            job, empty = newest.get(name), dict.fromkeys(("owner", "metric", "best", "began"))
            state = job.state if job else "unreadable"
            row = read.get(name) or {"name": name, "state": state, "trials": {}, **empty}
            rows.append({**row, "job": job.state if job else None, "reason": problems.get(name)})
        return rows

    def table(self, rows: list[dict[str, Any]]) -> str:
        """The same for people."""
        if not rows:
            return (
                f"no studies at {self.address}; a first one: {typed('submit', 'quickstart', '--address', self.address)}"
            )
        lines = [status.table(self._mirror.home, rows)]
        if forgotten := [row["name"] for row in rows if row["job"] is None]:
            lines.append(f"not among the head's jobs, as they were last read: {', '.join(forgotten)}")
        lines += [f"not up to date: {row['reason']}" for row in rows if row["reason"]]
        return "\n".join(lines)

    def _jobs(self, *names: str) -> list[Job]:
        try:
            return self._head.jobs()
        except HeadGone as error:
            told = [words for name in names if (words := self._told(name))]
            raise HeadGone(". ".join([str(error), *told])) from None

    def _told(self, name: str) -> str:
        """What is known of a study from when it was last read, where its ledger lies, and what to do."""
        known = self._mirror.as_it_was(name)
        if known is None:
            return ""
        folder = self._mirror.home.find(name)
        record = StudyRecord.load(folder.ledger_file)
        trials = ", ".join(f"{count} {state}" for state, count in record.counts().items() if count) or "no trials"
        best = ranking.best(record, spec := folder.spec())
        value = f"; best {spec.metric} {best.value:.4f}, trial {best.trial.number}" if best else ""
        address = ("--address", self.address)
        do = (
            f"Its report: {typed('report', name, *address)}"
            if record.state == "complete"
            else f"On a head that runs, this goes on with it: {typed('submit', folder.spec_file, *address)}"
        )
        return (
            f"{name} on {known.when}: {record.state} ({trials}){value}. "
            f"Its ledger: {known.folder}/ledger.jsonl on {known.host}. {do}"
        )

    def _unknown(self, name: str, jobs: Sequence[Job]) -> UserError:
        names, look = sorted({job.study for job in jobs}), typed("fetch", name, "--address", self.address)
        return UserError(
            f"{name}: no such study at {self.address}. {nearest(name, names)}There: {', '.join(names) or 'none'}. A "
            f"restarted head has forgotten its jobs: {look} looks into its home"
        )
