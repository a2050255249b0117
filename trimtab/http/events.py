"""Server-sent events: that something changed, to all who listen, at most twice a second.

The service tells from any of its threads; one question to it serves all listeners.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from pydantic import BaseModel, ConfigDict, Field

from trimtab.http.latest import Latest
from trimtab.http.problem import Problem
from trimtab.service.views import StateView

MOST_LISTENERS = 64
GAP = 0.5  # seconds between two events
BEAT = 15.0  # seconds after which a line is written that means nothing, so that a dead connection is noticed


class ChangeView(BaseModel):
    """What an event says; ask for the state to know the rest."""

    model_config = ConfigDict(frozen=True)

    at_ms: int
    healthy: bool
    ready: bool
    paused: bool
    leads: bool
    plan_id: str | None
    plan_state: str | None
    trouble: str | None = Field(default=None, description="why the service did not report its state")


class Events:
    """Belongs to one event loop."""

    def __init__(self, latest: Latest, patience: float) -> None:
        self._latest = latest
        self._patience = patience
        self._number = 0
        self._message = ""
        self._listeners: set[asyncio.Event] = set()
        self._tick: asyncio.Task[None] | None = None
        self._again = False
        self.closed = False

    def told(self) -> None:
        """Something changed. On the event loop."""
        self._latest.changed()
        if self._tick is None:
            if self._listeners and not self.closed:
                self._tick = asyncio.get_running_loop().create_task(self._spread())
        else:
            self._again = True

    def close(self) -> None:
        """End every stream. On the event loop."""
        self.closed = True
        if self._tick is not None:
            self._tick.cancel()
        self._wake()

    def _wake(self) -> None:
        for news in self._listeners:
            news.set()

    def listen(self) -> AsyncIterator[str]:
        """The text of a stream, until the server ends; starts with an event.

        Raises
        ------
        Problem
            503: too many listen already.
        """
        if len(self._listeners) >= MOST_LISTENERS:
            raise Problem(
                503,
                f"{MOST_LISTENERS} listen to events already.",
                "Ask for /api/v1/state from time to time instead.",
            )
        return self._stream()

    async def _stream(self) -> AsyncIterator[str]:
        news = asyncio.Event()
        self._listeners.add(news)
        try:
            yield "retry: 2000\n\n"
            seen = self._number
            yield await self._event()
            while not self.closed:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), BEAT)
                news.clear()
                if self._number != seen:
                    seen = self._number
                    yield self._message
                elif not self.closed:
                    yield ": still here\n\n"
        finally:
            self._listeners.discard(news)

    async def _spread(self) -> None:
        """Events until nothing more happened meanwhile."""
        try:
            while True:
                self._again = False
                self._message = await self._event()
                self._number += 1
                self._wake()
                await asyncio.sleep(GAP)
                if not self._again or not self._listeners:
                    return
        finally:
            self._tick = None

    async def _event(self) -> str:
        try:
            view = change(await self._latest.state(self._patience))
        except Problem as problem:
            view = _trouble(problem.view.detail)
        except Exception:  # whatever the service raised is in the log by the answer to /api/v1/state
            view = _trouble("The service failed to report its state; its log says why.")
        return f"event: change\ndata: {view.model_dump_json()}\n\n"


def change(state: StateView) -> ChangeView:
    """The few words about a state that an event holds."""
    return ChangeView(
        at_ms=state.now_ms,
        healthy=state.healthy,
        ready=state.ready,
        paused=state.paused,
        leads=state.leadership.leads,
        plan_id=state.plan.plan_id if state.plan else None,
        plan_state=state.plan.state if state.plan else None,
    )


def _trouble(words: str) -> ChangeView:
    return ChangeView(
        at_ms=0,
        healthy=False,
        ready=False,
        paused=False,
        leads=False,
        plan_id=None,
        plan_state=None,
        trouble=words,
    )
