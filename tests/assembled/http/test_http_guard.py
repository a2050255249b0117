"""Who is kept out: strangers without the token, pages of other sites, names that are not ours."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.assembled.http.client import TOKEN, Client
from tests.assembled.http.conftest import Serving
from tests.service_face import FakeFace
from trimtab.http.endpoints import ENDPOINTS

READS = "a-token-that-only-reads"
CHANGES = [e.path for e in ENDPOINTS if e.access == "changing"]


@pytest.mark.parametrize("path", CHANGES)
def test_nothing_changes_without_the_token(client: Client, face: FakeFace, path: str) -> None:
    path = path.replace("{plan_id}", face.made.plan_id if face.made else "")
    for token in (None, "", "a-token-of-some-lengt", TOKEN + "h", TOKEN.upper(), "é" * 16):
        answer = client.ask("POST", path, b'{"broker": 1}', {"Content-Type": "application/json", **_bearer(token)})
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == 'Bearer realm="trimtab"'
        assert "takes the token" in answer.words
    assert face.done == []


def _bearer(token: str | None) -> dict[str, str]:
    return {} if token is None else {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("path", CHANGES)
def test_without_a_configured_token_changes_are_refused_with_how_to_get_one(serving: Serving, face: FakeFace, path: str) -> None:
    client = Client(serving(face, token=None).url)
    answer = client.post(path.replace("{plan_id}", "x"), {"who": "Ana", "broker": 1}, token=TOKEN)
    assert answer.status == 403
    assert "No token is configured" in answer.words
    assert "token_file" in answer.words
    assert client.get("/api/v1/access").json["change"] == "refused"
    assert face.done == []


def test_every_post_takes_the_token() -> None:
    assert all(e.access == "changing" for e in ENDPOINTS if e.method == "POST")
    assert len(CHANGES) == 9


def test_reading_takes_the_token_where_it_is_asked_for(serving: Serving, face: FakeFace) -> None:
    client = Client(serving(face, read="token").url)
    for endpoint in ENDPOINTS:
        if endpoint.method == "GET":
            path = endpoint.path.replace("{plan_id}", "current")
            assert client.get(path).status == (200 if endpoint.access == "anyone" else 401), path
    assert client.get("/api/v1/state", Authorization=f"Bearer {TOKEN}").status == 200
    assert client.get("/").status == 200, "the page has to come to be able to ask for the token"
    assert client.get("/api/v1/access").json["read"] == "token"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "", "127.1"])
def test_a_name_that_someone_turned_here_is_refused(client: Client, host: str) -> None:
    """DNS rebinding: the browser believes it talks to evil.example, so its pages could read everything."""
    for path in ("/", "/api/v1/state", "/healthz"):
        answer = client.get(path, Host=host)
        assert answer.status in (400, 421)
        assert b"controller-3" not in answer.body


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1234", "127.0.0.1:80", "[::1]:8470", "10.1.2.3", "trimtab.internal:443", "localhost."]
)
def test_names_and_addresses_that_are_ours(serving: Serving, face: FakeFace, host: str) -> None:
    client = Client(serving(face, names=["Trimtab.internal"]).url)
    assert client.get("/api/v1/state", Host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_sites_page_changes_nothing_even_with_the_token(client: Client, face: FakeFace, headers: dict[str, str]) -> None:
    said = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"} | headers
    answer = client.ask("POST", "/api/v1/pause", b"{}", said)
    assert answer.status == 403
    assert "may not change anything here" in answer.words
    assert face.done == []


def test_our_own_page_may(serving: Serving, face: FakeFace) -> None:
    server = serving(face, names=["trimtab.internal"])
    client = Client(server.url)
    assert client.post("/api/v1/resume", {"who": "Ana"}, Origin=server.url.rstrip("/"), Sec_Fetch_Site="same-origin").status == 200
    assert client.post("/api/v1/resume", {"who": "Ana"}, Origin="https://trimtab.internal").status == 200


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_form_of_another_site_changes_nothing(client: Client, face: FakeFace, media: str) -> None:
    answer = client.ask("POST", "/api/v1/pause", b"{}", {"Content-Type": media, "Authorization": f"Bearer {TOKEN}"})
    assert answer.status == 415
    assert face.done == []


def test_a_token_that_only_reads_changes_nothing(serving: Serving, face: FakeFace, tmp_path: Path) -> None:
    """Prometheus gets a token beyond loopback, and must not be able to drain brokers with it."""
    file = tmp_path / "reads"
    file.write_text(READS)
    file.chmod(0o600)
    client = Client(serving(face, read="token", read_token_file=str(file)).url)
    assert client.get("/metrics").status == 401
    assert client.get("/metrics", Authorization=f"Bearer {READS}").status == 200
    assert client.get("/metrics", Authorization=f"Bearer {TOKEN}").status == 200
    assert client.get("/metrics", Authorization=f"Bearer {READS}x").status == 401
    answer = client.post("/api/v1/pause", {"who": "Prometheus"}, token=READS)
    assert (answer.status, "This token allows reading only" in answer.words) == (403, True)
    assert face.done == []
    only = Client(serving(face, token=None, read="token", read_token_file=str(file)).url)
    assert only.get("/api/v1/state", Authorization=f"Bearer {READS}").status == 200
    assert only.get("/api/v1/state").status == 401
    assert "No token is configured" in only.post("/api/v1/pause", {"who": "Ana"}, token=READS).words


def test_changes_are_logged_with_name_and_address(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert client.post("/api/v1/pause", {"who": "Ana", "why": "upgrade"}).status == 200
    assert "pause: asked over HTTP by Ana from 127.0.0.1" in caplog.messages
    assert client.post("/api/v1/plans/sha256:x/approve", {"who": "Ana"}).status == 404
    assert any(m.startswith("approve plan sha256:x: refused to Ana from 127.0.0.1: ") for m in caplog.messages)
