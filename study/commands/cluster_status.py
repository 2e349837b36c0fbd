"""A study on a cluster elsewhere, at a glance: its job, its trials, the cluster."""

from typing import Any

from study.cluster.jobs import Job, Jobs
from study.commands import status
from study.errors import UserError
from study.text.moment import moment

LONGEST = 300
"""Characters of a job's message that people are shown; Ray puts the end of its log in it."""

LAST = 5
"""Lost nodes that people are shown, the last ones."""


def document(jobs: Jobs, name: str) -> dict[str, Any]:
    """The newest driver of a study, what `study status` says on the cluster, and what of the cluster is there.

    Of the lost nodes those since its first driver began. Where nothing is known of the study, as before a driver has
    made it, `study` is None and `reason` says why.

    Raises:
        UserError: none of its name was submitted, or the cluster does not answer.
    """
    jobs.last(name)  # what was never submitted is an error
    study, reason = None, None
    try:
        study = jobs.ask(name, "status", name)
    except UserError as error:
        reason = str(error)
    drivers, cluster = jobs.of(name), jobs.resources()  # as they are now: an answer takes seconds
    began = min((job.began for job in drivers if job.began), default=float("inf"))
    cluster["lost"] = [node for node in cluster["lost"] if node["ended"] >= began]
    return {"name": name, "job": _row(drivers[-1]), "study": study, "reason": reason, "cluster": cluster}


def text(told: dict[str, Any]) -> str:
    """The same for people."""
    job = told["job"]
    why = f": {_shortened(job['message'])}" if job["state"] in ("pending", "failed") and job["message"].strip() else ""
    lines = [f"job       {job['id']}: {job['state']}{why}"]
    lines += status.lines(told["study"]) if told["study"] else [f"study     nothing is known of it: {told['reason']}"]
    return "\n".join([*lines, *_cluster(told["cluster"])])


def jobs_document(jobs: list[Job]) -> list[dict[str, Any]]:
    """A row for each."""
    return [_row(job) for job in jobs]


def jobs_table(address: str, jobs: list[Job]) -> str:
    """The same for people."""
    if not jobs:
        return f"no studies at {address}; a first one: study submit quickstart --address {address}"
    lines = [f"{'study':<28} {'job':<34} {'state':<10} began"]
    for job in jobs:
        lines.append(f"{job.study:<28} {job.id:<34} {job.state:<10} {moment(job.began)}")
    return "\n".join(lines)


def _cluster(told: dict[str, Any]) -> list[str]:
    """Nodes that are there, what of them is in use, those that were lost."""
    used = ", ".join(_amount(name, **amount) for name, amount in told["usage"].items())
    found = [f"cluster   {told['nodes']} nodes, {len(told['lost'])} lost since it began; in use: {used or 'nothing'}"]
    for node in told["lost"][-LAST:]:
        found.append(
            f"lost      node {node['id'][:12]} at {moment(node['ended'])}: {node['why'] or 'Ray does not say why'}"
        )
    return found


def _amount(name: str, used: float | None, there: float) -> str:
    return f"{'?' if used is None else f'{used:g}'} of {there:g} {name}"


def _shortened(message: str) -> str:
    """What a job failed of: its error where it tells one, else the end of its log, else what Ray says."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error: ")]
    line = errors[-1].removeprefix("error: ") if errors else lines[-1] if lines[0].endswith(":") else lines[0]
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} ..."


def _row(job: Job) -> dict[str, Any]:
    told = {"id": job.id, "study": job.study, "spec": job.spec, "state": job.state, "message": job.message}
    return {**told, "began": job.began, "ended": job.ended}
