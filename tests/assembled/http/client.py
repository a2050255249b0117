"""A client as plain as can be, so that a test sees what goes over the wire."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

TOKEN = "a-token-of-some-length"
PATIENCE = 30.0


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def words(self) -> str:
        """Of a problem, all that a person reads."""
        assert self.headers["content-type"] == "application/problem+json"
        return f"{self.json['title']}: {self.json['detail']} {self.json['what_to_do']}"


class Client:
    """Requests to one server, each over a connection of its own."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        where = urlsplit(url)
        assert where.hostname is not None
        self._host, self._port, self._tls = where.hostname, where.port, tls

    def connection(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=PATIENCE, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=PATIENCE)

    def ask(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Answer:
        connection = self.connection()
        try:
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def post(self, path: str, body: object = None, token: str | None = TOKEN, **headers: str) -> Answer:
        said = {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()}
        if token is not None:
            said["Authorization"] = f"Bearer {token}"
        return self.ask("POST", path, b"" if body is None else json.dumps(body).encode(), said)
