"""Calls of the service that never hold the event loop up: each in a thread, waited for only so long.

A thread that hangs cannot be ended, so their number is bounded; they are daemons and hold no exit up.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from trimtab.http.problem import Problem

T = TypeVar("T")


class Calls:
    """At most `most` calls at a time. Belongs to one event loop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running = 0

    async def run(self, call: Callable[[], T], patience: float, what: str, if_late: str = "") -> T:
        """What `call` returns or raises.

        Raises
        ------
        Problem
            503: it took longer than `patience` seconds, or too many others are under way.
        """
        try:
            return await asyncio.wait_for(asyncio.shield(self.begin(call, what)), patience)
        except TimeoutError:
            raise late(what, patience, if_late) from None

    def begin(self, call: Callable[[], T], what: str) -> asyncio.Future[T]:
        """`call` under way. No request has to wait for the future."""
        if self._running >= self._most:
            raise Problem(
                503,
                f"{self._most} calls of the service are under way already, so {what} was not started.",
                "Try again; if it stays so the service hangs: see its log, and restart it.",
                {"Retry-After": "5"},
            )
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._running += 1

        def ended(result: T | None, error: BaseException | None) -> None:
            self._running -= 1
            if future.cancelled():
                return
            if error is None:
                future.set_result(result)  # type: ignore[arg-type]
            else:
                future.set_exception(error)
                future.exception()  # known here, whichever request waits

        def work() -> None:
            result, error = None, None
            try:
                result = call()
            except BaseException as raised:
                error = raised
            try:
                loop.call_soon_threadsafe(ended, result, error)
            except RuntimeError:
                return  # the loop is closed: no client waits

        threading.Thread(target=work, name=f"http {what}", daemon=True).start()
        return future


def late(what: str, patience: float, if_late: str = "") -> Problem:
    """503 for a call that took too long."""
    return Problem(
        503,
        f"The service did not answer within {patience:g} s when asked for {what}.",
        if_late or "Try again; if it stays so it hangs: see its log, and restart it.",
        {"Retry-After": "5"},
    )
