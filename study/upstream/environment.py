"""The environment variables that configure Ray and MLflow: each with its value, for whom it is, and why.

Addresses, tokens, passwords and time limits are set where they are known: `study/upstream/ray_token.py`,
`study/tracking/connection.py`, `study/cluster/local.py`. `cluster/mlflow_server.py` and `cluster/Dockerfile`, which run
without this package, write theirs themselves; `tests/upstream/test_environment.py` checks them against this table.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple


class ProcessKind(Enum):
    """The processes that a variable is for."""

    DRIVER = "the driver of a study and its trials, which inherit it"
    OWN_RAY = "the driver too, where Ray is of its own and not a cluster's"
    TRIAL = "the processes that run trials, set by themselves"
    FUNCTION = "the processes that run a training function of the user's own"
    NODE = "the nodes of a cluster"
    LOCAL_NODE = "the nodes of a cluster that `study cluster up` starts, on loopback"
    MLFLOW_CLIENT = "whoever talks to MLflow"
    MLFLOW_SERVER = "MLflow's server"


class EnvironmentVariable(NamedTuple):
    """A variable, its value, the processes that get it, and why."""

    variable: str
    value: str
    process_kinds: frozenset[ProcessKind]
    reason: str


_TRIALS = {ProcessKind.DRIVER, ProcessKind.NODE, ProcessKind.LOCAL_NODE}
_DRIVER = {ProcessKind.DRIVER}
_LOOPBACK = {ProcessKind.OWN_RAY, ProcessKind.LOCAL_NODE}
_OWN_RAY = {ProcessKind.OWN_RAY}
_MLFLOW_CLIENT, _MLFLOW_SERVER = {ProcessKind.MLFLOW_CLIENT}, {ProcessKind.MLFLOW_SERVER}
_MLFLOW = _MLFLOW_CLIENT | _MLFLOW_SERVER

UV_HOOK_VARIABLE = "RAY_ENABLE_UV_RUN_RUNTIME_ENV"
"""Variable that Ray reads when it is imported, and for which it has a constant."""

FILE_STORE_VARIABLE = "MLFLOW_ALLOW_FILE_STORE"
"""Variable that lets MLflow keep runs in a folder, which it no longer does by itself."""

RECONNECT_TIMEOUT_VARIABLE = "RAY_gcs_rpc_server_reconnect_timeout_s"
"""Variable with the seconds after which Ray ends a driver whose head does not answer; 60 where it is not set."""

KEEP_LOOPBACK_VARIABLES = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Makes Ray's processes and tools, whatever its name says, take 127.0.0.1 as given, not replace it by the machine's
address."""

VARIABLES_OF_PROCESS_KINDS = tuple(
    EnvironmentVariable(name, value, frozenset(kinds), reason)
    for name, value, kinds, reason in (
        (UV_HOOK_VARIABLE, "0", _TRIALS, "else workers of `uv run` first build an environment"),
        ("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1", _TRIALS, "a trial without GPU must see none"),
        ("RAY_USAGE_STATS_ENABLED", "0", _TRIALS, "nothing is sent to anybody"),
        *((name, value, _LOOPBACK, "all keep to 127.0.0.1") for name, value in KEEP_LOOPBACK_VARIABLES.items()),
        ("RAY_gcs_server_port_wait_time_s", "600", _LOOPBACK, "a busy machine takes longer than 30 s"),
        ("RAY_gcs_rpc_server_connect_timeout_s", "600", _LOOPBACK, "longer than 5 s"),
        (RECONNECT_TIMEOUT_VARIABLE, "600", _OWN_RAY, "whether it lives is watched, see study.sweep.driver"),
        ("RAY_raylet_start_wait_time_s", "60", _OWN_RAY, "longer than 30 s; a node that has ended is waited for, too"),
        ("RAY_worker_register_timeout_seconds", "600", _LOOPBACK, "longer than 60 s: a process imports Ray first"),
        ("RAY_agent_register_timeout_ms", "600000", _LOOPBACK, "longer than 30 s, the same"),
        ("RAY_health_check_timeout_ms", "60000", _LOOPBACK, "longer than 10 s: a starved node answers late"),
        ("RAY_health_check_failure_threshold", "3", _LOOPBACK, "a killed one refuses at once, every 3 s"),
        ("RAY_task_events_report_interval_ms", "0", _OWN_RAY, "nobody asks for the course of each call"),
        ("RAY_prestart_worker_first_driver", "0", _OWN_RAY, "Tune takes none of the processes that would be started"),
        ("RAY_JOB_STOP_WAIT_TIME_S", "120", {ProcessKind.LOCAL_NODE}, "else Ray kills a stopped driver after 3 s"),
        ("RAY_JOB_STOP_WAIT_TIME_S", "60", {ProcessKind.NODE}, "the same; MLflow shares no cores with it"),
        ("RAY_AIR_NEW_OUTPUT", "0", _DRIVER, "its banner is printed whatever the verbosity"),
        ("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1", _DRIVER, "the ledger is the log"),
        ("TUNE_DISABLE_SIGINT_HANDLER", "1", _DRIVER, "stopping is the agenda's"),
        ("TUNE_PRINT_ALL_TRIAL_ERRORS", "0", _DRIVER, "a failed trial's traceback goes into the study's folder"),
        ("TUNE_GLOBAL_CHECKPOINT_S", "3600", _DRIVER, "nobody reads Tune's snapshots"),
        ("TUNE_DISABLE_STRICT_METRIC_CHECKING", "1", _DRIVER, "Tune knows none of the metrics"),
        ("TUNE_MAX_PENDING_TRIALS_PG", "10000", _DRIVER, "the searcher says how many trials there are at once"),
        ("TUNE_FUNCTION_THREAD_TIMEOUT_S", "660", {ProcessKind.TRIAL}, "longer than study.sweep.worker waits"),
        (FILE_STORE_VARIABLE, "true", {ProcessKind.FUNCTION}, "its own runs go into a folder of the trial's"),
        ("MLFLOW_DISABLE_TELEMETRY", "true", _MLFLOW, "nothing is sent to anybody"),
        ("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true", _MLFLOW_CLIENT, "it prints two lines for each run"),
        ("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false", _MLFLOW_CLIENT, "its bars would cross the study's own lines"),
        ("MLFLOW_SQLALCHEMYSTORE_POOL_RECYCLE", "1", _MLFLOW_CLIENT, "a database may be made anew meanwhile"),
        ("MLFLOW_UV_AUTO_DETECT", "false", _MLFLOW_CLIENT, "else a model is given the uv.lock of the current folder"),
        ("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false", _MLFLOW_SERVER, "eight processes that nothing uses"),
    )
)


def variables_of_processes(*kinds: ProcessKind) -> dict[str, str]:
    """Return the variables of these processes, with their values."""
    return {name: value for name, value, whose, _ in VARIABLES_OF_PROCESS_KINDS if whose & set(kinds)}


def set_variables_here(*kinds: ProcessKind) -> None:
    """Set the variables of these processes here, unless the user has set them; before Ray or MLflow is imported."""
    for name, value in variables_of_processes(*kinds).items():
        os.environ.setdefault(name, value)


@contextmanager
def restore_variables_after(names: Iterable[str]) -> Iterator[None]:
    """Give these variables after the block the values that they had before it, or none."""
    before = {name: os.environ.get(name) for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({name: value} if value is not None else {})
