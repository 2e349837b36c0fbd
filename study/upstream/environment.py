"""The environment variables that configure Ray and MLflow: each with its value, for whom it is, and why.

Addresses, tokens, passwords and time limits are set where they are known: `study/address.py`, `study/tracking/
connection.py`, `study/cluster/local.py`. `cluster/mlflow_server.py` and `cluster/Dockerfile`, which run without this
package, write theirs themselves; `tests/upstream/test_environment.py` checks them against this table.
"""

import os
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


class Setting(NamedTuple):
    """A variable, its value, the parts that get it, and why."""

    variable: str
    value: str
    parts: frozenset[ProcessKind]
    why: str


def _processes(*parts: ProcessKind) -> frozenset[ProcessKind]:
    return frozenset(parts)


_TRIALS = _processes(ProcessKind.DRIVER, ProcessKind.NODE, ProcessKind.LOCAL_NODE)
_DRIVER = _processes(ProcessKind.DRIVER)
_LOOPBACK = _processes(ProcessKind.OWN_RAY, ProcessKind.LOCAL_NODE)
_OWN = _processes(ProcessKind.OWN_RAY)
_CLIENT, _SERVER = _processes(ProcessKind.MLFLOW_CLIENT), _processes(ProcessKind.MLFLOW_SERVER)
_MLFLOW = _CLIENT | _SERVER

UV_HOOK = "RAY_ENABLE_UV_RUN_RUNTIME_ENV"
"""Variable that Ray reads when it is imported, and for which it has a constant."""

FILE_STORE = "MLFLOW_ALLOW_FILE_STORE"
"""Variable that lets MLflow keep runs in a folder, which it no longer does by itself."""

RECONNECT = "RAY_gcs_rpc_server_reconnect_timeout_s"
"""Variable with the seconds after which Ray ends a driver whose head does not answer; 60 where it is not set."""

LOOPBACK_ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Makes Ray's processes and tools, whatever its name says, take 127.0.0.1 as given, not replace it by the machine's
address."""

SETTINGS = (
    Setting(UV_HOOK, "0", _TRIALS, "else workers of `uv run` first build an environment"),
    Setting("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1", _TRIALS, "a trial without GPU must see none"),
    Setting("RAY_USAGE_STATS_ENABLED", "0", _TRIALS, "nothing is sent to anybody"),
    *(Setting(name, value, _LOOPBACK, "all keep to 127.0.0.1") for name, value in LOOPBACK_ALONE.items()),
    Setting("RAY_gcs_server_port_wait_time_s", "600", _LOOPBACK, "a busy machine takes longer than 30 s"),
    Setting("RAY_gcs_rpc_server_connect_timeout_s", "600", _LOOPBACK, "longer than 5 s"),
    Setting(RECONNECT, "600", _OWN, "whether it lives is watched, see study.sweep.driver"),
    Setting("RAY_raylet_start_wait_time_s", "60", _OWN, "longer than 30 s; a node that has ended is waited for, too"),
    Setting("RAY_worker_register_timeout_seconds", "600", _LOOPBACK, "longer than 60 s: a process imports Ray first"),
    Setting("RAY_agent_register_timeout_ms", "600000", _LOOPBACK, "longer than 30 s, the same"),
    Setting("RAY_health_check_timeout_ms", "60000", _LOOPBACK, "longer than 10 s: a starved node answers late"),
    Setting("RAY_health_check_failure_threshold", "3", _LOOPBACK, "a killed one refuses at once, every 3 s"),
    Setting("RAY_task_events_report_interval_ms", "0", _OWN, "nobody asks it for the course of each call of a process"),
    Setting("RAY_prestart_worker_first_driver", "0", _OWN, "Tune takes none of the processes that would be started"),
    Setting(
        "RAY_JOB_STOP_WAIT_TIME_S",
        "120",
        _processes(ProcessKind.LOCAL_NODE),
        "else Ray kills a stopped driver after 3 s",
    ),
    Setting("RAY_JOB_STOP_WAIT_TIME_S", "60", _processes(ProcessKind.NODE), "the same; MLflow shares no cores with it"),
    Setting("RAY_AIR_NEW_OUTPUT", "0", _DRIVER, "its banner is printed whatever the verbosity"),
    Setting("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1", _DRIVER, "the ledger is the log"),
    Setting("TUNE_DISABLE_SIGINT_HANDLER", "1", _DRIVER, "stopping is the agenda's"),
    Setting("TUNE_PRINT_ALL_TRIAL_ERRORS", "0", _DRIVER, "a failed trial's traceback goes into the study's folder"),
    Setting("TUNE_GLOBAL_CHECKPOINT_S", "3600", _DRIVER, "nobody reads Tune's snapshots"),
    Setting("TUNE_DISABLE_STRICT_METRIC_CHECKING", "1", _DRIVER, "Tune knows none of the metrics"),
    Setting("TUNE_MAX_PENDING_TRIALS_PG", "10000", _DRIVER, "the searcher says how many trials there are at once"),
    Setting(
        "TUNE_FUNCTION_THREAD_TIMEOUT_S", "660", _processes(ProcessKind.TRIAL), "longer than study.sweep.worker waits"
    ),
    Setting(FILE_STORE, "true", _processes(ProcessKind.FUNCTION), "its own runs go into a folder of the trial's"),
    Setting("MLFLOW_DISABLE_TELEMETRY", "true", _MLFLOW, "nothing is sent to anybody"),
    Setting("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true", _CLIENT, "it prints two lines for each run that ends"),
    Setting("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false", _CLIENT, "its bars would cross the study's own lines"),
    Setting("MLFLOW_SQLALCHEMYSTORE_POOL_RECYCLE", "1", _CLIENT, "a database may be made anew meanwhile"),
    Setting("MLFLOW_UV_AUTO_DETECT", "false", _CLIENT, "else a model is given the uv.lock of the current folder"),
    Setting("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false", _SERVER, "eight helper processes that nothing here uses"),
)


def variables(*parts: ProcessKind) -> dict[str, str]:
    """Return the variables of these parts, with their values."""
    return {name: value for name, value, whose, _ in SETTINGS if whose & set(parts)}


def set_here(*parts: ProcessKind) -> None:
    """Set the variables of these parts here, unless the user has set them; before Ray or MLflow is imported."""
    for name, value in variables(*parts).items():
        os.environ.setdefault(name, value)
