"""Range queries to Prometheus, Thanos or VictoriaMetrics, whose answers are kept as files: those that are there are not asked for again.

Called by ``trimtab history import --url``. Knows the HTTP interface (``/api/v1/query_range``) and nothing of samples; the standard
library does the rest.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_model.errors import ConfigurationError, ExternalError, Problem
from spark.history.mapping import PrometheusMapping, SeriesOf

MOST_POINTS = 10_000  # of a series in one answer; servers refuse more than 11,000
LONGEST = 6 * 3600.0  # seconds of one question, so that an answer stays small
TRIES = 4
TOO_MUCH = (400, 413, 422)  # what a server says to a question that asks for too much; a shorter one may do
LATER = (429, 500, 502, 503, 504)
Shown = Callable[[int, int], None]


@dataclass(frozen=True)
class Server:
    """Where to ask. `url` may have user and password; `token` goes along as a bearer token."""

    url: str
    token: str | None = None
    timeout: float = 120.0


@dataclass(frozen=True)
class Question:
    """One selector over a time: epoch seconds, both ends included, `step` apart."""

    selector: str
    begin: int
    end: int
    step: int

    @property
    def name(self) -> str:
        """Name of the file with the answer."""
        what = hashlib.sha256(self.selector.encode()).hexdigest()[:12]
        return f"{what}-{self.begin}-{self.end}-{self.step}.json.gz"

    def halves(self) -> tuple[Question, Question] | None:
        """The same in two; None where it is one point."""
        steps = (self.end - self.begin) // self.step
        if steps < 1:
            return None
        middle = self.begin + (steps // 2) * self.step
        return Question(self.selector, self.begin, middle, self.step), Question(self.selector, middle + self.step, self.end, self.step)


def selectors(mapping: PrometheusMapping, match: str = "") -> list[str]:
    """A selector for each series that the mapping names, each once; `match` is added to all, such as ``job="kafka"``.

    Raises
    ------
    ConfigurationError
        The mapping goes by names of files, which a server does not have.
    """
    found: dict[str, None] = {}
    for source in mapping.sources():
        one: SeriesOf = source.series
        if one.name is None:
            message = "expected a named series, found one known only by a file name; ask with curl, or name the series"
            raise ConfigurationError("--mapping", [Problem(f"{source.about}.{source.metric}", message)])
        labels = [f"{key}={json.dumps(value)}" for key, value in sorted(one.labels.items())]
        found[f'{{__name__=~"(?i:{one.name.lower()})"{"".join(f",{part}" for part in (*labels, match) if part)}}}'] = None
    return list(found)


def questions(chosen: list[str], begin: int, end: int, step: int) -> list[Question]:
    """Everything from `begin` on and before `end`, in pieces that servers answer; by time, then by selector."""
    length = int(max(step, min(LONGEST, MOST_POINTS * step) // step * step))
    spans = [(at, min(at + length, end) - step) for at in range(begin, end, length)]
    return [Question(selector, first, max(first, last), step) for first, last in spans for selector in chosen]


def ask(
    server: Server, asked: list[Question], folder: Path, shown: Shown | None = None, pause: Callable[[float], None] = time.sleep
) -> list[Path]:
    """Files with the answers, in order. What is there is not asked for; a question that is too much is asked in halves.

    Raises
    ------
    ExternalError
        The server cannot be reached, or says no. What it has answered so far stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    for number, question in enumerate(asked):
        files.extend(_answers(server, question, folder, pause))
        if shown is not None:
            shown(number + 1, len(asked))
    return files


def _answers(server: Server, question: Question, folder: Path, pause: Callable[[float], None]) -> Iterator[Path]:
    file = folder / question.name
    halves = question.halves()
    if file.exists():
        yield file
        return
    if halves is not None and any((folder / half.name).exists() for half in halves):  # it was too much before
        for half in halves:
            yield from _answers(server, half, folder, pause)
        return
    try:
        body = _body(server, question, pause)
    except _TooMuch as error:
        if halves is None:
            raise ExternalError(f"{server_name(server)}: {error}") from None
        for half in halves:
            yield from _answers(server, half, folder, pause)
        return
    unfinished = folder / f".{question.name}.tmp"
    unfinished.write_bytes(gzip.compress(body, 1))
    os.replace(unfinished, file)
    yield file


class _TooMuch(Exception):
    """The server refuses a question for its size, as it seems."""


def _body(server: Server, question: Question, pause: Callable[[float], None]) -> bytes:
    for attempt in range(TRIES):
        try:
            return _once(server, question)
        except urllib.error.HTTPError as error:
            said = f"{error.code}: {_said(error)}"
            if error.code in TOO_MUCH:
                raise _TooMuch(said) from None
            if error.code not in LATER:
                raise ExternalError(f"{server_name(server)} answers {said}") from None
            if error.code in (503, 504) and attempt:  # a timeout of the query, most likely
                raise _TooMuch(said) from None
        except (OSError, ValueError) as error:
            said = str(getattr(error, "reason", error))
        if attempt + 1 < TRIES:
            pause(2.0**attempt)
    raise ExternalError(f"{server_name(server)}: no answer after {TRIES} tries: {said}", retriable=True)


def _once(server: Server, question: Question) -> bytes:
    parts = urllib.parse.urlsplit(server.url)
    wanted = {"query": question.selector, "start": question.begin, "end": question.end, "step": question.step}
    path = f"{parts.path.rstrip('/')}/api/v1/query_range?{urllib.parse.urlencode(wanted)}"
    host = parts.netloc.rpartition("@")[2]
    headers = {"Accept": "application/json", "User-Agent": "trimtab"}
    if parts.username is not None:
        pair = f"{urllib.parse.unquote(parts.username)}:{urllib.parse.unquote(parts.password or '')}"
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    if server.token is not None:
        headers["Authorization"] = f"Bearer {server.token}"
    request = urllib.request.Request(f"{parts.scheme}://{host}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=server.timeout) as answer:
        body: bytes = answer.read()
    found: Any = json.loads(body)
    if not isinstance(found, dict) or found.get("status") != "success":
        raise ValueError(f"expected an answer to query_range, found {body[:100]!r}")
    return body


def _said(error: urllib.error.HTTPError) -> str:
    """What the server says, else the usual words for its code."""
    try:
        return str(json.loads(error.read())["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return error.reason


def server_name(server: Server) -> str:
    """The address without user and password."""
    parts = urllib.parse.urlsplit(server.url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
