"""Connections that say nothing, or read nothing, lock no client out."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from pydantic import SecretStr

from tests.assembled.http.client import TOKEN, Client
from tests.service_face import FakeFace
from trimtab.http import HttpServer, HttpSettings
from trimtab.http.connections import MOST_OF_ONE, Patience
from trimtab.http.server import serve

LIMIT = 120.0  # seconds until something has to be true
HEAD = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def until(true: Callable[[], bool]) -> bool:
    end = time.monotonic() + LIMIT
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def patient(face: FakeFace) -> Iterator[Callable[[Patience], HttpServer]]:
    with ExitStack() as ends:

        def start(patience: Patience) -> HttpServer:
            server = serve(face, HttpSettings(port=0, token=SecretStr(TOKEN)), patience)
            ends.callback(server.stop)
            return server

        yield start


def connected(server: HttpServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT)


def is_closed(one: socket.socket) -> bool:
    readable, _, _ = select.select([one], [], [], 0)
    if not readable:
        return False
    try:
        return one.recv(1) == b""
    except ConnectionError:
        return True


def test_silent_connections_make_room_for_those_that_ask(patient: Callable[[Patience], HttpServer]) -> None:
    server = patient(Patience(head=10_000.0))
    client, most = Client(server.url), MOST_OF_ONE + 40
    with ExitStack() as ends:
        silent = [ends.enter_context(connected(server)) for _ in range(most)]
        assert client.get("/healthz").status == 200
        assert client.get("/metrics").status == 200
        assert until(lambda: sum(map(is_closed, silent)) >= 40)
        assert all(map(is_closed, silent[:30])), "the longest idle ones go first"
        assert not is_closed(silent[-1])


@pytest.mark.parametrize("said", [b"", HEAD], ids=["nothing", "half a head"])
def test_who_does_not_end_the_head_of_a_request_is_not_waited_for(patient: Callable[[Patience], HttpServer], said: bytes) -> None:
    server = patient(Patience(head=0.4))
    with connected(server) as one:
        one.sendall(said)
        assert until(lambda: is_closed(one))
    assert Client(server.url).get("/healthz").status == 200


def test_who_does_not_read_the_answer_is_not_waited_for(patient: Callable[[Patience], HttpServer], face: FakeFace) -> None:
    face.rewrite = lambda text: text + " " * 64_000_000
    server = patient(Patience(reader=0.4, head=2.0))
    connections = server._server.server_state.connections
    with connected(server) as one:
        one.sendall(b"GET /api/v1/plans/current?format=json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert one.recv(9) == b"HTTP/1.1 "
        assert until(lambda: not connections), "the server has let go of it"
    assert Client(server.url).get("/healthz").status == 200


def test_who_reads_slowly_but_reads_gets_the_whole(patient: Callable[[Patience], HttpServer], face: FakeFace) -> None:
    face.rewrite = lambda text: text + " " * 8_000_000
    server = patient(Patience(reader=30.0, head=0.4))
    with connected(server) as one:
        one.sendall(b"GET /api/v1/plans/current?format=json HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        count = 0
        while part := one.recv(1 << 20):
            count += len(part)
            time.sleep(0.02)
    assert count > 8_000_000
