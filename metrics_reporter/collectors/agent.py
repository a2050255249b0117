"""What agents in the broker's process tell of Kafka's own metrics, gathered into one reading.

Used by the collectors of the JMX exporter and of Jolokia, which find out which metric a value belongs to. Names
are those of Kafka's MBeans (docs/reporter.md lists them).
"""

from __future__ import annotations

import re

from metrics_reporter.reading import (
    BYTES_IN,
    BYTES_OUT,
    CPU_SECONDS,
    FETCH_REQUESTS,
    LOCAL_TIMES,
    METADATA_TOPIC,
    PRODUCE_REQUESTS,
    REPLICATION_IN,
    REPLICATION_OUT,
    Counters,
    LogReading,
    Logs,
    Partition,
    Reading,
)

# Names of kafka.server:type=BrokerTopicMetrics. A request counts once for each partition that it asks of, on the
# level of the broker as on that of a topic, so that the topics add up to the broker.
BROKER_TOPIC_METRICS = {
    "BytesInPerSec": BYTES_IN,
    "BytesOutPerSec": BYTES_OUT,
    "ReplicationBytesInPerSec": REPLICATION_IN,
    "ReplicationBytesOutPerSec": REPLICATION_OUT,
    "TotalProduceRequestsPerSec": PRODUCE_REQUESTS,
    "TotalFetchRequestsPerSec": FETCH_REQUESTS,
}
# Gauges of each replica: kafka.log:type=Log, and kafka.cluster:type=Partition, which is 0 where it follows.
SIZE, LOG_START, LOG_END, REPLICAS_COUNT = "Size", "LogStartOffset", "LogEndOffset", "ReplicasCount"
LOG_GAUGES = (SIZE, LOG_START, LOG_END)
TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
MAX_PARTITION = 2**31
MAX_VALUE = 2.0**63  # Kafka counts in 64 bits


class AgentTable:
    """Takes values one by one; what no broker can have counted, or of no topic-partition, is passed over."""

    def __init__(self) -> None:
        self._broker: dict[str, float] = {}
        self._topics: dict[str, dict[str, float]] = {}
        self._gauges: dict[str, dict[Partition, float]] = {name: {} for name in (*LOG_GAUGES, REPLICAS_COUNT)}
        self._latencies: dict[str, float] = {}
        self.epoch: float | None = None

    def count(self, counter: str, topic: str | None, value: float) -> None:
        if not 0 <= value < MAX_VALUE:
            return
        if topic is None:
            self._broker[counter] = value
        elif TOPIC_NAME.fullmatch(topic):
            self._topics.setdefault(counter, {})[topic] = value

    def gauge(self, name: str, topic: str, partition: str, value: float) -> None:
        known = TOPIC_NAME.fullmatch(topic) and topic != METADATA_TOPIC and partition.isdecimal() and len(partition) < 11
        if known and int(partition) < MAX_PARTITION and 0 <= value < MAX_VALUE:
            self._gauges[name][topic, int(partition)] = value

    def local_time(self, request: str, value: float) -> None:
        """Milliseconds that the broker itself takes for a kind of request."""
        if request in LOCAL_TIMES and 0 <= value < MAX_VALUE:
            self._latencies[LOCAL_TIMES[request]] = value

    def cpu_seconds(self, value: float) -> None:
        self.count(CPU_SECONDS, None, value)

    def reading(self) -> Reading:
        """All that was taken; a part is None where nothing belongs to it."""
        sizes = self._gauges[SIZE]
        logs = {p: self._log(p, size) for p, size in sizes.items()}
        counters = Counters(self.epoch, self._broker, self._topics) if self._broker else None
        return Reading(Logs(logs) if logs else None, counters, latencies=dict(self._latencies))

    def _log(self, partition: Partition, size: float) -> LogReading:
        start, end = (self._gauges[name].get(partition) for name in (LOG_START, LOG_END))
        replicas = self._gauges[REPLICAS_COUNT].get(partition)
        return LogReading(
            size=int(size),
            start=None if start is None else int(start),
            end=None if end is None else int(end),
            leads=None if replicas is None else replicas > 0,
        )
