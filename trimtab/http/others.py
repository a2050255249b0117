"""Other services that the page asks: how their clusters stand, read-only, each within a time of its own.

Used by `trimtab.http.api`. Asking happens in a thread of its own, so a service that hangs holds up no request; answers are the
last ones heard, with their time.
"""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from email.message import Message
from pathlib import Path
from typing import IO, Annotated, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from cluster_model.plain_text import one_line
from trimtab import __version__
from trimtab.http.glance import Tone
from trimtab.secret_file import read_secret
from trimtab.service.views import View
from trimtab.service.webhook import web_address

KEPT_SECONDS = 5.0  # an answer is not asked for again before
MOST_BYTES = 16 << 20
CHUNK = 1 << 16
LONGEST = 400  # signs of another's sentence
EXAMPLE = "https://controller1.example.org:8470"
STATE = "/api/v1/state"
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _address(given: object) -> str:
    address = web_address(given, EXAMPLE).rstrip("/")
    if urlsplit(address).path or urlsplit(address).query or "@" in address:
        raise ValueError(f"expected the address of a service without a path, such as {EXAMPLE}, found {given}")
    return address


class ClusterPart(BaseModel):
    """One entry of `http.clusters`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: str = Field(min_length=1, max_length=80, description="what the cluster is called on the page")
    urls: list[Annotated[str, BeforeValidator(_address)]] = Field(
        min_length=1, max_length=9, description="the services beside its controllers; the one that decides is told of"
    )
    token_file: str | None = Field(default=None, description="file with their token for reading, where reading takes one")
    ca_file: str | None = Field(default=None, description="PEM file with the authority of their certificates; the system's by default")

    @model_validator(mode="after")
    def _token_is_safe(self) -> ClusterPart:
        open_ones = [url for url in self.urls if url.startswith("http:") and urlsplit(url).hostname not in LOOPBACK]
        if self.token_file is not None and open_ones:
            raise ValueError(f"the token could be read on the way to {open_ones[0]}: give an address with https")
        return self

    def beside(self, folder: Path) -> ClusterPart:
        """The same with paths relative to `folder`."""
        paths = {key: str(folder / value) for key in ("token_file", "ca_file") if (value := getattr(self, key))}
        return self.model_copy(update=paths)

    def faults(self) -> list[tuple[str, str]]:
        """Key and fault of files that cannot be used."""
        found = []
        try:
            self.token()
        except ValueError as error:
            found.append(("token_file", str(error)))
        try:
            self.opener()
        except (OSError, ValueError) as error:
            found.append(("ca_file", f"expected a PEM file with certificates at {self.ca_file}: {error}"))
        return found

    def token(self) -> str | None:
        return None if self.token_file is None else read_secret(self.token_file, "the token")

    def opener(self) -> OpenerDirector:
        return build_opener(_NoRedirect, HTTPSHandler(context=ssl.create_default_context(cafile=self.ca_file)))


class _NoRedirect(HTTPRedirectHandler):
    """A service that sends us elsewhere is not followed: the token would go along."""

    def redirect_request(self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str) -> None:
        return None


class ClusterStanding(View):
    """How a cluster stands, as the service beside it says."""

    name: str
    here: bool = Field(default=False, description="it is the cluster of the service that was asked")
    reached: bool = Field(description="whether a service of it answered")
    asked_ms: int | None = Field(default=None, description="when it was asked last; null: not yet")
    url: str | None = Field(default=None, description="address of the page of the instance that decides, or of one that answered")
    cluster_id: str | None = None
    instance: str | None = None
    decides: bool = Field(default=False, description="whether that instance decides")
    tone: Tone = "plain"
    label: str = ""
    sentence: str = Field(default="", description="the headline of its page; where no service answered, why")
    mode: str | None = None
    brokers: int | None = None
    partitions: int | None = None


class ClustersView(View):
    """All clusters of the page, this one first; empty where no others are configured."""

    clusters: tuple[ClusterStanding, ...]


class Others:
    """Asks in a thread; `standings` returns at once.

    Parameters
    ----------
    patience
        Seconds that one service may take over its answer.
    """

    def __init__(
        self, parts: Sequence[ClusterPart], patience: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:  # fmt: skip
        self._parts, self._patience, self._monotonic = tuple(parts), patience, monotonic
        self._known = tuple(ClusterStanding(name=p.name, reached=False, asked_ms=None, label="Being asked") for p in self._parts)
        self._lock, self._asking = threading.Lock(), False
        self._asked_at: float | None = None

    @property
    def any(self) -> bool:
        return bool(self._parts)

    def standings(self, now_ms: int) -> tuple[ClusterStanding, ...]:
        """What was heard last; asks again where that is some seconds ago."""
        with self._lock:
            ago = None if self._asked_at is None else self._monotonic() - self._asked_at
            if self._parts and not self._asking and (ago is None or ago >= KEPT_SECONDS):
                self._asking = True
                threading.Thread(target=self._refresh, name="clusters", daemon=True).start()
            asked_ms = None if ago is None else now_ms - round(1000 * ago)
            return tuple(it.model_copy(update={"asked_ms": asked_ms}) for it in self._known)

    def _refresh(self) -> None:
        answers: dict[str, dict[str, Any] | str] = {}

        def ask(part: ClusterPart, url: str) -> None:
            answers[url] = self._told(part, url)

        asking = [threading.Thread(target=ask, args=(part, url), daemon=True) for part in self._parts for url in part.urls]
        deadline = self._monotonic() + self._patience
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join(max(deadline - self._monotonic(), 0.0))
        late = f"no answer within {self._patience:g} s"
        found = tuple(self._best(part, {url: answers.get(url, late) for url in part.urls}) for part in self._parts)
        with self._lock:
            self._known, self._asking, self._asked_at = found, False, self._monotonic()

    def _best(self, part: ClusterPart, answers: Mapping[str, dict[str, Any] | str]) -> ClusterStanding:
        """Of several services of a cluster the one that decides, else one that knows the cluster, else any that answers."""
        states = [(url, said) for url, said in answers.items() if isinstance(said, dict)]
        if not states:
            why = "; ".join(f"{url}: {said}" for url, said in answers.items())
            return ClusterStanding(
                name=part.name, reached=False, tone="bad", label="No answer", sentence=f"No service answers: {one_line(why)}."
            )
        best = min(states, key=lambda it: (not it[1]["leadership"].get("leads"), not it[1].get("ready")))
        return _standing(part.name, *best)

    def _told(self, part: ClusterPart, url: str) -> dict[str, Any] | str:
        """The state, or why there is none."""
        head = {"Accept": "application/json", "User-Agent": f"trimtab/{__version__}"}
        deadline = self._monotonic() + self._patience
        try:
            token = part.token()
            request = Request(url + STATE, headers=head | ({} if token is None else {"Authorization": f"Bearer {token}"}))
            with part.opener().open(request, timeout=self._patience) as answer:
                body = bytearray()
                while chunk := answer.read1(CHUNK):
                    body += chunk
                    if len(body) > MOST_BYTES or self._monotonic() > deadline:
                        return f"no whole answer within {self._patience:g} s"
            return _checked(body)
        except HTTPError as error:
            error.close()
            return "it asks for a token, see token_file" if error.code == 401 else f"HTTP {error.code}"
        except URLError as error:
            return _reason(error.reason, self._patience)
        except (OSError, ValueError) as error:
            return _reason(error, self._patience)


def _reason(error: object, patience: float) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {patience:g} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _checked(body: bytes | bytearray) -> dict[str, Any]:
    """What a service of this release would say, or a later one. Raises `ValueError`."""
    said: object = None
    with suppress(ValueError):
        said = json.loads(body)
    if isinstance(said, Mapping) and isinstance(said.get("leadership"), Mapping) and isinstance(said.get("glance"), Mapping):
        return dict(said)
    raise ValueError("what answers there is no Trimtab, or of another release")


def _standing(name: str, url: str, said: Mapping[str, Any]) -> ClusterStanding:
    glance, cluster = said["glance"], said.get("cluster")
    lives = cluster.get("lives") if isinstance(cluster, Mapping) else None
    tone = glance.get("tone")
    return ClusterStanding(
        name=name, reached=True, url=f"{url}/", cluster_id=_or_none(said.get("cluster_id")),
        instance=_or_none(said.get("instance")), decides=said["leadership"].get("leads") is True,
        tone=tone if tone in ("good", "some", "bad", "plain") else "plain", label=_or_none(glance.get("label")) or "",
        sentence=_or_none(glance.get("sentence")) or "", mode=_or_none(said.get("mode")),
        brokers=sum(n for n in lives.values() if isinstance(n, int)) if isinstance(lives, Mapping) else None,
        partitions=cluster.get("partitions") if isinstance(cluster, Mapping) and isinstance(cluster.get("partitions"), int) else None,
    )  # fmt: skip


def _or_none(value: object) -> str | None:
    return one_line(value)[:LONGEST] if isinstance(value, str) else None
