"""A service that hangs: probes and people get an answer all the same, and threads do not pile up."""

from __future__ import annotations

import threading
import time

from tests.assembled.http.client import Client
from tests.assembled.http.conftest import Serving
from tests.service_face import FakeFace
from trimtab.http.api import MOST_READING


def hanging(serving: Serving, face: FakeFace) -> Client:
    client = Client(serving(face, patience=0.1).url)
    face.gate.clear()
    return client


def test_a_hung_service_is_unhealthy_and_says_so_in_time(serving: Serving, face: FakeFace) -> None:
    client = hanging(serving, face)
    began = time.monotonic()
    answers = [client.get(path) for path in ("/healthz", "/readyz", "/api/v1/state")]
    assert time.monotonic() - began < 20
    assert [a.status for a in answers] == [503, 503, 503]
    assert answers[0].json["reasons"] == ["The service did not answer within 0.1 s when asked for its state."]
    assert "see its log, and restart it" in answers[2].words


def test_prometheus_is_told_that_the_service_hangs(serving: Serving, face: FakeFace) -> None:
    answer = hanging(serving, face).get("/metrics")
    assert answer.status == 200
    assert "trimtab_state_available 0.0" in answer.text
    assert "trimtab_http_requests_total" in answer.text
    assert "trimtab_healthy" not in answer.text


def test_however_many_ask_a_hung_service_holds_one_thread_for_its_state(serving: Serving, face: FakeFace) -> None:
    client = hanging(serving, face)
    for _ in range(10):
        client.get("/healthz")
    assert sum(t.name == "http its state" for t in threading.enumerate()) == 1
    face.gate.set()
    assert client.get("/healthz").status == 200


def test_readers_that_hang_do_not_keep_pause_out(serving: Serving, face: FakeFace) -> None:
    client = hanging(serving, face)
    answers = [client.get("/api/v1/decisions") for _ in range(MOST_READING + 2)]
    assert {a.status for a in answers} == {503}
    assert "calls of the service are under way already" in answers[-1].words
    assert client.post("/api/v1/pause", {"who": "Ana"}).status == 200
    assert face.done == [("pause", "Ana", "")]


def test_a_change_that_took_too_long_may_still_happen_and_that_is_said(serving: Serving, face: FakeFace) -> None:
    client = hanging(serving, face)
    assert face.made is not None
    answer = client.post(f"/api/v1/plans/{face.made.plan_id}/approve", {"who": "Ana"})
    assert (answer.status, "It may still be carried out: look at the state" in answer.words) == (503, True)


def test_a_server_stops_though_the_service_hangs(serving: Serving, face: FakeFace) -> None:
    server = serving(face, patience=0.1)
    face.gate.clear()
    assert Client(server.url).get("/healthz").status == 503
    server.stop()
    assert not server.alive
