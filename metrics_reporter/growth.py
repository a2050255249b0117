"""What grew between two readings: counters that started again and logs that were cut are told apart from growth.

Pure; used by `metrics_reporter.loads`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from metrics_reporter.reading import Counters, LogReading

GAPS = 2.0  # a log whose records are so many times smaller than produced ones has gaps, as compacted topics have
FADES = 0.9  # what is left of an old size of a record after an interval


@dataclass(frozen=True, slots=True)
class CounterRates:
    """Growth a second. `topics` is counter -> topic -> rate; a counter kept for no topic is not in it."""

    broker: Mapping[str, float]
    topics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def of_topic(self, counter: str, topic: str) -> float | None:
        """Rate of one topic; 0 for a topic that was never counted, None where topics are not counted at all."""
        counted = self.topics.get(counter)
        if counted is None:
            return 0.0 if self.broker.get(counter) == 0.0 else None
        return counted.get(topic, 0.0)


def counter_rates(before: Counters, after: Counters, seconds: float) -> CounterRates | None:
    """Rates between two readings so many seconds apart; None where the counters started again, as after a restart of the broker.

    A topic's counter that was not there before was made in between, so all that it says happened in between. One
    that went backwards belongs to a topic that was made again; it is left out this time.
    """
    restarted = None not in (before.epoch, after.epoch) and before.epoch != after.epoch
    if seconds <= 0 or restarted or any(after.broker.get(k, v) < v for k, v in before.broker.items()):
        return None
    broker = {k: (v - before.broker[k]) / seconds for k, v in after.broker.items() if k in before.broker}
    topics: dict[str, dict[str, float]] = {}
    for counter, now in after.topics.items():
        old = before.topics.get(counter, {})
        grown = {topic: (value - old.get(topic, 0.0)) / seconds for topic, value in now.items()}
        topics[counter] = {topic: rate for topic, rate in grown.items() if rate >= 0}
    return CounterRates(broker, topics)


def grown_record(before: LogReading, after: LogReading, known: float | None) -> float | None:
    """Bytes of a record as a log grows, after another interval. A log that was cleaned and yet grew shows too little: so the largest of
    late counts, and fades."""
    if before.end is None or after.end is None or before.end >= after.end:
        return known
    if before.start != after.start or after.size <= before.size:
        return known
    return max((after.size - before.size) / (after.end - before.end), FADES * (known or 0.0))


def appended(before: LogReading, after: LogReading, a_record: float | None = None) -> tuple[float | None, bool]:
    """Bytes appended to a log between two readings, and whether they are exact.

    The growth of the log's size is exact while nothing was cut off it. Where retention or cleaning cut it, records
    (by offsets) times their average size say how much came; None where not even that is known, or where the log
    went back, because it was truncated or belongs to a topic that was made again. What is left of a cleaned log says little of
    what was produced: there `a_record` counts, bytes of a record as it grew before.
    """
    records = None if before.end is None or after.end is None else after.end - before.end
    if records is not None and records < 0:
        return None, False
    if after.size >= before.size and after.start == before.start:
        return float(after.size - before.size), True
    average = _bytes_per_record(before) or _bytes_per_record(after)
    if a_record is not None and (average is None or after.start == before.start or a_record > GAPS * average):
        average = a_record
    if records == 0:
        return 0.0, False
    return (None, False) if records is None or average is None else (records * average, False)


def _bytes_per_record(log: LogReading) -> float | None:
    if log.start is None or log.end is None or log.end <= log.start or log.size <= 0:
        return None
    return log.size / (log.end - log.start)
