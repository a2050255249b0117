"""One HTTP request to an agent in the broker's process, bounded in time and size.

Used by the collectors of the JMX exporter and of Jolokia. No proxy is ever asked: the agent stands beside us.
"""

from __future__ import annotations

import base64
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import cast

from metrics_reporter.reading import CollectError

CHUNK = 65_536
MAX_BYTES = 128 * 2**20  # an exporter without rules, on a broker with many thousand replicas, gives a tenth


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where an agent listens, and how long one answer may take as a whole.

    `password_file` is read at every request, so that a changed password needs no restart.
    """

    url: str
    timeout: float = 5.0
    user: str | None = None
    password_file: Path | None = None
    max_bytes: int = MAX_BYTES


def fetch(endpoint: Endpoint, body: bytes | None = None) -> bytes:
    """The answer to a GET, or to a POST where there is a body.

    Raises
    ------
    CollectError
        No answer, not in time, too long, or not 200.
    """
    request = urllib.request.Request(endpoint.url, data=body, headers=_headers(endpoint, body))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    begun = time.monotonic()
    try:
        with cast(HTTPResponse, opener.open(request, timeout=endpoint.timeout)) as response:
            parts: list[bytes] = []
            size = 0
            while part := response.read1(CHUNK):
                size += len(part)
                parts.append(part)
                if size > endpoint.max_bytes:
                    raise CollectError(f"{endpoint.url}: the answer is longer than {endpoint.max_bytes} bytes")
                if time.monotonic() - begun > endpoint.timeout:
                    raise TimeoutError
    except urllib.error.HTTPError as error:
        with error:
            raise CollectError(f"{endpoint.url}: expected 200, found {error.code} {error.reason}{_hint(error.code)}") from None
    except (TimeoutError, OSError, HTTPException, ValueError) as error:
        raise CollectError(f"{endpoint.url}: {_said(error, endpoint.timeout)}") from error
    return b"".join(parts)


def _headers(endpoint: Endpoint, body: bytes | None) -> dict[str, str]:
    headers = {"User-Agent": "trimtab-reporter"} | ({"Content-Type": "application/json"} if body is not None else {})
    if endpoint.user is not None:
        password = ""
        if endpoint.password_file is not None:
            try:
                password = endpoint.password_file.read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, UnicodeDecodeError) as error:
                raise CollectError(f"{endpoint.password_file}: expected a password in it: {error}") from None
        token = base64.b64encode(f"{endpoint.user}:{password}".encode()).decode()
        headers["Authorization"] = f"Basic {token}"
    return headers


def _hint(code: int) -> str:
    return "; check user and password_file" if code in (401, 403) else "; check the path of the URL" if code == 404 else ""


def _said(error: Exception, timeout: float) -> str:
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return f"no whole answer within {timeout:g} s"
    if isinstance(reason, ConnectionRefusedError):
        return "the connection was refused; is the broker up, and its agent on this port?"
    return str(getattr(reason, "strerror", None) or reason) or type(reason).__name__
