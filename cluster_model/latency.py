"""How long brokers take for requests: the newest value of each, and what has been usual there.

Owned by `cluster_model.brokers`; frozen into `BrokerLatency` for the rules that judge brokers. Time comes in by parameter. Latencies are no
loads: nothing is planned with their numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

# Metric -> what people call it. Milliseconds all: 99th percentiles, and ages of the oldest request that is not done.
LATENCIES: dict[str, str] = {
    "produce_latency_ms": "99th percentile of the broker's own part of produce requests",
    "fetch_latency_ms": "99th percentile of the broker's own part of consumers' fetches",
    "append_pending_ms": "age of the oldest append that is not done",
    "fetch_pending_ms": "age of the oldest fetch that is not done",
}
AGES = frozenset({"append_pending_ms", "fetch_pending_ms"})
SPAN_MS = 600_000  # of one value of the history
KEPT = 144  # values: a day
LEAST_HISTORY = 6  # values: an hour, before which nothing is usual
USUAL = 0.9  # quantile


@dataclass(frozen=True, slots=True)
class BrokerLatency:
    """One metric of one broker.

    Attributes
    ----------
    value
        The newest, in ms.
    usual
        90th percentile of the means of ten minutes each, of up to a day before; None before there is an hour of them.
    age_ms
        Of the newest value.
    """

    broker: int
    metric: str
    value: float
    usual: float | None
    age_ms: int


class _Series:
    """One metric of one broker: the newest value, and means of ten minutes."""

    __slots__ = ("_count", "_done", "_slot", "_sum", "newest_ms", "value")

    def __init__(self) -> None:
        self.newest_ms, self.value = -1, 0.0
        self._slot, self._sum, self._count = -1, 0.0, 0
        self._done: deque[float] = deque(maxlen=KEPT)

    def add(self, time_ms: int, value: float) -> bool:
        """Take a value; False for one that is older than the newest."""
        if time_ms < self.newest_ms:
            return False
        slot = time_ms // SPAN_MS
        if slot != self._slot:
            if self._count:
                self._done.append(self._sum / self._count)
            self._slot, self._sum, self._count = slot, 0.0, 0
        self._sum, self._count = self._sum + value, self._count + 1
        self.newest_ms, self.value = time_ms, value
        return True

    @property
    def usual(self) -> float | None:
        return float(np.quantile(self._done, USUAL)) if len(self._done) >= LEAST_HISTORY else None


class BrokerLatencies:
    """Brokers by wire id. At most about 1.2 kB for each metric of each broker."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, str], _Series] = {}

    def add(self, broker: int, metric: str, time_ms: int, value: float) -> bool:
        """Take a value in ms; False for one that came too late."""
        return self._of.setdefault((broker, metric), _Series()).add(time_ms, value)

    def remove(self, broker: int) -> None:
        for metric in LATENCIES:
            self._of.pop((broker, metric), None)

    def of(self, brokers: Collection[int], now_ms: int) -> tuple[BrokerLatency, ...]:
        """Of the given brokers, by broker and metric."""
        known = set(brokers)
        return tuple(
            BrokerLatency(broker, metric, series.value, series.usual, max(now_ms - series.newest_ms, 0))
            for (broker, metric), series in sorted(self._of.items())
            if broker in known
        )
