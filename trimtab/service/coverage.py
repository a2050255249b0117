"""How much of a horizon samples cover. Any thread may add and ask."""

from __future__ import annotations

from threading import Lock

PARTS = 60  # a horizon is told in so many


class Coverage:
    """Which parts of the last `span_ms` samples are of, of any reporter."""

    def __init__(self, span_ms: int) -> None:
        self.span_ms = span_ms
        self._part_ms = max(span_ms // PARTS, 1)
        self._parts: set[int] = set()
        self._lock = Lock()

    def add(self, time_ms: int, window_ms: int) -> None:
        """An interval of `window_ms` that ends at `time_ms` (Unix ms) was measured."""
        first = max(time_ms - min(window_ms, self.span_ms), 0) // self._part_ms
        with self._lock:
            self._parts.update(range(first, time_ms // self._part_ms + 1))
            if len(self._parts) > 4 * PARTS:
                newest = max(self._parts)
                self._parts = {p for p in self._parts if p > newest - 2 * PARTS}

    def share(self, now_ms: int) -> float:
        """0..1 of the span that ends with the newest sample, or half a span ago where that is older: what is measured and under
        way is no gap, silence is."""
        now = now_ms // self._part_ms
        with self._lock:
            newest = min(max(max(self._parts, default=now), now - PARTS // 2), now)
            return min(sum(newest - PARTS < p <= newest for p in self._parts) / PARTS, 1.0)


class Both(Coverage):
    """Tells two coverages of every interval."""

    def __init__(self, *parts: Coverage) -> None:
        super().__init__(max(p.span_ms for p in parts))
        self._each = parts

    def add(self, time_ms: int, window_ms: int) -> None:
        for part in self._each:
            part.add(time_ms, window_ms)
