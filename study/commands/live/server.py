"""Serves the live page on loopback.

Whoever can read the address may stop trials, so it holds a secret of its own for each start. A page of another site
that is open in the same browser does not know the secret, and cannot post without it; besides, the `Host` of each
request has to be this machine's (DNS rebinding), the `Origin` of each post the page's own (cross-site requests), and no
site may show the page in a frame.
"""

import hmac
import json
import secrets
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from study.commands import asking
from study.commands.live.state import LiveState
from study.errors import UserError
from study.home.folder import Home, StudyFolder

HOST, PORT = "127.0.0.1", 8420
LOCAL = {HOST, "localhost"}
"""Names by which a browser may call this machine; the port may be that of a tunnel."""

MOST_BYTES = 2**16
"""Of a post."""

SECONDS = 30.0
"""A connection that says nothing for so long is closed."""

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

FILES = {
    "": ("live.html", "text/html"),
    "live.js": ("live.js", "text/javascript"),
    "live.css": ("live.css", "text/css"),
}
"""The page's own files, by their addresses."""


def serve(home: Home, name: str, port: int) -> None:
    """Print the address, and serve until interrupted.

    Raises:
        UserError: there is no such study, or the port is taken.
        KeyboardInterrupt: Ctrl-C or SIGTERM came.
    """
    server = live_server(home.find(name), port)
    threading.Thread(target=_read_ahead, args=(server.state,), name="ledger", daemon=True).start()
    print(f"{name}: {server.address} (Ctrl-C ends it; whoever has this address can stop trials)", flush=True)
    try:
        server.serve_forever()
    finally:
        server.server_close()


def _read_ahead(state: LiveState) -> None:
    """Read the ledger before the page is opened; what is wrong with it the page tells."""
    with suppress(UserError, OSError):
        while "reading" in state.document():
            pass


def live_server(folder: StudyFolder, port: int) -> "LiveServer":
    """The server of a study's page, bound and not yet started.

    Raises:
        UserError: the port is taken.
    """
    try:
        return LiveServer(folder, port)
    except OSError as error:
        raise UserError(f"--port {port}: {error.strerror}. Another one: --port {port + 1}") from None


class LiveServer(ThreadingHTTPServer):
    """The page of one study.

    Attributes:
        folder: the study's.
        state: what is shown.
        secret: the first part of every address.
    """

    daemon_threads = True

    def __init__(self, folder: StudyFolder, port: int) -> None:
        self.folder, self.state, self.secret = folder, LiveState(folder), secrets.token_urlsafe(24)
        super().__init__((HOST, port), Handler)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/{self.secret}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a browser that goes away in the middle of an answer is no fault."""


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    server: LiveServer
    protocol_version = "HTTP/1.1"
    timeout = SECONDS
    server_version, sys_version = "study", ""

    def do_GET(self) -> None:
        path = self._path()
        if path is None:
            return
        if path == "state.json":
            self._answer_with(lambda: self.server.state.document())
        elif path == "plotly.js":
            self._send(HTTPStatus.OK, plotly(), "text/javascript", cached=True)
        elif path in FILES:
            file, kind = FILES[path]
            self._send(HTTPStatus.OK, page_file(file), kind)
        else:
            self._send_json(HTTPStatus.NOT_FOUND, {"error": "there is nothing here"})

    def do_POST(self) -> None:
        path = self._path()
        if path is None:
            return
        body = self._body()
        if body is None:
            return
        actions = {"stop": self._stop, "end": self._end, "enqueue": self._enqueue}
        if path in actions:
            self._answer_with(lambda: actions[path](body))
        else:
            self._send_json(HTTPStatus.NOT_FOUND, {"error": "there is nothing here"})

    def _stop(self, body: Mapping[str, Any]) -> dict[str, Any]:
        number = body.get("trial")
        if type(number) is not int:
            raise UserError("trial: a number is needed")
        return self._ask(asking.stop_request(self.server.state.spec, self._running(), number))

    def _end(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._ask(asking.end_request(self.server.state.spec, self._running()))

    def _enqueue(self, body: Mapping[str, Any]) -> dict[str, Any]:
        assignments = body.get("assignments")
        if not isinstance(assignments, list) or not all(isinstance(one, str) for one in assignments):
            raise UserError("assignments: a list of KEY=VALUE is needed")
        state = self.server.state
        return self._ask(asking.enqueue_request(state.spec, state.record(), assignments, None))

    def _running(self) -> Any:
        asking.check_running(self.server.folder)
        return self.server.state.record()

    def _ask(self, request: Any) -> dict[str, Any]:
        asking.leave(self.server.folder, request)
        return {"request": request.id}

    def _path(self) -> str | None:
        """What is asked for, behind the secret; None: it was refused."""
        if not self._is_local():
            self._send_json(HTTPStatus.MISDIRECTED_REQUEST, {"error": "this is not the address that was printed"})
            return None
        secret, _, path = urlsplit(self.path).path.removeprefix("/").partition("/")
        if not hmac.compare_digest(secret.encode(), self.server.secret.encode()):
            self._send_json(HTTPStatus.NOT_FOUND, {"error": "this is not the address that was printed"})
            return None
        return path

    def _is_local(self) -> bool:
        hosts = self.headers.get_all("Host", [])
        return len(hosts) == 1 and _name_of(hosts[0]) in LOCAL

    def _body(self) -> Mapping[str, Any] | None:
        """The JSON object of a post from the page itself; None: it was refused."""
        closes, self.close_connection = self.close_connection, True  # what was refused is not read
        if self.headers.get_all("Origin", []) != [f"http://{self.headers['Host']}"]:
            self._send_json(HTTPStatus.FORBIDDEN, {"error": "only the page itself may ask"})
            return None
        length = self.headers.get("Content-Length", "")
        if self.headers.get_content_type() != "application/json" or not length.isdecimal() or len(length) > 9:
            self._send_json(HTTPStatus.BAD_REQUEST, {"error": "a JSON object is needed"})
            return None
        if int(length) > MOST_BYTES:
            self._send_json(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, {"error": f"at most {MOST_BYTES} bytes"})
            return None
        content, self.close_connection = self.rfile.read(int(length)), closes
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            self._send_json(HTTPStatus.BAD_REQUEST, {"error": "a JSON object is needed"})
            return None
        return body

    def _answer_with(self, make: Callable[[], Mapping[str, Any]]) -> None:
        try:
            self._send_json(HTTPStatus.OK, make())
        except UserError as error:
            self._send_json(HTTPStatus.CONFLICT, {"error": str(error)})
        except OSError as error:
            self._send_json(HTTPStatus.CONFLICT, {"error": f"{error.filename}: {error.strerror}"})

    def _send_json(self, status: HTTPStatus, document: Mapping[str, Any]) -> None:
        text = json.dumps(document, allow_nan=False, separators=(",", ":"))
        self._send(status, text.encode(), "application/json")

    def _send(self, status: HTTPStatus, content: bytes, kind: str, cached: bool = False) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "private, max-age=86400, immutable" if cached else "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: addresses hold the secret."""


def _name_of(host: str) -> str:
    return host.rpartition(":")[0] if ":" in host else host


@cache
def page_file(name: str) -> bytes:
    """A file of the page."""
    return (resources.files("study.commands.live") / name).read_bytes()


@cache
def plotly() -> bytes:
    """The plotting library, the copy that reports hold."""
    from study.analysis.report.packed import plotting_library

    return plotting_library().encode()
