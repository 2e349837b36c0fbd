"""Suites on a cluster that is reached over HTTP: the file travels with the job, which is the driver of its searches."""

from collections.abc import Mapping, Sequence

from study.cluster.job import SUITE, job_id, tags
from study.cluster.jobs import Jobs, Submitted
from study.cluster.upload import STUDY_FILE
from study.home.standing import USUAL
from study.spec.suite_file import SuiteFile


def run(jobs: Jobs, suite: SuiteFile, options: Sequence[str], environment: Mapping[str, str]) -> Submitted:
    """Have what is left of a suite run, with the interpreter and the variables of its last driver, if it had one.

    Args:
        options: of `study suite`.
        environment: further variables, see `Jobs.submit`.

    Raises:
        UserError: it runs, or the cluster does not take the job.
    """
    drivers = jobs.of(suite.name)
    last = jobs.idle(drivers[-1]) if drivers else None
    number, python = (last.number + 1, last.python) if last else (1, "python")
    metadata = tags(suite.name, suite.hash, number, python, kind=SUITE, standing=last.standing if last else USUAL)
    variables = {**(last.environment if last else {}), **environment}
    command = ["suite", STUDY_FILE, *options, "--address", "auto"]
    return jobs.start(job_id(suite.name, number), command, metadata, variables, suite)
