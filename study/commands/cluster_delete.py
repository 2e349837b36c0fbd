"""Removing a study of a cluster elsewhere completely: what its home has of it, and its jobs."""

from study.cluster.jobs import Jobs
from study.cluster.mirror import Mirror
from study.errors import UserError
from study.home.folder import NO_SUCH, Home


def describe(jobs: Jobs, name: str) -> str:
    """A sentence about what would be removed.

    Raises:
        UserError: its driver runs.
    """
    drivers = jobs.of(name)
    if drivers:
        jobs.idle(drivers[-1])
    there = f"{len(drivers)} job(s), the last one {drivers[-1].state}" if drivers else "no job is known"
    return f"{name} at {jobs.address}: its folder, its checkpoints and runs in MLflow there, and its jobs: {there}."


def delete(jobs: Jobs, name: str) -> int:
    """Remove a study there, its drivers from the list of jobs, and what was read of it here. Gives how many drivers.

    Where no study was made of a submission, its jobs are all that there is.

    Raises:
        UserError: there is neither a study nor a job of this name, it runs, or MLflow there does not answer.
        Stopped: it failed there.
    """
    drivers = jobs.of(name)
    if drivers:
        jobs.idle(drivers[-1])
    try:
        jobs.compute(name, "delete", name, "--yes")
    except UserError as error:
        if not drivers or NO_SUCH.format(name) not in str(error):
            raise
    for driver in drivers:
        jobs.forget(driver.id)
    Mirror(Home.locate(), jobs.address).forget(name)
    return len(drivers)
