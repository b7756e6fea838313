"""The page's server among clients that are slow, that leave, and that send nonsense."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from toolchain.page import live as live_page
from toolchain.page.live import LivePage

CLIENTS = 200
PATIENCE_SECONDS = 60


@pytest.fixture
def live() -> Iterator[LivePage]:
    with LivePage("page {}".format) as served:
        yield served


def connected(live: LivePage, sent: bytes) -> socket.socket:
    port = int(live.url.split(":")[-1].strip("/"))
    client = socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS)
    client.sendall(sent)
    return client


def ended(client: socket.socket) -> bool:
    """Whether the server ends it; waits for that."""
    try:
        while client.recv(1 << 16):
            continue
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def reads_the_page(live: LivePage) -> bool:
    with urlopen(live.url, timeout=PATIENCE_SECONDS) as answer:
        return bool(answer.read() == b"page 0")


def test_slow_clients_are_bounded_and_keep_nobody_out(
    live: LivePage, capfd: pytest.CaptureFixture[str]
) -> None:
    before = threading.active_count()
    clients = [connected(live, b"GET / HTTP/1.1\r\nHost: 127") for _ in range(CLIENTS)]
    assert reads_the_page(live)
    # The page came after all of them: the oldest were ended for the youngest.
    assert all(ended(client) for client in clients[: CLIENTS - live_page._MOST_CONNECTIONS])
    most = before + live_page._MOST_CONNECTIONS
    while threading.active_count() > most:  # threads of ended ones leave by themselves
        threading.Event().wait(0.01)
    for client in clients:
        client.close()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nA: b\r\n"])
def test_a_client_that_sends_no_whole_request_is_ended(
    live: LivePage, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(live_page, "_PATIENCE_SECONDS", 0.0)
    with connected(live, sent) as client:
        assert ended(client)


def test_a_client_that_resets_its_connection_is_no_error(
    live: LivePage, capfd: pytest.CaptureFixture[str]
) -> None:
    for sent in (
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET /progress HTTP/1.1\r\n\r\n",
    ) * 5:
        client = connected(live, sent)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        assert reads_the_page(live)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n",
        b"\0\xff\x1b[31m / HTTP/1.1\r\n\r\n",
        b"GET " + b"/" * (1 << 17) + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"GET / HTTP/99999999999.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: \xff\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 99999999999999999\r\n\r\n",
    ],
)
def test_nonsense_is_answered_and_not_told(
    live: LivePage, capfd: pytest.CaptureFixture[str], sent: bytes
) -> None:
    with connected(live, sent) as client:
        assert ended(client)
    assert reads_the_page(live)
    assert capfd.readouterr().err == ""
