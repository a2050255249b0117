"""Tokens for SASL/OAUTHBEARER: client credentials at a token endpoint, or a file that something else renews.

Used by `trimtab.capture.client`, which reads the settings, and by the Kafka client, which asks for a token at each connection.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kafka.net.sasl.oauth import AbstractTokenProvider

from cluster_model.errors import ExternalError

SECONDS = 10.0
RENEWED_AT = 0.8  # of the time that a token is valid
LARGEST_ANSWER = 1_000_000


@dataclass(frozen=True, slots=True)
class Credentials:
    """Where tokens come from, and as whom.

    Attributes
    ----------
    url
        ``https://…`` of the token endpoint, or ``file:///…``.
    """

    url: str
    client_id: str = ""
    secret: str = field(default="", repr=False)
    scope: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict)


class Tokens(AbstractTokenProvider):  # type: ignore[misc]
    """The token of a connection; asked again only when most of its time has passed. Used by several threads."""

    def __init__(self, credentials: Credentials, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._credentials, self._clock = credentials, clock
        self._lock = threading.Lock()
        self._token, self._until = "", 0.0

    def token(self) -> str:
        """A token that is valid.

        Raises
        ------
        ExternalError
            The endpoint gives none; the message names it and never the secret.
        """
        with self._lock:
            if not self._token or self._clock() >= self._until:
                self._token, seconds = self._asked()
                self._until = self._clock() + RENEWED_AT * seconds
            return self._token

    def extensions(self) -> dict[str, str]:
        """SASL extensions of the login module, such as the ``logicalCluster`` that Confluent Cloud wants."""
        return dict(self._credentials.extensions)

    def _asked(self) -> tuple[str, float]:
        url = self._credentials.url
        if url.startswith("file:"):
            try:
                return Path(urllib.parse.unquote(urllib.parse.urlparse(url).path)).read_text("utf-8").strip(), 0.0
            except (OSError, ValueError) as error:
                raise ExternalError(f"{url}: the token cannot be read ({error})", retriable=False) from None
        form = {"grant_type": "client_credentials"} | ({"scope": self._credentials.scope} if self._credentials.scope else {})
        user = ":".join(map(urllib.parse.quote_plus, (self._credentials.client_id, self._credentials.secret)))
        request = urllib.request.Request(
            url, urllib.parse.urlencode(form).encode(),
            {"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}", "Accept": "application/json"},
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                document = json.loads(answer.read(LARGEST_ANSWER))
            token, seconds = document["access_token"], document.get("expires_in")
        except urllib.error.HTTPError as error:
            hint = "check clientId, clientSecret and scope in sasl.jaas.config" if error.code in (400, 401, 403) else error.reason
            raise ExternalError(f"{url}: no token, the endpoint answered {error.code}; {hint}", retriable=error.code >= 500) from None
        except OSError as error:
            reason = getattr(error, "reason", None) or error
            raise ExternalError(f"{url}: no token, the endpoint cannot be reached ({reason})", retriable=True) from None
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ExternalError(f"{url}: expected JSON with access_token, found something else; check the URL", retriable=False) from None
        if not isinstance(token, str) or not token:
            raise ExternalError(f"{url}: expected a text as access_token, found {type(token).__name__}", retriable=False)
        return token, float(seconds) if isinstance(seconds, int | float) and seconds > 0 else 300.0
