"""Settings that would not be safe are refused before anything listens, with what to do."""

from __future__ import annotations

import ssl
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest
import trustme
from pydantic import SecretStr, ValidationError

from cluster_model.errors import ConfigurationError, ExternalError
from tests.assembled.http.client import TOKEN, Client
from tests.assembled.http.conftest import Serving
from tests.service_face import FakeFace
from trimtab.http import HttpSettings, serve
from trimtab.http.settings import access


def refusal(**settings: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        access(HttpSettings(**settings))
    return str(caught.value)


def test_loopback_needs_nothing() -> None:
    assert HttpSettings().host == "127.0.0.1"
    for host in ("127.0.0.1", "::1", "localhost"):
        allowed = access(HttpSettings(host=host))
        assert (allowed.token, allowed.read_token, allowed.tls) == (None, False, False)


def test_beyond_loopback_takes_tls_and_a_token() -> None:
    said = refusal(host="0.0.0.0")
    assert "tls_certificate" in said
    assert "plain_beyond_loopback" in said
    assert "token_file" in said
    assert "tls_certificate" in refusal(host="0.0.0.0", token=SecretStr(TOKEN))
    assert "read: open" in refusal(host="0.0.0.0", plain_beyond_loopback=True)


def test_beyond_loopback_reading_takes_the_token_unless_it_is_said() -> None:
    assert access(HttpSettings(host="0.0.0.0", plain_beyond_loopback=True, token=SecretStr(TOKEN))).read_token
    assert not access(HttpSettings(host="0.0.0.0", plain_beyond_loopback=True, read="open")).read_token


def test_a_token_that_could_be_guessed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(0o600)
    for text in ("", "short", "two words of good length", "ünïcode-of-good-length"):
        file.write_text(text)
        assert "token_file" in refusal(token_file=str(file))
    file.write_text(f"{TOKEN}\n")
    assert access(HttpSettings(token_file=str(file))).token == TOKEN
    assert "openssl rand" in refusal(token=SecretStr("short"))
    assert "expected a readable" in refusal(token_file=str(tmp_path / "absent"))
    assert "there is none" in refusal(read="token")


def test_a_token_that_every_user_of_the_machine_reads_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    for mode in (0o644, 0o604, 0o602):
        file.chmod(mode)
        for key in ("token_file", "read_token_file"):
            said = refusal(**{key: str(file)})
            assert f"http.{key}: expected a file that only its owner and group may read, found mode {mode:04o}" in said
            assert "chmod 600" in said
    for mode in (0o600, 0o440):
        file.chmod(mode)
        assert access(HttpSettings(token_file=str(file))).token == TOKEN
    assert "expected another token" in refusal(token_file=str(file), read_token_file=str(file))
    assert access(HttpSettings(host="0.0.0.0", plain_beyond_loopback=True, read_token_file=str(file))).read_token


def test_a_token_is_not_shown() -> None:
    assert TOKEN not in repr(HttpSettings(token=SecretStr(TOKEN)))
    assert TOKEN not in HttpSettings(token=SecretStr(TOKEN)).model_dump_json()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"tls_key": "a"}, "belong together"),
        ({"token": SecretStr(TOKEN), "token_file": "a"}, "give one of them"),
        ({"port": 70000}, "less than or equal to 65535"),
        ({"hots": "a"}, "Extra inputs are not permitted"),
        ({"patience": "0s"}, "greater than 0"),
    ],
)
def test_what_contradicts_itself_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        HttpSettings(**settings)


def test_paths_are_relative_to_the_configuration(tmp_path: Path) -> None:
    found = HttpSettings(token_file="token", tls_certificate="/etc/c.pem", tls_key="k.pem").beside(tmp_path)
    assert found.token_file == str(tmp_path / "token")
    assert found.tls_certificate == "/etc/c.pem"
    assert found.tls_key == str(tmp_path / "k.pem")


def test_tls(tmp_path: Path, serving: Serving, face: FakeFace) -> None:
    authority = trustme.CA()
    mine = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    mine.cert_chain_pems[0].write_to_path(certificate)
    mine.private_key_pem.write_to_path(key)
    server = serving(face, tls_certificate=str(certificate), tls_key=str(key))
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    assert server.url.startswith("https://")
    assert Client(server.url, trusting).get("/healthz").status == 200
    with pytest.raises((OSError, HTTPException)):
        Client(server.url.replace("https", "http")).get("/healthz")
    assert "expected a PEM certificate" in refusal(tls_certificate=str(key), tls_key=str(certificate))
    assert "expected a PEM certificate" in refusal(tls_certificate=str(tmp_path / "no"), tls_key=str(key))


def test_a_port_that_is_taken_is_said(serving: Serving, face: FakeFace) -> None:
    taken = serving(face).port
    with pytest.raises(ExternalError, match=f"cannot listen on 127.0.0.1 port {taken}: Address already in use; name another port"):
        serve(face, HttpSettings(port=taken))


def test_stopping_twice_is_fine(serving: Serving, face: FakeFace) -> None:
    server = serving(face)
    assert server.alive
    server.stop()
    server.stop()
    assert (server.alive, server.error) == (False, None)
