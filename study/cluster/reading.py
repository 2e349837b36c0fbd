"""A study on a cluster, read from outside it: where its window is, and its files brought into a folder here."""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from study.cluster.download import LARGEST, LEDGER, Changed, Manifest, Wish, bring
from study.cluster.head import Head, NodeGone, NotThere
from study.cluster.job import Job
from study.cluster.log_share import FOLDER, MANIFEST, PLACE, RENEWAL
from study.errors import UserError
from study.home.fetched import Fetched
from study.home.line import Chain
from study.text import typed

TRIES = 3
"""How often files are asked for that are not what the cluster says: they may be changing."""

JOB = 180.0
"""Seconds that a job which makes a window may take: all cores of the head may be busy."""

LONGEST = 64 << 20
"""Bytes of a manifest that are read."""


class NotMade(UserError):
    """The cluster has no such study, or not yet."""


class Reading:
    """One study on a cluster.

    Args:
        drivers: its jobs, the oldest first; none where the head has forgotten them.
        known: where it was found before.
    """

    def __init__(self, head: Head, name: str, drivers: Sequence[Job], known: Fetched | None = None) -> None:
        self._head, self._name, self._known = head, name, known
        self._last = drivers[-1] if drivers else None
        nodes = [job.node for job in reversed(drivers)] + ([known.node] if known else [])
        self._nodes = list(dict.fromkeys(node for node in nodes if node))
        self._node = ""

    def bring(self, folder: Path, wish: Wish) -> tuple[Fetched, list[str]]:
        """Bring what is new into a folder, which then says where it came from; gives that, and the files that came.

        Raises:
            NotMade: there is no such study, or not yet.
            UserError: see `study.cluster.download.bring`, or the cluster does not answer.
        """
        manifest = self._window()
        for left in reversed(range(TRIES)):
            try:
                came = bring(self._read, manifest, folder, wish)
                break
            except Changed:
                if not left:
                    raise
                manifest = self._renewed()
            except NotThere:
                raise NotMade(f"{self._name}: its files are no more in {manifest.folder} on the cluster") from None
        last = self._last
        found = Fetched(
            address=self._head.address,
            name=self._name,
            job=last.id if last else "",
            state=last.state if last else "",
            at=round(time.time(), 3),
            host=manifest.host,
            node=self._node,
            folder=manifest.folder,
            python=self._python,
            events=_events(folder / LEDGER),
        )
        if self._known and LEDGER not in came and self._known.events:
            found = replace(found, events=self._known.events)  # what came of it later is its own
        found.save(folder)
        return found, came

    @property
    def _python(self) -> str:
        return self._last.python if self._last else self._known.python if self._known else "python"

    def _read(self, name: str, lines: int) -> Iterator[bytes]:
        # `bring` reads no more than was announced
        return self._head.file(self._node, f"{PLACE}/{self._name}/{FOLDER}/{name}", lines, most=LARGEST)

    def _window(self) -> Manifest:
        """Return what there is to bring; where no node that is there has a window, a job makes one."""
        lost = not self._nodes and (self._last is None or self._last.is_over)
        for node in self._nodes:
            self._node = node
            try:
                return self._manifest()
            except NotThere:
                continue
            except NodeGone:
                lost = True
        if not lost or (self._last and not self._last.is_over):
            what = f"{self._last.id}, {self._last.state}" if self._last else "no driver"
            ended = self._last and self._last.is_over
            why = "its driver ended before it made it, or it was deleted" if ended else "its driver has not made it yet"
            raise NotMade(f"{self._name}: no such study on the cluster: {why} ({what})")
        return self._made()

    def _renewed(self) -> Manifest:
        """The same after a while: by its driver, where one runs, else by a job."""
        if self._last and not self._last.is_over:
            time.sleep(1.5 * RENEWAL)
            return self._manifest()
        return self._made()

    def _manifest(self) -> Manifest:
        data = b""
        for block in self._head.file(self._node, f"{PLACE}/{self._name}/{MANIFEST}"):
            data += block
            if len(data) > LONGEST:
                break
        try:
            document: Any = json.loads(data)
        except (ValueError, RecursionError):
            document = None
        return Manifest.of(self._name, document)

    def _made(self) -> Manifest:
        """By a job that makes a window.

        Raises:
            NotMade: there is no such study.
        """
        from study.cluster.jobs import Jobs

        jobs = Jobs(self._head.address)
        job = jobs.begin(["window", self._name, "--json"], self._python, self._last.environment if self._last else {})
        self._node = jobs.wait(job, JOB, "answer").node or ""
        try:
            return Manifest.of(self._name, jobs.answer(job))
        except UserError as error:
            if "no such study" in str(error):
                submit = typed("submit", "FILE", "--address", self._head.address)
                raise NotMade(f"{error} (on the cluster). A first one: {submit}") from None
            raise


def _events(ledger: Path) -> int:
    data = ledger.read_bytes()
    return Chain.at(data[data.rfind(b"\n", 0, -1) + 1 :]).number + 1
