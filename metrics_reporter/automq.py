"""Records of AutoMQ's own metrics reporter (topic `__auto_balancer_metrics`), so that its clusters need no other.

One record holds one partition's rates, or the broker's own figures. What a partition's record says is its leader's
load, since AutoMQ keeps one replica. Of the broker's record the ages of the oldest append and fetch that are not done are taken, by which
a slow broker is known; its append latency is always 0 (a fault there).
"""

from __future__ import annotations

from metrics_reporter.codec import DecodeError
from metrics_reporter.columns import BatchColumns
from metrics_reporter.formats import Assembler, BigEndian
from metrics_reporter.sample import Sample, Scope

TOPIC = "__auto_balancer_metrics"
INTERVAL_MS = 10_000  # the reporter's default
PARTITION_RECORD, BROKER_RECORD = 0, 1
FORMAT_VERSION = 0
PAIR_BYTES = 9
# Its partition metrics. Bytes out are those to consumers.
METRICS = {0: "network_in", 1: "consumer_out", 2: "disk"}
BROKER_METRICS = {4: "append_pending_ms", 5: "fetch_pending_ms"}


class AutoMQFormat:
    """A `RecordFormat`; a batch holds what one poll brought of one broker and one time.

    Parameters
    ----------
    interval_ms
        How often its reporters report; the records do not say it.
    incarnation
        When reading started, Unix ms.
    """

    def __init__(self, interval_ms: int = INTERVAL_MS, *, incarnation: int = 0) -> None:
        self._interval_ms = interval_ms
        self._assembler = Assembler(incarnation)
        self._open: dict[tuple[int, int], list[Sample]] = {}

    def add(self, record: bytes) -> None:
        """Take one record; see `RecordFormat.add`."""
        reader = BigEndian(record)
        kind, version = reader.integer(1), reader.integer(1)
        if kind not in (PARTITION_RECORD, BROKER_RECORD):
            raise DecodeError(f"record type {kind}, expected {PARTITION_RECORD} or {BROKER_RECORD}")
        if version != FORMAT_VERSION:
            raise DecodeError(f"format version {version}, this release reads version {FORMAT_VERSION}")
        time_ms, broker = reader.time_and_broker()
        reader.text()  # rack: the metadata has it
        samples: list[Sample] = []
        if kind == PARTITION_RECORD:
            topic, partition = reader.topic(), reader.partition()
            for metric, value in _pairs(reader).items():
                if metric in METRICS:
                    samples.append(Sample(Scope.LEADER, topic, partition, METRICS[metric], value))
        else:
            for metric, value in _pairs(reader).items():
                if metric in BROKER_METRICS:
                    samples.append(Sample(Scope.BROKER, None, None, BROKER_METRICS[metric], value))
        reader.end()
        self._open.setdefault((time_ms, broker), []).extend(samples)

    def take(self) -> list[BatchColumns]:
        """A batch for each broker and time, oldest first."""
        taken, self._open = self._open, {}
        return [
            self._assembler.batch(broker, time_ms, self._interval_ms, taken[time_ms, broker])
            for time_ms, broker in sorted(taken)
        ]


def _pairs(reader: BigEndian) -> dict[int, float]:
    count = reader.integer(4)
    if count < 0 or count * PAIR_BYTES > reader.left:
        raise DecodeError(f"{count} metrics announced where {reader.left} bytes are left")
    return {reader.integer(1): reader.number() for _ in range(count)}
