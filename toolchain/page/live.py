"""A page on this machine that follows work: what is known so far, and what is under way."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from toolchain.errors import InputError
from toolchain.files.printable import printable
from toolchain.progress import Found

_HOST = "127.0.0.1"
_MOST_CONNECTIONS = 32
"""At once, each with a thread: a browser opens six."""
_PATIENCE_SECONDS = 10.0
"""For a connection from its begin to its end: its request, and taking the answer."""


@dataclass(frozen=True)
class Progress:
    """The answer of `/progress`. `version` counts the pages; a browser with an older one reloads.

    `done` of `total` parts of what `text` says are finished; None where that is not known. `found`:
    what the search that runs, or the last one, has found so far.
    """

    version: int = 0
    text: str = "starting"
    done: int | None = None
    total: int | None = None
    ended: bool = False
    found: Found = ()


class _Server(ThreadingHTTPServer):
    """One that no client holds: connections are few, and end."""

    daemon_threads = True
    request_queue_size = 4 * _MOST_CONNECTIONS

    def __init__(self, *named: Any) -> None:
        self._open: dict[socket.socket, float] = {}
        """When each began, the oldest first."""
        self._guard = threading.Lock()
        super().__init__(*named)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            if len(self._open) >= _MOST_CONNECTIONS:
                self._end(next(iter(self._open)))
            self._open[request] = time.monotonic()
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Twice a second, and after each connection's begin."""
        with self._guard:
            late = time.monotonic() - _PATIENCE_SECONDS
            for connection in [one for one, begun in self._open.items() if begun < late]:
                self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        """Its thread reads the end, or cannot write any more, and closes it."""
        del self._open[connection]
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone, or was ended, is no error."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class LivePage:
    """Serves one page to browsers of this machine, from `with` to its end.

    A connection carries one request, and ends after _PATIENCE_SECONDS. The oldest of more than
    _MOST_CONNECTIONS ends at once, so that slow ones do not keep a browser out.

    `port` 0 takes a free one. It listens on the loopback interface alone, and answers only requests
    that name it, so that no other page can read it through a name of its own. Raises InputError
    where the port is taken.
    """

    def __init__(self, first: Callable[[int], str], port: int = 0) -> None:
        self._lock = threading.Lock()
        self._progress = Progress()
        self._page = first(0)
        live = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                live._answer(self)

            def log_message(self, *_: object) -> None:
                """Nothing: the terminal shows the progress."""

        try:
            self._server = _Server((_HOST, port), Handler)
        except OSError as error:
            raise InputError(f"port {port}: {error.strerror}; name another with --port") from error
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://{_HOST}:{self._server.server_port}/"

    def __enter__(self) -> LivePage:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def show(self, make: Callable[[int], str]) -> None:
        """Replace the page; `make` gets its version, which it must hold as `data-live`."""
        version = self._progress.version + 1
        page = make(version)
        with self._lock:
            self._page = page
            self._progress = replace(self._progress, version=version)

    def report(
        self,
        text: str,
        done: int | None = None,
        total: int | None = None,
        found: Found = (),
    ) -> None:
        """Says the work under way; as `progress.Report`."""
        with self._lock:
            known = found or self._progress.found
            self._progress = replace(
                self._progress, text=printable(text), done=done, total=total, found=known
            )

    def end(self, text: str) -> None:
        """Nothing more follows."""
        with self._lock:
            self._progress = replace(self._progress, text=text, done=None, total=None, ended=True)

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        with self._lock:
            known = {
                "/": ("text/html; charset=utf-8", self._page),
                "/progress": ("application/json", json.dumps(asdict(self._progress))),
            }
        own = request.headers.get("Host", "") in (
            f"{_HOST}:{self._server.server_port}",
            f"localhost:{self._server.server_port}",
        )
        kind, text = known.get(request.path, ("", "")) if own else ("", "")
        body = text.encode()
        request.send_response(200 if kind else 404)
        request.send_header("Content-Type", kind or "text/plain")
        request.send_header("Content-Length", str(len(body)))
        request.send_header("Cache-Control", "no-store")
        request.end_headers()
        request.wfile.write(body)
