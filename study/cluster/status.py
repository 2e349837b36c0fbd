"""A study on a cluster elsewhere, at a glance: its job, its trials, the cluster."""

from datetime import datetime
from typing import Any

from study.cluster.jobs import Job, Jobs


def document(jobs: Jobs, name: str) -> dict[str, Any]:
    """The newest driver of a study, what `study status` says on the cluster, and what of the cluster is in use.

    Raises:
        UserError: there is no such study, or the cluster does not answer.
    """
    last = jobs.last(name)
    return {"name": name, "job": _row(last), "study": jobs.ask(name, "status", name), "cluster": jobs.resources()}


def text(told: dict[str, Any]) -> str:
    """The same for people."""
    job, study, cluster = told["job"], told["study"], told["cluster"]
    counts = ", ".join(f"{count} {state}" for state, count in study["trials"].items() if count)
    lines = [f"job      {job['id']}: {job['state']}", f"study    {study['state']} ({counts or 'no trial yet'})"]
    if best := study.get("best"):
        lines.append(f"best     trial {best['trial']}: {study['metric']} {best['search_value']:.4f}")
    if pace := study.get("pace"):
        left = "" if pace["remaining"] is None else f", about {pace['remaining'] / 60:.0f} min to go"
        lines.append(f"pace     {pace['epochs_per_minute']:.1f} epochs per minute{left}")
    lost = study.get("lost", 0)
    used = ", ".join(f"{amount['used']:g} of {amount['there']:g} {name}" for name, amount in cluster["usage"].items())
    lines.append(f"cluster  {cluster['nodes']} nodes, in use: {used or 'nothing'}; {lost} run(s) of trials lost")
    return "\n".join(lines)


def jobs_document(jobs: list[Job]) -> list[dict[str, Any]]:
    """A row for each."""
    return [_row(job) for job in jobs]


def jobs_table(address: str, jobs: list[Job]) -> str:
    """The same for people."""
    if not jobs:
        return f"no studies at {address}; a first one: study submit quickstart --address {address}"
    lines = [f"{'study':<28} {'job':<34} {'state':<10} began"]
    for job in jobs:
        began = datetime.fromtimestamp(job.began).strftime("%Y-%m-%d %H:%M") if job.began else "-"
        lines.append(f"{job.study:<28} {job.id:<34} {job.state:<10} {began}")
    return "\n".join(lines)


def _row(job: Job) -> dict[str, Any]:
    told = {"id": job.id, "study": job.study, "spec": job.spec, "state": job.state, "message": job.message}
    return {**told, "began": job.began, "ended": job.ended}
