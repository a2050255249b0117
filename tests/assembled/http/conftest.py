"""A server on loopback around a face, and what talks to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from tests.assembled.http.client import TOKEN, Client
from tests.service_face import FakeFace, small
from trimtab.http import HttpServer, HttpSettings, serve

Serving = Callable[..., HttpServer]


@pytest.fixture
def face() -> FakeFace:
    return small()


@pytest.fixture
def serving() -> Iterator[Serving]:
    """Starts a server for a face with the given settings; all are stopped in the end."""
    running: list[tuple[FakeFace, HttpServer]] = []

    def start(face: FakeFace, **settings: Any) -> HttpServer:
        chosen: dict[str, Any] = {"port": 0, "token": SecretStr(TOKEN)} | settings
        running.append((face, serve(face, HttpSettings(**chosen))))
        return running[-1][1]

    yield start
    for face, server in running:
        face.gate.set()
        server.stop()
        assert not server.alive, "the thread of the HTTP interface outlived stop()"
    for face, _ in running:
        assert not face.watching, "the service goes on telling a server that is gone"


@pytest.fixture
def client(face: FakeFace, serving: Serving) -> Client:
    """Of a server with a token."""
    return Client(serving(face).url)
