"""Callbacks for changes of the service's state: HTTP connections that follow it, and programs that embed it.

Any thread may add one, and any part may tell them. A watcher that fails harms no part.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock

log = logging.getLogger(__name__)


class Watchers:
    """Callables that are called after each change."""

    def __init__(self) -> None:
        self._lock, self._newest = Lock(), 0
        self._watchers: dict[int, Callable[[], None]] = {}

    def add(self, told: Callable[[], None]) -> Callable[[], None]:
        """Call `told` after each change from now on; returns what ends it."""
        with self._lock:
            self._newest += 1
            number = self._newest
            self._watchers[number] = told

        def end() -> None:
            with self._lock:
                self._watchers.pop(number, None)

        return end

    def tell(self) -> None:
        """The state changed."""
        with self._lock:
            told = list(self._watchers.values())
        for tell in told:
            try:
                tell()
            except Exception:
                log.debug("a watcher failed", exc_info=True)
