"""A stand-in for the dashboard of a cluster's head: what Ray answers of jobs, nodes and files below a node's logs, for
tests of what is done with the answers. `tests/e2e/test_laptop.py` reads the same through Ray itself."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from serving import Silent, serving

from study.upstream import ray_internals

NODE, TOKEN = "a" * 56, "t" * 32
NODES = {"data": {"summary": [{"raylet": {"nodeId": NODE, "state": "ALIVE", "resourcesTotal": {"CPU": 2.0}}}]}}


def job(name: str, state: str = "RUNNING", number: int = 1, node: str | None = NODE) -> dict[str, Any]:
    """A driver of a study, as the dashboard tells of it."""
    metadata = {"study": name, "spec": "hash", "number": str(number), "python": "python"}
    name = f"study-{name}" if number == 1 else f"study-{name}-{number}"
    told = {"submission_id": name, "status": state, "message": "", "metadata": metadata, "driver_node_id": node}
    return {**told, "start_time": 1000 * number, "end_time": None, "runtime_env": {}}


class StandIn:
    """A head that stands in for one.

    Attributes:
        logs: of its only node.
        jobs: as `job` gives them.
        ray: the version that it tells of.
        gone: it answers nothing.
        cut: after so many bytes of a file the connection breaks off, None: never.
        asked: the files that were asked for, each with its lines.
    """

    def __init__(self, logs: Path) -> None:
        self.logs, self.jobs, self.ray = logs, list[dict[str, Any]](), "2.60.0"
        self.gone = False
        self.cut: int | None = None
        self.asked: list[tuple[str, int]] = []
        self.address = ""

    def answer(self, path: str) -> tuple[int, bytes]:
        """Status and body."""
        parts = urlsplit(path)
        if parts.path == "/api/version":
            return 200, json.dumps({"ray_version": self.ray}).encode()
        if self.ray != "2.60.0":
            return 404, b"404: Not Found"
        if parts.path == "/api/jobs/":
            return 200, json.dumps(self.jobs).encode()
        if parts.path == "/nodes":
            return 200, json.dumps(NODES).encode()
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if query["node_id"] != NODE:
            return 500, f"{ray_internals.NO_NODE_ANSWER}: {query['node_id']} doesn't exist.".encode()
        file, lines = self.logs / query["filename"], int(query["lines"])
        self.asked.append((query["filename"].rpartition("folder/")[2], lines))
        if not file.is_file():
            return 500, f"{ray_internals.NO_LOG_FILE_ANSWER} at: {file}".encode()
        data = file.read_bytes()
        return 200, data if lines == -1 else b"".join(data.splitlines(keepends=True)[-lines:])


@contextmanager
def stand_in(logs: Path) -> Iterator[StandIn]:
    """One that answers on loopback until the block ends."""
    head = StandIn(logs)

    class Handler(Silent):
        def answer(self) -> None:
            if head.gone:
                self.close_connection = True
                return
            given = self.headers.get("Authorization", "")
            if given != f"Bearer {TOKEN}":
                status, body = (403, b"Forbidden") if given else (401, b"Unauthorized")
            else:
                status, body = head.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            is_file = status == 200 and self.path.startswith(ray_internals.DASHBOARD_LOG_FILE_PATH)
            self.wfile.write(body[: head.cut] if is_file else body)

    with serving(Handler) as head.address:
        yield head
