"""Tells people by webhook what `trimtab.service.news` finds worth telling.

What happens to plans is queued by the threads that it happens in, which never wait. Everything is sent in the turn of the worker
``notify``, tried again a bounded number of times, and given up.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from cluster_model.errors import ExternalError
from metrics_reporter.reporter import Clock
from trimtab.http.headline import headline
from trimtab.service.news import News, Weather, of_plan
from trimtab.service.views import StateView
from trimtab.service.webhook import NotifyPart, NotTaken, post

if TYPE_CHECKING:
    from trimtab.history.records import OutcomeKind
    from trimtab.service.desk import Held

log = logging.getLogger(__name__)

TURN = 1.0  # seconds
LOOK_MS = 5_000  # so often it is looked at how the cluster is
MOST_QUEUED = 100
MOST_ATTEMPTS = 8  # with the pauses of a worker, 1 s to 30 s, about two minutes
LONGEST_TEXT = 3_000  # characters


class Notifier:
    """See the module.

    Parameters
    ----------
    state
        How the service stands.
    waits
        Whether a plan that was proposed can be approved.
    """

    def __init__(self, part: NotifyPart, state: Callable[[], StateView], clock: Clock, *, waits: bool) -> None:
        self._part, self._state, self._clock, self._waits = part, state, clock, waits
        self._weather = Weather(round(1000 * part.after))
        self._queue: deque[News] = deque()
        self._lock = Lock()
        self._attempts = 0  # at the first of the queue
        self._looked_ms: int | None = None
        self._given_up: str | None = None  # what came of the newest message

    def plan(self, held: Held, kind: OutcomeKind | None) -> None:
        """Something became of a plan. Any thread; never waits."""
        self._put(of_plan(held, kind, waits=self._waits))

    def _put(self, news: News | None) -> None:
        if news is None or news.event not in self._part.events:
            return
        with self._lock:
            if len(self._queue) < MOST_QUEUED:
                self._queue.append(news)
                return
        log.warning("a message is dropped, since %d wait for the webhook: %s", MOST_QUEUED, news.text)

    def turn(self) -> float:
        """Look how the cluster is, and send what waits.

        Raises
        ------
        ExternalError
            A message was not taken; told until one is.
        """
        now = self._clock.wall_ms()
        if self._looked_ms is None or now - self._looked_ms >= LOOK_MS:
            self._looked_ms = now
            self._put(self._look(now))
        while self._queue:
            self._send(self._queue[0])
            self._done()
            self._given_up = None
        if self._given_up is not None:
            raise ExternalError(self._given_up, retriable=True)
        return TURN

    def _look(self, now: int) -> News | None:
        state = self._state()
        if state.leadership.leads and state.cluster.known:  # of several instances one tells
            return self._weather.look(headline(state), now)
        self._weather.forget()
        return None

    def _done(self) -> None:
        """With the first of the queue."""
        with self._lock:
            self._queue.popleft()
        self._attempts = 0

    def _send(self, news: News) -> None:
        try:
            address = self._part.address()
        except ValueError as error:
            self._not_sent(f"no message can be sent: {error}", final=False)
        parts = urlsplit(address)
        try:
            post(address, message(news, self._state().cluster_id, self._part.page), self._part.timeout)
        except NotTaken as error:
            self._not_sent(f"the webhook at {parts.scheme}://{parts.hostname} did not take a message: {error}", final=error.final)

    def _not_sent(self, why: str, *, final: bool) -> NoReturn:
        self._attempts += 1
        if final or self._attempts >= MOST_ATTEMPTS:
            self._given_up = f"{why}; it was given up"
            self._done()
            raise ExternalError(self._given_up, retriable=True) from None
        raise ExternalError(why, retriable=True) from None


def message(news: News, cluster_id: str | None, page: str | None) -> str:
    """The text that is sent: short enough, and nothing in it that the receiver takes for its own signs."""
    text = f"Trimtab, cluster {cluster_id or 'unknown'}: {news.text}"
    if len(text) > LONGEST_TEXT:
        text = text[: LONGEST_TEXT - 1] + "…"
    for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(sign, name)
    return text if page is None else f"{text} {page}"
