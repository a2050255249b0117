"""When the next decision is due, and why: an interval, and events that are waited out so that a burst of them is one cause.

Any thread may add causes; the planner takes them. Time comes in by parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

INTERVAL = "interval"
PATIENCE = 6  # debounces: events that never end do not put a decision off for longer


class Agenda:
    """Causes that wait, and the time of the next regular decision (Unix ms). `interval_ms` is asked at each decision."""

    def __init__(self, interval_ms: Callable[[], int], debounce_ms: int, begin_ms: int) -> None:
        self._interval_ms, self._debounce_ms = interval_ms, debounce_ms
        self._next_ms = begin_ms
        self._causes: dict[str, None] = {}
        self._first_ms = self._last_ms = 0
        self._at_once = False
        self._lock = Lock()

    def add(self, cause: str, now_ms: int, *, at_once: bool = False) -> None:
        """Decide soon because of `cause`: when nothing else happened for a while, or at once."""
        with self._lock:
            if not self._causes:
                self._first_ms = now_ms
            self._causes[cause] = None
            self._last_ms = now_ms
            self._at_once |= at_once

    def due_ms(self) -> int:
        """When the next decision is due, as things stand."""
        with self._lock:
            return self._due_ms()

    def _due_ms(self) -> int:
        if not self._causes:
            return self._next_ms
        if self._at_once:
            return self._last_ms
        return min(self._last_ms + self._debounce_ms, self._first_ms + PATIENCE * self._debounce_ms)

    @property
    def is_regular(self) -> bool:
        """Whether nothing but the interval makes the next decision due."""
        return not self._causes

    def take(self, now_ms: int) -> str | None:
        """Why to decide now; None where nothing is due. What is taken is off the agenda."""
        with self._lock:
            if now_ms < self._due_ms():
                return None
            cause = ", ".join(self._causes) or INTERVAL
            self._causes, self._at_once = {}, False
            self._next_ms = now_ms + self._interval_ms()
            return cause

    def put_off(self, until_ms: int) -> None:
        """No regular decision before `until_ms`."""
        with self._lock:
            self._next_ms = max(self._next_ms, until_ms)

    def clear(self) -> None:
        """Forget what waits: another instance decides."""
        with self._lock:
            self._causes, self._at_once = {}, False
