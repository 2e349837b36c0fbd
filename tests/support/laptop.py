"""A laptop, and a cluster of machines on other addresses with MLflow, that share a network and a token alone."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from machines import GATEWAY, Cluster, Machine
from servers import ADMIN, PASSWORD, MlflowServer, free_port

HIDDEN = 'mount -t tmpfs none "$0" && exec "$@"'
"""In a mount namespace of its own, as `ip netns exec` makes one: a folder that is not there for what is run."""

STUDY = """\
name: {name}
data:   {{name: biased_digits, rho: 0.9}}
model:  {{name: small_conv_net, width: 4}}
method: {{name: eps_sup_info_nce, temperature: 0.1}}
train:  {{epochs: {epochs}, batch_size: 128, learning_rate: 0.003}}
search:
  space:
    method.alpha: {{low: 0.001, high: 1.0, log: true}}
  sampler: random
  trials: {trials}
"""


class Redis:
    """What keeps the state of a cluster's head, so that it may restart."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        command = ["redis-server", "--bind", GATEWAY, "--port", str(port), "--requirepass", PASSWORD, "--save", ""]
        with (folder / "redis.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, cwd=folder)
        self.environment = {"RAY_REDIS_ADDRESS": f"{GATEWAY}:{port}", "RAY_REDIS_PASSWORD": PASSWORD}

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


class Laptop:
    """Whoever submits: on the network, with a copy of the token; the cluster's folder cannot be seen."""

    def __init__(self, cluster: Cluster, machine: Machine, folder: Path) -> None:
        self._cluster, self._machine, self.folder = cluster, machine, folder
        self._environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("RAY_", "MLFLOW_"))},
            "STUDY_HOME": str(folder / "home"),
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(shutil.copy(cluster.token_file, folder / "token")),
        }

    def start(self, *arguments: str, there: bool = True) -> "subprocess.Popen[str]":
        """Begin a command, for the cluster if `there`."""
        alone = [*self._machine.network, "sh", "-c", HIDDEN, str(self._cluster.folder)]
        where = ["--address", self._cluster.dashboard] if there else []
        return subprocess.Popen(
            [*alone, sys.executable, "-m", "study", *arguments, *where],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, there: bool = True) -> "subprocess.CompletedProcess[str]":
        process = self.start(*arguments, there=there)
        try:
            out, err = process.communicate(timeout=1200)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def submit(self, name: str, trials: int, epochs: int) -> None:
        self.write(name, trials, epochs)
        done = self("submit", f"{name}.yaml")
        assert done.returncode == 0, done.stderr

    def write(self, name: str, trials: int, epochs: int) -> None:
        (self.folder / f"{name}.yaml").write_text(STUDY.format(name=name, trials=trials, epochs=epochs))


@contextmanager
def serving(folder: Path, redis: bool = True) -> Iterator[Cluster]:
    """A cluster of a head, with MLflow behind a password, and with the head's state in Redis where that is installed
    and asked for."""
    (folder / "mlflow").mkdir()
    with ExitStack() as running:
        found, of_head = Cluster(folder), {}
        running.callback(found.remove)
        if redis and shutil.which("redis-server"):
            server_of_state = Redis(folder)
            running.callback(server_of_state.stop)
            of_head = server_of_state.environment
        server = MlflowServer(folder / "mlflow", f"sqlite:///{folder}/mlflow/runs.db", auth=True, host=GATEWAY)
        running.callback(server.stop)
        found.environment |= {
            "MLFLOW_TRACKING_URI": server.uri,
            "MLFLOW_TRACKING_USERNAME": ADMIN,
            "MLFLOW_TRACKING_PASSWORD": PASSWORD,
        }
        found.head(**of_head)
        yield found
