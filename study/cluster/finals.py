"""Final trainings on a cluster that is reached over HTTP, and their models there: the file travels with the job."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from study.cluster.job import FINAL, job_id, tags
from study.cluster.jobs import Jobs, Submitted
from study.cluster.upload import STUDY_FILE
from study.errors import UserError
from study.home.standing import USUAL
from study.spec import StudySpec
from study.text.shell import typed


def train(
    jobs: Jobs, spec: StudySpec, final: StudySpec, options: Sequence[str], environment: Mapping[str, str]
) -> Submitted:
    """Have a configuration trained, or further seeds of a training that is there.

    The job runs with the interpreter and the variables of the training's last driver; of a first one, with those of the
    study that the configuration was exported from.

    Args:
        spec: the configuration, as it is uploaded.
        final: the training that comes of it.
        options: of `study train`.
        environment: further variables, see `Jobs.submit`.

    Raises:
        UserError: the training runs, or the cluster does not take the job.
    """
    own = jobs.of(final.name)
    if own:
        jobs.idle(own[-1])
    known = own or jobs.of(str((spec.origin or {}).get("study", spec.name)))
    python, variables = (known[-1].python, known[-1].environment) if known else ("python", {})
    number = own[-1].number + 1 if own else 1
    command = ["train", STUDY_FILE, "--name", final.name, *options, "--address", "auto"]
    metadata = tags(final.name, final.hash, number, python, kind=FINAL, standing=own[-1].standing if own else USUAL)
    return jobs.start(job_id(final.name, number), command, metadata, {**variables, **environment}, spec)


def evaluate(jobs: Jobs, model: str, options: Sequence[str], data: StudySpec | None = None) -> dict[str, Any]:
    """The metrics of a model that is there, on data that are there, and as `groups` the names of the class and bias
    class of each that is of one group; a reading of its test split is noted there.

    Args:
        model: the name of a final training, or one that MLflow there registered: `models:/NAME@candidate`.
        options: of `study evaluate`, but for `--data`.
        data: the study file whose data are used; None: the model's own.

    Raises:
        UserError: the model is a file, or see `study.trained.evaluate.evaluate`.
    """
    named = re.fullmatch(r"models:/([^/@]+)(?:[@/].+)?|([^/]+)", model)
    if named is None or model.endswith((".json", ".safetensors")):
        here = typed("evaluate", model, "--address", "local")
        raise UserError(
            f"{model}: is a file of this machine, which {jobs.address} does not have. There: a final training's name "
            f"or models:/NAME@ALIAS. Here: {here}"
        )
    given = [*options, "--data", STUDY_FILE] if data is not None else options
    measured: dict[str, Any] = jobs.compute(named[1] or named[2], "evaluate", model, *given, spec=data)
    return measured
