"""The status of a study on a remote cluster: its job, its trials, the cluster."""

from collections.abc import Sequence
from typing import Any

from study.cluster.job import Job
from study.cluster.ray_lines import ours_alone
from study.commands import status
from study.text.columns import columns
from study.text.moment import moment
from study.text.shell import typed

LONGEST = 300
"""Characters of a job's message that people are shown; Ray appends the end of its log to it."""

LAST = 5
"""Lost nodes that people are shown, counted from the last."""


def document(
    name: str, drivers: Sequence[Job], cluster: dict[str, Any], study: dict[str, Any] | None, reason: str | None
) -> dict[str, Any]:
    """The newest driver of a study, the document of `study status`, and the cluster's resources.

    Of the lost nodes only those since the study's first driver began.

    Args:
        drivers: of the study, the oldest first; at least one.
        cluster: see `study.cluster.nodes.overview`.
        study: None where the study is unknown there, as before a driver has made it; `reason` says why. With both, it
            cannot be read there, and is as it was read before.
    """
    began = min((job.began for job in drivers if job.began), default=float("inf"))
    lost = [node for node in cluster["lost"] if node["ended"] >= began]
    return {
        "name": name,
        "job": _row(drivers[-1]),
        "study": study,
        "reason": reason,
        "cluster": cluster | {"lost": lost},
    }


def text(document: dict[str, Any]) -> str:
    """The same for people."""
    job = document["job"]
    reason = (
        f": {_shortened(job['message'])}" if job["state"] in ("pending", "failed") and job["message"].strip() else ""
    )
    state = f"{job['state']}, place {job['place']} in the queue" if job["place"] else job["state"]
    lines = [f"job       {job['id']}: {state}{reason}"]
    lines += (
        status.lines(document["study"]) if document["study"] else [f"study     not known there: {document['reason']}"]
    )
    if document["study"] and document["reason"]:
        lines.append(f"warning   {document['reason']}")
    return "\n".join([*lines, *_cluster(document["cluster"])])


def jobs_document(jobs: list[Job]) -> list[dict[str, Any]]:
    """A row for each job."""
    return [_row(job) for job in jobs]


def jobs_table(address: str, jobs: list[Job]) -> str:
    """The same for people."""
    if not jobs:
        return f"no studies at {address}; a first one: {typed('submit', 'quickstart', '--address', address)}"
    rows = [("study", "job", "owner", "priority", "state", "submitted")]
    for job in jobs:
        state = f"{job.state}, {job.place}." if job.place else job.state
        rows.append((job.study, job.id, job.owner, str(job.standing.priority), state, moment(job.began)))
    return "\n".join(columns(rows, (28, 34, 12, 9, 13)))


def _cluster(cluster: dict[str, Any]) -> list[str]:
    """Lines about the nodes, the resources in use, and lost nodes."""
    used = ", ".join(_amount(name, **amount) for name, amount in cluster["usage"].items())
    lines = [
        f"cluster   {cluster['nodes']} nodes, {len(cluster['lost'])} lost since it began; in use: {used or 'nothing'}"
    ]
    for node in cluster["lost"][-LAST:]:
        at, reason = moment(node["ended"]), node["why"] or "Ray does not say why"
        lines.append(f"lost      node {node['id'][:12]} at {at}: {reason}")
    return lines


def _amount(name: str, used: float | None, there: float) -> str:
    return f"{'?' if used is None else f'{used:g}'} of {there:g} {name}"


def _shortened(message: str) -> str:
    """Why a job failed: its error line if it has one, otherwise the end of its log or Ray's message."""
    lines = [line.strip() for line in ours_alone(message).splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    line = errors[-1].removeprefix("error: ") if errors else lines[-1] if lines[0].endswith(":") else lines[0]
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} ..."


def _row(job: Job) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": job.id,
        "study": job.study,
        "spec": job.spec,
        "state": job.state,
        "message": job.message,
    }
    row |= {"owner": job.owner, "priority": job.standing.priority, "place": job.place}
    row |= {"share": job.standing.share, "slots": job.standing.slots}
    return {**row, "began": job.began, "ended": job.ended}
