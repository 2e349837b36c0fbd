"""A cluster's head, read through its dashboard over HTTP with the cluster's token, without Ray."""

import glob
import http.client
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, TypedDict
from urllib.parse import quote, urlencode

from study.cluster.driver_job import DriverJob
from study.cluster_addresses import check_jobs_address
from study.errors import UserError
from study.text import escape_control
from study.upstream import ray_internals
from study.upstream.ray_token import find_token, token_refused_error

ORDERLY_NODE_TERMINATIONS = ("EXPECTED_TERMINATION", "AUTOSCALER_DRAIN_IDLE")
"""Reasons of an end that is no loss: the node was stopped, or had nothing to do. A spot machine that is taken back is
lost, and so is, for Ray, each node that `ray start --block` holds and that gets a SIGTERM."""

RESOURCE_USAGE_PATTERN = re.compile(r"^(\S+)/\S+ (CPU|GPU)(?: |$)", re.MULTILINE)
"""A line of what Ray says of a node's logical resources, the same for both versions of its autoscaler, as `1.0/2.0 CPU`
or `0.25/1.0 GPU (0.25 used of 0.5 reserved in placement groups)`."""


class LostNode(TypedDict):
    """A node that was lost: when it ended, in seconds since the epoch, and why."""

    id: str
    ended: float
    why: str | None


class UsageOfOneResource(TypedDict):
    """What is there of a resource, and what is used of it; None: not known, as in a cluster's first seconds."""

    used: float | None
    there: float


class ClusterNodes(TypedDict):
    """The number of living nodes, the lost ones by their end, and the resources by name."""

    nodes: int
    lost: list[LostNode]
    usage: dict[str, UsageOfOneResource]


def summarise_nodes(answer: dict[str, Any]) -> ClusterNodes:
    """Return the nodes of a cluster.

    Args:
        answer: of the dashboard to `ray_internals.DASHBOARD_NODES_PATH`.

    Raises:
        ValueError: it is another answer.
    """
    data = answer.get("data") or {}
    if "summary" not in data:
        raise ValueError(f"the dashboard does not tell of its nodes: {answer.get('msg', answer)}")
    nodes = [node["raylet"] for node in data["summary"] if node["raylet"].get("state")]
    alive = [node for node in nodes if node["state"] == "ALIVE"]
    there = _sum_amounts_by_name(total for node in alive for total in node.get("resourcesTotal", {}).items())
    lost: list[LostNode] = [  # the dashboard forgets the names of the dead
        {"id": node["nodeId"], "ended": int(node.get("endTimeMs", 0)) / 1000, "why": node.get("stateMessage")}
        for node in nodes
        if node["state"] == "DEAD" and (node.get("deathInfo") or {}).get("reason") not in ORDERLY_NODE_TERMINATIONS
    ]
    lines = (data.get("nodeLogicalResources") or {}).values()
    usages = (usage for text in lines for usage in RESOURCE_USAGE_PATTERN.findall(text))
    used = _sum_amounts_by_name((name, float(amount)) for amount, name in usages)
    return {
        "nodes": len(alive),
        "lost": sorted(lost, key=lambda node: node["ended"]),
        "usage": {name: {"used": used.get(name), "there": there[name]} for name in ("CPU", "GPU") if there.get(name)},
    }


def _sum_amounts_by_name(amounts: Any) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, amount in amounts:
        sums[name] = round(sums.get(name, 0.0) + amount, 4)  # Ray's own precision
    return sums


JOBS_URL_PATH, VERSION_URL_PATH = "/api/jobs/", "/api/version"

RESPONSE_TIMEOUT_S = 20.0
"""Seconds that an answer may take to begin or to go on."""

FILE_DOWNLOAD_TIMEOUT_S = 24 * 3600
"""Seconds that a file may take; Ray by itself cuts it off after 30."""

DOWNLOAD_BLOCK_BYTES = 1 << 16

MAX_JSON_BYTES = 64 << 20
"""Most bytes of an answer in JSON that are read."""


class DashboardUnreachableError(UserError):
    """No server answers at the address."""


class RemoteFileNotFoundError(UserError):
    """The node does not have the file."""


class NodeNotFoundError(UserError):
    """The cluster does not have the node."""


def dashboard_unreachable_error(address: str) -> DashboardUnreachableError:
    """Return the error for an address where nothing answers."""
    is_of_shell = os.environ.get("STUDY_ADDRESS") == address
    gone = ". It is of STUDY_ADDRESS; if its cluster is down: unset STUDY_ADDRESS" if is_of_shell else ""
    return DashboardUnreachableError(f"--address {address}: no Ray dashboard answers there{gone}")


class ClusterDashboard:
    """A cluster's head.

    Args:
        address: of its dashboard.

    Raises:
        UserError: it is no such address, or lacks a token that can be sent there.
    """

    def __init__(self, address: str) -> None:
        check_jobs_address(address)
        self.address = address.rstrip("/")
        sent = find_token() if os.environ.get("RAY_AUTH_MODE") == "token" else None
        self._headers = {"Authorization": f"Bearer {sent}"} if sent else {}

    def driver_jobs(self) -> list[DriverJob]:
        """Return every study's drivers, the oldest first.

        Raises:
            DashboardUnreachableError: nothing answers.
            UserError: it refuses the token, or is no dashboard of Ray.
        """
        told = self._get_json(JOBS_URL_PATH)
        with self._convert_response_errors():
            found = [_to_driver_job(details) for details in told if "study" in (details.get("metadata") or {})]
        return sorted(found, key=lambda job: (job.began or 0.0, job.driver_number))

    def driver_log(self, job: str) -> str:
        """Return what a job's driver wrote; raises as `driver_jobs`."""
        told = self._get_json(f"{JOBS_URL_PATH}{quote(job, safe='')}/logs")
        with self._convert_response_errors():
            return str(told["logs"])

    def nodes_and_resources(self) -> ClusterNodes:
        """Return the cluster's nodes and what of them is in use, see `summarise_nodes`; raises as `driver_jobs`."""
        told = self._get_json(ray_internals.DASHBOARD_NODES_PATH)
        with self._convert_response_errors():
            return summarise_nodes(told)

    def read_log_file(self, node: str, name: str, lines: int = -1, most: int = MAX_JSON_BYTES) -> Iterator[bytes]:
        """Yield a file below a node's logs in blocks.

        Where Ray answers with nothing, its list of files is checked for the file: Ray may not report a missing one, as
        it may learn that the answer ended before it learns why.

        Args:
            lines: number of its last lines that are wanted; -1: all.
            most: bytes that it may have.

        Raises:
            RemoteFileNotFoundError, NodeNotFoundError: the file or the node is not there.
            UserError: as `driver_jobs`, or the file broke off or is longer than `most`.
        """
        query = {"node_id": node, "filename": name, "lines": lines, "timeout": FILE_DOWNLOAD_TIMEOUT_S}
        is_empty = True
        for block in self._read_blocks(f"{ray_internals.DASHBOARD_LOG_FILE_PATH}?{urlencode(query)}", name, most):
            is_empty = False
            yield block
        if is_empty and not self._file_exists(node, name):
            raise RemoteFileNotFoundError(f"{ray_internals.NO_LOG_FILE_ANSWER}: {name}")

    def _file_exists(self, node: str, name: str) -> bool:
        query = urlencode({"node_id": node, "glob": glob.escape(name)})
        told = self._get_json(f"{ray_internals.DASHBOARD_LOG_LIST_PATH}?{query}")
        with self._convert_response_errors():
            return any(name in files for files in told["data"]["result"].values())

    def _read_blocks(self, path: str, name: str, most: int) -> Iterator[bytes]:
        count = 0
        with self._open_url(path) as answer:
            try:
                while block := answer.read1(DOWNLOAD_BLOCK_BYTES):
                    if (count := count + len(block)) > most:
                        raise UserError(f"--address {self.address}: {name} has more than {most} bytes")
                    yield block
                if answer.length:  # Python does not check that an answer has its announced length
                    raise http.client.IncompleteRead(b"", answer.length)
            except (OSError, http.client.HTTPException):
                raise UserError(f"--address {self.address}: {name} broke off. The same command goes on") from None

    def _get_json(self, path: str) -> Any:
        with self._convert_response_errors():
            return json.loads(b"".join(self._read_blocks(path, path, MAX_JSON_BYTES)))

    @contextmanager
    def _convert_response_errors(self) -> Iterator[None]:
        """Raise a UserError in the block for an answer that is not of Ray's dashboard."""
        try:
            yield
        except (OSError, http.client.HTTPException, ValueError, RecursionError, *_UNEXPECTED_RESPONSE_ERRORS):
            raise UserError(f"--address {self.address}: what answers there is no Ray dashboard") from None

    def _open_url(self, path: str) -> Any:
        request = urllib.request.Request(self.address + path, headers=self._headers)
        try:
            return _URL_OPENER.open(request, timeout=RESPONSE_TIMEOUT_S)
        except urllib.error.HTTPError as error:
            raise self._http_error_to_user_error(error, path) from None
        except (OSError, http.client.HTTPException):
            raise dashboard_unreachable_error(self.address) from None

    def _http_error_to_user_error(self, error: urllib.error.HTTPError, path: str) -> UserError:
        """Return the error that an answer with an error's status means."""
        try:
            with error:
                text = escape_control(error.read(2000).decode(errors="replace").strip())
        except (OSError, http.client.HTTPException):
            return dashboard_unreachable_error(self.address)
        if error.code in (401, 403):
            return token_refused_error(self.address)
        if error.code == 500 and text.startswith(ray_internals.NO_LOG_FILE_ANSWER):
            return RemoteFileNotFoundError(text)
        if error.code == 500 and text.startswith(ray_internals.NO_NODE_ANSWER):
            return NodeNotFoundError(text)
        if error.code == 404 and path != VERSION_URL_PATH:
            told = self._get_json(VERSION_URL_PATH)
            with self._convert_response_errors():
                here, there = version("ray"), escape_control(str(told.get("ray_version", "?"))[:40])
            asked = path.partition("?")[0]
            return UserError(f"--address {self.address}: runs Ray {there}, which has no {asked}; here is Ray {here}")
        if text.startswith("<"):
            return UserError(f"--address {self.address}: what answers there is no Ray dashboard (status {error.code})")
        last = text.splitlines()[-1][:500] if text else f"answers with status {error.code}"
        return UserError(f"--address {self.address}: {last}")


def _to_driver_job(details: dict[str, Any]) -> DriverJob:
    """Build a job from what the dashboard says, which has the fields of Ray's client."""
    known = ("submission_id", "metadata", "message", "start_time", "end_time", "runtime_env")
    told = dict.fromkeys((*known, "driver_node_id", "driver_exit_code")) | details
    return DriverJob.from_ray_job(SimpleNamespace(**told | {"status": SimpleNamespace(value=details["status"])}))


class _NoRedirectHandler(urllib.request.HTTPRedirectHandler):
    """Handler that follows no redirect: the token goes to the given address, nowhere else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_UNEXPECTED_RESPONSE_ERRORS = (AttributeError, IndexError, KeyError, TypeError, OverflowError)
"""Errors of reading a document that has another form than expected."""

_URL_OPENER = urllib.request.build_opener(_NoRedirectHandler)
