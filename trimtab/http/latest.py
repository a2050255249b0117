"""The newest state of the service: asked for once, however many want it, and kept for a moment.

A service that hangs costs one thread here, not one for each question.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from trimtab.http.calls import Calls, late
from trimtab.service.views import ServiceFace, StateView

KEEP = 1.0  # seconds


class Latest:
    """Belongs to one event loop."""

    def __init__(self, face: ServiceFace, clock: Callable[[], float] = time.monotonic) -> None:
        self._face = face
        self._clock = clock
        self._calls = Calls(1)
        self._generation = 0
        self._flight: tuple[int, asyncio.Future[StateView]] | None = None
        self._kept: tuple[int, float, StateView] | None = None

    def changed(self) -> None:
        """What is known from before is not worth an answer any more."""
        self._generation += 1

    async def state(self, patience: float) -> StateView:
        """A state that is younger than the last change and than a second.

        Raises
        ------
        Problem
            503: the service took longer than `patience` seconds. Else what the service raised.
        """
        asked = self._generation
        until = self._clock() + patience
        while True:
            if self._kept is not None:
                generation, at, view = self._kept
                if generation >= asked and self._clock() - at < KEEP:
                    return view
            generation, future = self._flight or self._begin()
            try:
                view = await asyncio.wait_for(asyncio.shield(future), max(0.0, until - self._clock()))
            except TimeoutError:
                raise late("its state", patience) from None
            if generation >= asked:
                return view
            if self._flight is not None and self._flight[1] is future:
                self._flight = None  # from before the change, and over: ask again

    def _begin(self) -> tuple[int, asyncio.Future[StateView]]:
        generation = self._generation
        future = self._calls.begin(self._face.state, "its state")
        self._flight = (generation, future)

        def landed(done: asyncio.Future[StateView]) -> None:
            if self._flight is not None and self._flight[1] is done:
                self._flight = None
            if not done.cancelled() and done.exception() is None:
                self._kept = (generation, self._clock(), done.result())

        future.add_done_callback(landed)
        return self._flight
