"""A page on this machine that follows work: what is known so far, and what is under way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from toolchain.errors import InputError
from toolchain.progress import Found

_HOST = "127.0.0.1"


@dataclass(frozen=True)
class Progress:
    """What `/progress` answers. `version` counts the pages; a browser with an older one reloads.

    `done` of `total` parts of what `text` says are finished; None where that is not known. `found`:
    what the search that runs, or the last one, has found so far.
    """

    version: int = 0
    text: str = "starting"
    done: int | None = None
    total: int | None = None
    ended: bool = False
    found: Found = ()


class LivePage:
    """Serves one page to browsers of this machine, from `with` to its end.

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
            self._server = ThreadingHTTPServer((_HOST, port), Handler)
        except OSError as error:
            raise InputError(f"port {port}: {error.strerror}; name another with --port") from error
        self._server.daemon_threads = True
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
        """What is under way; as `progress.Report`."""
        with self._lock:
            known = found or self._progress.found
            self._progress = replace(self._progress, text=text, done=done, total=total, found=known)

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
