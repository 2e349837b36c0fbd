"""A web server of a test's own, on loopback."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Silent(ABC, BaseHTTPRequestHandler):
    """Gives an answer, and prints nothing of what it is asked."""

    @abstractmethod
    def answer(self) -> None:
        """Give it, by `tell`."""

    def do_GET(self) -> None:
        self.answer()

    do_POST = do_GET  # noqa: N815 (what the base class calls)

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def tell(self, body: bytes, status: int = 200, **headers: str) -> None:
        """Answer with this body."""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(handler: Callable[..., Any], ends: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Its address while the block runs; `ends` lets handlers go that wait."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            ends()
            server.shutdown()
            thread.join()
