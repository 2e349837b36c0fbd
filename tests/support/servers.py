"""A real PostgreSQL and a real MLflow server, on loopback, that can be stopped, slowed down and started again;
and a server that answers what it is told to."""

import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from serving import Silent, serving

ADMIN, PASSWORD = "admin", "a password for tests"


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def closed_port() -> Iterator[int]:
    """A port where connections are refused, and that nobody else gets meanwhile."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


class Postgres:
    """A database cluster of its own. PostgreSQL does not run as root: then it is the user postgres, or nobody."""

    def __init__(self) -> None:
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        assert found, "PostgreSQL's programs are needed: apt-get install postgresql"
        self._programs = Path(found[-1])
        self._folder, self._port = Path(tempfile.mkdtemp(prefix="postgres-")), free_port()
        self._user = None if os.geteuid() else _unprivileged()
        if self._user:
            shutil.chown(self._folder, self._user)
        self._run("initdb", "-D", self._data, "-U", "mlflow", "-A", "trust", "--no-sync")
        self.start()
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self._port), "-U", "mlflow", "mlflow")

    @property
    def uri(self) -> str:
        return f"postgresql+psycopg2://mlflow@127.0.0.1:{self._port}/mlflow"

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return "127.0.0.1", self._port

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        where = f"-h 127.0.0.1 -p {self._port} -k {self._folder}"
        self._run("pg_ctl", "-D", self._data, "-w", "-o", where, "-l", str(self._folder / "log"), "start")

    def stop(self) -> None:
        """Stop it at once: connections are cut."""
        self._run("pg_ctl", "-D", self._data, "-w", "-m", "immediate", "stop")

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self._folder)

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", user=self._user, timeout=60)


def _unprivileged() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def password_settings(folder: Path) -> dict[str, str]:
    """What has an MLflow with this environment want `ADMIN` and `PASSWORD`; it keeps its users in a folder."""
    users = folder / "basic_auth.ini"
    users.write_text(
        f"[mlflow]\ndefault_permission = READ\ndatabase_uri = sqlite:///{folder}/users.db\n"
        f"admin_username = {ADMIN}\nadmin_password = {PASSWORD}\nauth_cache_ttl_seconds = 60\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\n"
    )
    return {"MLFLOW_AUTH_CONFIG_PATH": str(users), "MLFLOW_FLASK_SERVER_SECRET_KEY": "for tests"}


class MlflowServer:
    """`mlflow server`.

    Args:
        folder: for its log, artifacts and users; empty.
        database: what it keeps runs in.
        auth: whether it wants `ADMIN` and `PASSWORD`.
        host: an address of this machine to listen at.
    """

    def __init__(self, folder: Path, database: str, auth: bool = False, host: str = "127.0.0.1") -> None:
        self._host, self._port, self._log = host, free_port(), folder / "log"
        self._command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", database, "--workers", "1"]
        self._command += ["--artifacts-destination", (folder / "artifacts").as_uri()]
        self._command += ["--host", host, "--port", str(self._port)]
        settings = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"}
        if auth:
            self._command += ["--app-name", "basic-auth"]
            settings |= password_settings(folder)
        self._environment = {
            key: value for key, value in os.environ.items() if not key.startswith("MLFLOW_")
        } | settings
        self.start()

    @property
    def uri(self) -> str:
        return f"http://{self._host}:{self._port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + 300
        while not self._is_up():
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.2)

    def stop(self) -> None:
        """Kill it, helpers and all."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """It takes connections and answers nothing."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.killpg(self._process.pid, signal.SIGCONT)

    def _is_up(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.uri}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


@contextmanager
def answering(status: int, delay: float = 0.0) -> Iterator[str]:
    """The address of a server that answers everything with one status, after a while."""
    over = threading.Event()

    class Handler(Silent):
        def answer(self) -> None:
            over.wait(delay)
            self.tell(b"", status)

    with serving(Handler, over.set) as address:
        yield address.replace("//", "//user:secret@")


HOPS = ("Host", "Connection", "Transfer-Encoding")
"""Headers that are for the next server alone."""

NOT_FOUND = b"<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n"


@contextmanager
def of_mlflow_2(uri: str) -> Iterator[str]:
    """The address of a server that passes everything on to another, but what MLflow 2 does not know: logged models."""

    class Handler(Silent):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if "chunked" in self.headers.get("Transfer-Encoding", ""):  # as a file is uploaded
                body = b"".join(iter(self.chunk, b""))
            if "/logged-models" in self.path:
                self.tell(NOT_FOUND, 404, **{"Content-Type": "text/html; charset=utf-8"})
                return
            passed = {name: value for name, value in self.headers.items() if name not in HOPS}
            asked = urllib.request.Request(f"{uri}{self.path}", body or None, passed, method=self.command)
            try:
                with urllib.request.urlopen(asked, timeout=60) as answer:
                    self.tell(answer.read(), answer.status, **{"Content-Type": answer.headers["Content-Type"]})
            except urllib.error.HTTPError as refused:
                self.tell(refused.read(), refused.code, **{"Content-Type": refused.headers["Content-Type"]})

        def chunk(self) -> bytes:
            """Read the next part of a body; an empty one is the last."""
            part = self.rfile.read(int(self.rfile.readline(), 16))
            self.rfile.readline()
            return part

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815 (what the base class calls)

    with serving(Handler) as address:
        yield address
