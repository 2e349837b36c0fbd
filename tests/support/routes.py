"""The HTTP routes of Ray's and MLflow's servers, by the installed versions' own tables, and a walk along them without
credentials.

As a script it prints them: their modules take their settings from the environment, so they get a process of their own.
"""

import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from servers import password_settings

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE")
READING = ("GET", "HEAD", "OPTIONS")

HEALTH = "health: nothing but whether it lives"
PUBLIC = {
    "dashboard": {
        "/": "the page that asks for the token",
        "/favicon.ico": "a file of that page",
        "/static/1": "a file of that page",
        "/api/authentication_mode": "whether a token is wanted, for that page",
        "/api/authenticate": "takes the token",
        "/api/gcs_healthz": HEALTH,
    },
    "agent": {"/api/healthz": HEALTH, "/api/local_raylet_healthz": HEALTH},
    "metrics": dict.fromkeys(["/metrics", "/", "/api/job_agent/jobs/"], "counts and load, whatever path is asked for"),
    "mlflow": {
        "/health": HEALTH,
        "/static-files/1": "a file of its page",
        "/api/3.0/mlflow/server-info": "what kind of store it has, for clients before they log in",
        "/ajax-api/3.0/mlflow/server-info": "the same",
    },
}
"""What each kind of server answers to everybody, and why that is well."""


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    status: int
    kind: str
    body: bytes


def ask(connection: HTTPConnection, method: str, path: str, authorization: str | None = None) -> Answer:
    """Ask for a path; the connection is used again where the server keeps it."""
    headers = {"Content-Type": "application/json", **({"Authorization": authorization} if authorization else {})}
    connection.request(method, path, b"{}" if method in ("POST", "PUT", "PATCH") else None, headers)
    answer = connection.getresponse()
    body = answer.read(1 << 20)
    if not answer.isclosed():  # what streams has been let in, and is not waited for
        connection.close()
    return Answer(answer.status, answer.getheader("Content-Type", ""), body)


def let_in(
    server: str, paths: Iterable[str], public: Collection[str] = (), authorization: str | None = None
) -> list[str]:
    """Requests that are answered otherwise than by 401 or 403; what is public may be read, and nothing else."""
    found = []
    connection = HTTPConnection(urlsplit(server).netloc, timeout=30)
    for path in paths:
        for method in METHODS:
            status = ask(connection, method, path, authorization).status
            harmless = path in public and (method in READING or status >= 400)
            if status not in (401, 403) and not harmless:
                found.append(f"{method} {server}{path}: {status}")
    connection.close()
    return found


def spoken(host: str, port: int) -> Answer | None:
    """What a port answers at `/metrics`; None if it does not speak HTTP."""
    connection = HTTPConnection(host, port, timeout=5)
    try:
        return ask(connection, "GET", "/metrics")
    except (HTTPException, OSError):
        return None
    finally:
        connection.close()


def routes(program: str, folder: Path) -> dict[str, list[str]]:
    """The paths of each kind of server of `ray` or `mlflow`, parameters filled in; its traces go to an empty folder."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MLFLOW_", "RAY_"))}
    done = subprocess.run(
        [sys.executable, __file__, program],
        env=environment | password_settings(folder) | {"_MLFLOW_SGI_NAME": "uvicorn"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    tables: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return {name: sorted({re.sub(r"<[^>]*>|{[^}]*}", "1", path) for path in table}) for name, table in tables.items()}


def mlflow_lets_in(server: str, folder: Path) -> list[str]:
    """Requests to MLflow that are answered without the password, or to some routes with a wrong one, which it checks
    slowly on purpose.
    """
    paths = routes("mlflow", folder)["mlflow"]
    some = ["/api/2.0/mlflow/users/create", "/api/2.0/mlflow-artifacts/artifacts/1", "/gateway/1/mlflow/invocations"]
    assert set(some) <= set(paths)
    wrong = f"Basic {b64encode(b'admin:password1234').decode()}"
    return let_in(server, paths, PUBLIC["mlflow"]) + let_in(server, some, authorization=wrong)


def ray() -> dict[str, list[str]]:
    """Of the dashboard on the head, and of the two agents of each node together."""
    from aiohttp.web import StaticDef
    from ray._private.runtime_env import agent
    from ray.dashboard import http_server_agent, http_server_head, utils
    from ray.dashboard.subprocesses.routes import SubprocessRouteTable

    utils.get_all_modules(utils.DashboardHeadModule)  # imports the modules, which enter their routes
    http_server_head.setup_static_dir()

    def paths(*tables: Any) -> list[str]:
        found = [route for table in tables for route in table.routes()]
        return [f"{route.prefix}/1" if isinstance(route, StaticDef) else route.path for route in found]

    runtime_env = (Path(agent.__path__[0]) / "main.py").read_text(encoding="utf-8")
    entered = re.findall(r'router\.add_\w+\(\s*"([^"]+)"', runtime_env)
    assert entered
    return {
        "dashboard": paths(http_server_head.routes, SubprocessRouteTable),
        "agent": paths(http_server_agent.routes) + entered,
    }


def mlflow() -> dict[str, list[str]]:
    """Of the server with a password, whose older routes are Flask's and whose newer ones FastAPI's."""
    from fastapi.routing import iter_route_contexts
    from mlflow.server import app
    from mlflow.server.auth import create_app

    native = [route.path for route in iter_route_contexts(create_app().routes)]
    return {"mlflow": [path for path in native if path] + [rule.rule for rule in app.url_map.iter_rules()]}


if __name__ == "__main__":
    print(json.dumps({"ray": ray, "mlflow": mlflow}[sys.argv[1]]()))
