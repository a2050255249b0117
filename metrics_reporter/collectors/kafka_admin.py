"""Logs of the broker's replicas through Kafka's admin interface: sizes by DescribeLogDirs, offsets by ListOffsets.

Asks the one broker it stands beside and no other. Whether the broker leads a partition is what it answers to
ListOffsets, which is newer than any metadata; who is in sync comes from Metadata. Goes below the client's public
methods, because those give up at the first partition that has an error. Only reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.admin import DescribeLogDirsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetSpec
from kafka.protocol.metadata import MetadataRequest

from metrics_reporter.kafka_client import FAILURES, AdminClient, admin_client
from metrics_reporter.permissions import missing
from metrics_reporter.reading import METADATA_TOPIC, CollectError, LogReading, Logs, Partition, Reading

# Of ListOffsets: from here on it knows where the local log starts when older segments are in remote storage.
LOCAL_START_VERSION = 8
NOT_LED = frozenset({kafka_errors.NotLeaderForPartitionError.errno, kafka_errors.ReplicaNotAvailableError.errno})
ATTEMPTS, PAUSE_SECONDS = 4, 0.1


class KafkaAdminCollector:
    """Reads the logs of one broker; connects when it is first asked, and again after a failure.

    Parameters
    ----------
    bootstrap
        ``HOST:PORT``, several with commas; the broker itself will do.
    options
        Keyword arguments of the Python client: protocol, TLS and SASL.
    timeout
        Seconds that one request may take.
    """

    name = "kafka"

    def __init__(
        self,
        broker: int,
        bootstrap: str,
        options: Mapping[str, object],
        *,
        timeout: float = 5.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._broker, self._bootstrap, self._options = broker, bootstrap, dict(options)
        self._timeout_ms, self._sleep = int(timeout * 1000), sleep
        self._admin: AdminClient | None = None

    def collect(self) -> Reading:
        """Logs of the broker, as `metrics_reporter.reading.Collector` has it."""
        try:
            if self._admin is None:
                # A broker that comes back is found again, and its answers are waited for no longer than asked.
                self._admin = admin_client(
                    self._bootstrap, self._options, request_timeout_ms=self._timeout_ms, reconnect_backoff_max_ms=2000
                )
            return Reading(logs=self._logs())
        except FAILURES as error:
            self.close()
            raise CollectError(self._explained(error)) from error

    def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def _logs(self) -> Logs:
        sizes = self._sizes()
        numbers: dict[str, list[int]] = {}
        for topic, number in sizes:
            numbers.setdefault(topic, []).append(number)
        if not numbers:
            return Logs({})
        ends, led = self._offsets(numbers, OffsetSpec.LATEST)
        starts, _ = self._offsets(numbers, self._earliest())
        in_sync = self._in_sync(list(numbers))
        return Logs({
            p: LogReading(size, starts.get(p), ends.get(p), led.get(p), True if led.get(p) else in_sync.get(p))
            for p, size in sizes.items()
        })

    def _sizes(self) -> dict[Partition, int]:
        response = self._send(lambda: DescribeLogDirsRequest(topics=None))
        code = getattr(response, "error_code", 0)
        if code:
            raise kafka_errors.for_code(code)()
        return {
            (topic.name, p.partition_index): p.partition_size
            for log_dir in response.results
            for topic in log_dir.topics
            for p in topic.partitions
            if not p.is_future_key and topic.name != METADATA_TOPIC
        }

    def _earliest(self) -> Any:
        assert self._admin is not None
        version = self._admin.get_broker_version_data(self._broker).api_version(ListOffsetsRequest)
        return OffsetSpec.EARLIEST_LOCAL if version >= LOCAL_START_VERSION else OffsetSpec.EARLIEST

    def _offsets(self, numbers: Mapping[str, list[int]], spec: Any) -> tuple[dict[Partition, int], dict[Partition, bool]]:
        """Offsets of the partitions that the broker leads, and whether it leads each; unknown ones are left out."""
        kind = ListOffsetsRequest.ListOffsetsTopic
        response = self._send(
            lambda: ListOffsetsRequest(
                isolation_level=0,
                topics=[
                    kind(
                        name=topic,
                        partitions=[kind.ListOffsetsPartition(partition_index=n, timestamp=spec) for n in each],
                    )
                    for topic, each in numbers.items()
                ],
            )
        )
        offsets: dict[Partition, int] = {}
        led: dict[Partition, bool] = {}
        for topic in response.topics:
            for p in topic.partitions:
                if p.error_code == kafka_errors.TopicAuthorizationFailedError.errno:
                    raise kafka_errors.TopicAuthorizationFailedError(topic.name)
                if not p.error_code:
                    offsets[topic.name, p.partition_index] = p.offset
                    led[topic.name, p.partition_index] = True
                elif p.error_code in NOT_LED:
                    led[topic.name, p.partition_index] = False
        return offsets, led

    def _in_sync(self, topics: list[str]) -> dict[Partition, bool]:
        """Whether the broker's replica of each partition is in sync, as far as the broker knows."""
        response = self._send(
            lambda: MetadataRequest(
                topics=[MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics],
                allow_auto_topic_creation=False,
            )
        )
        return {
            (topic.name, p.partition_index): self._broker in p.isr_nodes
            for topic in response.topics
            if not topic.error_code
            for p in topic.partitions
        }

    def _send(self, request: Callable[[], Any]) -> Any:
        """The response of our broker, tried again while its connection comes up."""
        assert self._admin is not None
        manager = self._admin._manager
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return manager.run(manager.send, request(), self._broker)
            except (kafka_errors.RequestTimedOutError, kafka_errors.KafkaTimeoutError):
                raise
            except kafka_errors.RetriableError:
                if attempt == ATTEMPTS:
                    raise
                self._sleep(PAUSE_SECONDS * attempt)
        raise AssertionError("unreachable")

    def _explained(self, error: Exception) -> str:
        text = str(error).strip()
        name = type(error).__name__
        said = text if text.startswith((name, "[Error")) else f"{name}: {text}" if text else name
        if isinstance(error, kafka_errors.UnknownBrokerIdError):
            return f"the cluster at {self._bootstrap} knows no broker {self._broker}; is it up, and are broker and bootstrap_servers right?"
        if isinstance(error, kafka_errors.AuthorizationError):
            return f"broker {self._broker} refuses: {said}; {missing(error, 'Describe')}"
        return f"broker {self._broker} at {self._bootstrap} does not describe its logs: {said}"
