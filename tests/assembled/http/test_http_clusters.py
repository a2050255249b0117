"""Several clusters on one page: each tells its own headline, and one that does not answer is said to, and holds up no other."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from cluster_model.errors import ConfigurationError
from tests.assembled.http.client import TOKEN, Client
from tests.assembled.http.conftest import Serving
from tests.service_face import FakeFace, large
from trimtab.http import HttpSettings
from trimtab.http.others import ClusterPart
from trimtab.http.settings import access

PATIENCE = 4.0


def entry(name: str, *urls: str, **more: str) -> ClusterPart:
    return ClusterPart(name=name, urls=[url.rstrip("/") for url in urls], **more)


def another(cluster_id: str, *, leads: bool = True, **fields: object) -> FakeFace:
    face = large(20)
    leadership = face.now.leadership.model_copy(update={"leads": leads})
    face.change(cluster_id=cluster_id, instance=f"of {cluster_id}, leads {leads}", leadership=leadership, **fields)
    return face


def heard(client: Client, true: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
    """The clusters, once what is asked for is so."""
    deadline = time.monotonic() + 30
    while True:
        found: list[dict[str, Any]] = client.get("/api/v1/clusters").json["clusters"]
        if true(found) or time.monotonic() > deadline:
            return found


def all_asked(found: list[dict[str, Any]]) -> bool:
    return bool(found) and all(c["asked_ms"] is not None for c in found)


def test_without_others_there_is_nothing_to_show(client: Client) -> None:
    assert client.get("/api/v1/clusters").json == {"clusters": []}


def test_each_cluster_has_the_headline_of_the_instance_that_decides(face: FakeFace, serving: Serving) -> None:
    standby, decides = serving(another("b", leads=False)), serving(another("b"))
    client = Client(serving(face, cluster="home", clusters=[entry("elsewhere", standby.url, decides.url)]).url)
    home, other = heard(client, all_asked)
    assert (home["name"], home["here"], home["label"], home["reached"]) == ("home", True, "Hard goal violated", True)
    assert (other["name"], other["here"], other["cluster_id"], other["decides"]) == ("elsewhere", False, "b", True)
    assert other["url"] == decides.url
    assert (other["label"], other["sentence"]) == ("Reporters silent", "The reporter of broker 18 is not heard.")
    assert (other["tone"], other["brokers"], other["mode"]) == ("some", 20, "approve")


def test_a_standby_leads_to_the_page_of_the_instance_that_decides(face: FakeFace, serving: Serving) -> None:
    assert face.now.cluster_id is not None
    decides = serving(another(face.now.cluster_id))
    face.change(leadership=face.now.leadership.model_copy(update={"leads": False}))
    client = Client(serving(face, clusters=[entry("this one", decides.url)]).url)
    (home,) = heard(client, lambda found: found[0]["url"] is not None)
    assert (home["url"], home["decides"]) == (decides.url, False)


@contextmanager
def answering(status: int, body: bytes, **headers: str) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_clusters_that_do_not_answer_say_so_and_hold_up_no_other(face: FakeFace, serving: Serving) -> None:
    hangs = another("hangs")
    with socket.socket() as nobody, answering(200, b"<html>") as stranger, answering(302, b"", Location="http://127.0.0.1:1/") as mover:
        nobody.bind(("127.0.0.1", 0))
        hanging = serving(hangs).url
        hangs.gate.clear()
        guarded = serving(another("guarded"), read="token").url
        parts = [
            entry("dead", f"http://127.0.0.1:{nobody.getsockname()[1]}"), entry("hanging", hanging), entry("stranger", stranger),
            entry("mover", mover), entry("guarded", guarded),
        ]  # fmt: skip
        client = Client(serving(face, clusters=parts, clusters_patience=PATIENCE).url)
        begun = time.monotonic()
        first = client.get("/api/v1/clusters").json["clusters"]
        assert time.monotonic() - begun < PATIENCE
        assert [c["label"] for c in first[1:]] == ["Being asked"] * 5
        found = {c["name"]: c for c in heard(client, all_asked)[1:]}
        hangs.gate.set()
    said = {name: c["sentence"] for name, c in found.items()}
    assert {(c["reached"], c["tone"], c["label"]) for c in found.values()} == {(False, "bad", "No answer")}
    assert "Connection refused" in said["dead"]
    assert "no answer within 4 s" in said["hanging"]
    assert "no Trimtab" in said["stranger"]
    assert "HTTP 302" in said["mover"], "a token would have gone along"
    assert "it asks for a token, see token_file" in said["guarded"]


def test_the_token_of_another_cluster_comes_from_a_file_and_is_told_nowhere(face: FakeFace, serving: Serving, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    other = serving(another("b"), read="token")
    client = Client(serving(face, clusters=[entry("b", other.url, token_file=str(token))]).url)
    found = heard(client, all_asked)
    assert found[1]["reached"], found
    assert TOKEN not in client.get("/api/v1/clusters").text


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"name": "b", "urls": ["ftp://b"]}, "expected an address such as https://"),
        ({"name": "b", "urls": ["https://b/api"]}, "without a path"),
        ({"name": "b", "urls": []}, "at least 1 item"),
        ({"name": "b", "urls": ["http://b.example.org"], "token_file": "t"}, "the token could be read on the way"),
        ({"name": "b", "urls": ["https://b"], "tokn_file": "t"}, "tokn_file"),
    ],
)
def test_wrong_entries_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        HttpSettings.model_validate({"clusters": [keys]})


def test_files_that_cannot_be_used_are_refused_at_the_start_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "open").write_text(TOKEN)
    (tmp_path / "open").chmod(0o644)
    part = ClusterPart(name="b", urls=["https://b"], token_file="open", ca_file="absent.pem").beside(tmp_path)
    with pytest.raises(ConfigurationError) as refused:
        access(HttpSettings(clusters=[part]))
    assert "http.clusters[0].token_file" in str(refused.value)
    assert "http.clusters[0].ca_file" in str(refused.value)


