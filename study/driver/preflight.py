"""What is checked before a study's trials can run: this Python, the home, Ray or the cluster, and room for a trial."""

import os
import sys

from study.cluster_addresses import check_cluster_address
from study.errors import UserError
from study.home.folder import Home
from study.spec import StudySpec
from study.sweep.own_ray import MAX_RAY_FOLDER_CHARACTERS
from study.sweep.ray_runtime import check_cluster_answers, check_trial_fits_machine, set_ray_variables
from study.tracking.connection import require_server_password
from study.upstream.ray_internals import is_ray_job
from study.writable_folders import check_shared_memory, ray_socket_folder


def check_environment(home: Home, address: str | None) -> None:
    """Refuse what no study could run with, before its file is read, which takes PyTorch and seconds.

    Raises:
        UserError: Ray cannot be loaded in this Python, or has no folder or shared memory; MLflow's server must not be
            talked to, or the address is no cluster's.
    """
    if sys.flags.optimize > 1:
        raise UserError("python -OO: leaves out what Ray needs to be loaded. Without it, and without PYTHONOPTIMIZE=2")
    require_server_password(home.tracking_uri)
    if address is None:
        check_shared_memory()
        ray_socket_folder(MAX_RAY_FOLDER_CHARACTERS)
    else:
        check_cluster_address(address)


def check_trial_fits(home: Home, spec: StudySpec, address: str | None) -> None:
    """Refuse a trial that no machine has room for, what `check_environment` refuses, or a cluster that is silent.

    In a job of a cluster, also a home that would end with the job, which runs in a folder of Ray's.
    """
    check_environment(home, address)
    set_ray_variables(address)
    if address is None:
        check_trial_fits_machine(spec.resources)
        return
    check_cluster_answers(address)
    if is_ray_job() and not os.environ.get("STUDY_HOME"):
        raise UserError(
            "STUDY_HOME: is not set on this cluster. It has to name a folder that all nodes share: set it in the "
            "environment of the head, or export it where you submit and add --env STUDY_HOME to study submit"
        )
