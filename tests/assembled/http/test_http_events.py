"""Server-sent events: what changed reaches those who listen, without asking again and again."""

from __future__ import annotations

import http.client
import json
from typing import Any

from tests.assembled.http.client import Client
from tests.assembled.http.conftest import Serving
from tests.service_face import FakeFace
from trimtab.http.events import MOST_LISTENERS


class Stream:
    """A connection that listens."""

    def __init__(self, client: Client) -> None:
        self.connection: http.client.HTTPConnection = client.connection()
        self.connection.request("GET", "/api/v1/events")
        self.response = self.connection.getresponse()

    def next(self) -> dict[str, Any]:
        """The data of the next event."""
        while True:
            line = self.response.readline().decode()
            assert line, "the stream has ended"
            if line.startswith("data: "):
                data: dict[str, Any] = json.loads(line[6:])
                return data


def test_an_event_comes_at_once_and_with_every_change(client: Client, face: FakeFace) -> None:
    stream = Stream(client)
    assert stream.response.headers["content-type"].startswith("text/event-stream")
    first = stream.next()
    assert (first["paused"], first["plan_state"], first["leads"]) == (False, "proposed", True)
    face.change(paused=True)
    assert stream.next()["paused"] is True
    face.change(plan=None)
    assert stream.next()["plan_id"] is None
    stream.connection.close()


def test_many_changes_at_once_are_few_events_and_the_last_one_counts(client: Client, face: FakeFace) -> None:
    stream = Stream(client)
    stream.next()
    before = face.asked
    for number in range(500):
        face.change(now_ms=number)
    seen: list[int] = []
    while not seen or seen[-1] != 499:
        seen.append(stream.next()["at_ms"])
    assert len(seen) <= 3
    assert face.asked - before <= 4, "each change asked the service for its state"
    stream.connection.close()


def test_listeners_share_one_question(client: Client, face: FakeFace) -> None:
    streams = [Stream(client) for _ in range(8)]
    for stream in streams:
        stream.next()
    before = face.asked
    face.change(paused=True)
    assert [stream.next()["paused"] for stream in streams] == [True] * 8
    assert face.asked - before == 1
    for stream in streams:
        stream.connection.close()


def test_trouble_is_an_event_too(serving: Serving, face: FakeFace) -> None:
    client = Client(serving(face, patience=0.1).url)
    stream = Stream(client)
    assert stream.next()["trouble"] is None
    face.gate.clear()
    face.tell()
    assert "did not answer within 0.1 s" in stream.next()["trouble"]
    stream.connection.close()


def test_too_many_listeners_are_told_what_else_there_is(client: Client) -> None:
    streams = [Stream(client) for _ in range(MOST_LISTENERS)]
    for stream in streams:
        stream.next()
    answer = client.get("/api/v1/events")
    assert (answer.status, "Ask for /api/v1/state" in answer.words) == (503, True)
    for stream in streams:
        stream.connection.close()


def test_streams_end_when_the_server_stops(serving: Serving, face: FakeFace) -> None:
    server = serving(face)
    stream = Stream(Client(server.url))
    stream.next()
    server.stop()
    assert stream.response.read() in (b"", b"\n")
