"""The end of a job of a cluster, for who followed it from elsewhere: what to type there."""

import shlex

from study.cluster.job import FINAL, SUITE, UNUSABLE, Job
from study.text.shell import typed

BEST = "best.yaml"
"""The file of the best configuration that is proposed."""


def closing_lines(address: str, job: Job) -> list[str]:
    """How a study's driver ended, and the commands that bring its results or go on with it.

    Args:
        address: of the cluster's dashboard, as it is reached from here.
        job: the driver, which is over.
    """
    name, there = job.study, ("--address", address)
    lines = [f"{name}: job {job.id} {job.state}"]
    if job.kind == SUITE:
        return lines if job.state == "succeeded" else [*lines, "go on with it: the same study suite again"]
    if job.state == "succeeded":
        lines.append(f"report     {typed('report', name, *there)}")
        if job.kind == FINAL:
            lines.append(f"models     {typed('fetch', name, '--models', *there)}")
            lines.append(f"           then, for files of this machine: {typed('predict', name, 'INPUTS')}")
        else:
            lines.append(f"best       {typed('export', name, '-o', BEST, *there)}")
            lines.append(f"all of it  {typed('fetch', name, *there)}")
        return [*lines, f"Commands that the log proposes take --address {address} as well; or once: {_export(address)}"]
    if job.state == "failed" and job.exit_status == UNUSABLE:
        return lines
    return [*lines, f"go on with it: {typed('resume', name, *there)}"]


def _export(address: str) -> str:
    return f"export STUDY_ADDRESS={shlex.quote(address)}"
