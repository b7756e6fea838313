"""Places of labgrid: `labgrid-client` reserves a shared board and finds its serial port."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from toolchain.errors import InputError, LinkError, MissingToolError

_PROGRAM = "labgrid-client"
_PATIENCE_SECONDS = 60.0
_HEADING = re.compile(r"^Acquired resource '.*' \(.*/(\w+)/[^/]*\):$")
_NETWORK = "NetworkSerialPort"
_LOCAL = ("RawSerialPort", "USBSerialPort")
_URLS = {
    "raw": "socket://{host}:{port}",
    # ser2net does not answer for modem lines that an adapter lacks; labgrid does not wait either.
    "rfc2217": "rfc2217://{host}:{port}?ign_set_control",
}


def _client(place: str, coordinator: str, *command: str) -> str:
    """Run labgrid's client, and return its output. Raises LinkError with its words where it
    fails."""
    program = shutil.which(_PROGRAM)
    if program is None:
        raise MissingToolError(f"{_PROGRAM} is not installed; run: pipx install labgrid")
    at = ["--coordinator", coordinator] if coordinator else []
    try:
        done = subprocess.run(
            [program, *at, "--place", place, *command],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LinkError(f"labgrid does not answer about the place {place!r}") from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise LinkError(f"labgrid refuses the place {place!r}: {said[-1]}")
    return done.stdout


@contextmanager
def reserved(place: str, coordinator: str = "") -> Iterator[None]:
    """Hold a labgrid place. `coordinator` is host:port, or labgrid's own default.

    Raises LinkError if somebody else holds it or nobody answers, MissingToolError without labgrid.
    """
    _client(place, coordinator, "acquire")
    try:
        yield
    finally:
        _client(place, coordinator, "release")


@cache
def serial_port(place: str, coordinator: str = "") -> str:
    """The port of a reserved place, in the form that `open_transport` takes."""
    return port_of(place, _client(place, coordinator, "show"))


def port_of(place: str, shown: str) -> str:
    """The serial port in the output of `labgrid-client show` for a place.

    Raises InputError unless there is exactly one.
    """
    ports = [
        port
        for kind, entry in _resources(shown)
        if (port := _url(kind, entry.get("params", {}))) is not None
    ]
    if len(ports) != 1:
        listed = f" ({', '.join(ports)})" if ports else ""
        raise InputError(
            f"the place {place!r} has {len(ports)} serial ports{listed}, not one: "
            "see what `labgrid-client show` lists, and its matches"
        )
    return ports[0]


def _resources(shown: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Class and fields of each acquired resource: a heading, then a Python dictionary."""
    kind, body = "", ""
    for line in [*shown.splitlines(), ""]:
        heading = _HEADING.match(line)
        if line.startswith(" ") and kind:
            body += line
            continue
        if kind:
            yield kind, _dictionary(body)
        kind, body = (heading[1] if heading else ""), ""


def _dictionary(text: str) -> dict[str, object]:
    try:
        value = ast.literal_eval(text.strip())
    except (SyntaxError, ValueError) as error:
        raise LinkError(
            f"what labgrid says of a resource is not understood: {text[:60]}"
        ) from error
    return value if isinstance(value, dict) else {}


def _url(kind: str, params: object) -> str | None:
    if not isinstance(params, dict):
        return None
    url = _URLS.get(str(params.get("protocol", "rfc2217")))
    if kind == _NETWORK and url and {"host", "port"} <= set(params):
        return url.format(**params)
    return str(params.get("port")) if kind in _LOCAL and params.get("port") else None
