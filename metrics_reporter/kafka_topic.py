"""The internal topic on a real cluster: made where it is absent, written to by reporters, read by the service.

Both ends stand behind the seam of `metrics_reporter.topic`. Settings of the connection come in by parameter, as
keyword arguments of the Python client.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import kafka.errors as kafka_errors
from kafka import TopicPartition

from metrics_reporter import kafka_client
from metrics_reporter.permissions import is_refusal, missing
from metrics_reporter.topic import DEFAULT_NAME, RecordRefused, TopicError, TopicRecord

log = logging.getLogger(__name__)

DEFAULT_RETENTION_MS = 3_600_000
DEFAULT_REPLICATION = 3  # fewer where the cluster has fewer brokers
SEGMENT_BYTES = 64 * 2**20
MAX_RECORD_BYTES = 1_048_576
DELIVERY_MS, REQUEST_MS = 8_000, 5_000
READY_MS = 10_000
REFRESH_SECONDS = 15.0  # after so long a reader looks whether the topic has grown
METADATA_MS = 5_000  # so old is what it then sees, at most
# No second attempt changes these.
REFUSALS = (
    kafka_errors.MessageSizeTooLargeError,
    kafka_errors.RecordListTooLargeError,
    kafka_errors.InvalidTimestampError,
    kafka_errors.InvalidRecordError,
)


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The topic, and what to do about it.

    Attributes
    ----------
    create
        Make it where it is absent, with `partitions` and `replication_factor` (None: 3, or as many as there are
        brokers), kept for `retention_ms` by the brokers' clock.
    grow
        Give it `partitions` where it has fewer.
    compression
        ``gzip``, or what the Python client has a library for; None for none.
    """

    name: str = DEFAULT_NAME
    create: bool = True
    partitions: int = 1
    grow: bool = False
    replication_factor: int | None = None
    retention_ms: int = DEFAULT_RETENTION_MS
    compression: str | None = "gzip"

    @property
    def configs(self) -> dict[str, str]:
        """Settings of the topic. Time is that of appending: a broker's clock decides on retention, no reporter's
        can make a record refused or last for ever."""
        return {
            "cleanup.policy": "delete",
            "retention.ms": str(self.retention_ms),
            "segment.ms": str(max(60_000, self.retention_ms // 4)),
            "segment.bytes": str(SEGMENT_BYTES),
            "max.message.bytes": str(MAX_RECORD_BYTES),
            "message.timestamp.type": "LogAppendTime",
        }


def ensure_topic(bootstrap: str, options: Mapping[str, object], settings: TopicSettings) -> int:
    """How many partitions the topic has, made or grown as the settings say.

    Raises
    ------
    TopicError
        It is absent and may not be made, or the cluster does not answer or refuses.
    """
    try:
        admin = kafka_client.admin_client(bootstrap, options, request_timeout_ms=REQUEST_MS)
    except kafka_client.FAILURES as error:
        raise TopicError(f"{bootstrap}: no cluster answers: {_said(error)}") from error
    try:
        return _ensured(admin, settings)
    except kafka_client.FAILURES as error:
        raise TopicError(f"topic {settings.name} cannot be made ready: {_said(error)}") from error
    finally:
        admin.close()


def _ensured(admin: Any, settings: TopicSettings) -> int:
    name = settings.name
    found = _partitions(admin, name)
    if not found:
        if not settings.create:
            raise TopicError(f"there is no topic {name}, and create is false; make it, or let the reporter do so")
        brokers = len(admin._manager.cluster.brokers())
        factor = settings.replication_factor or min(DEFAULT_REPLICATION, max(brokers, 1))
        asked = {"num_partitions": settings.partitions, "replication_factor": factor, "configs": settings.configs}
        try:
            with _permitted("Create", name):
                admin.create_topics({name: asked})
            log.info("made the topic %s: %d partitions, %d replicas each", name, settings.partitions, factor)
        except kafka_errors.TopicAlreadyExistsError:
            pass  # another reporter was first
        found = _known_partitions(admin, name, 1)
    if settings.grow and found < settings.partitions:
        try:
            with _permitted("Alter", name):
                admin.create_partitions({name: settings.partitions})
            log.info("gave the topic %s %d partitions, it had %d", name, settings.partitions, found)
        except kafka_errors.InvalidPartitionsError:
            pass  # another reporter was first
        found = _known_partitions(admin, name, settings.partitions)
    return found


def _known_partitions(admin: Any, name: str, least: int) -> int:
    """How many partitions the topic has, once the broker that is asked knows `least` of them, or after `READY_MS`.

    Each request may go to another broker, and a broker learns of a change some time after the controller made it:
    that one broker knows the topic says nothing of the next.
    """
    end = time.monotonic() + READY_MS / 1000
    while (found := _partitions(admin, name)) < least and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _partitions(admin: Any, name: str) -> int:
    """0 where there is no such topic."""
    with _permitted("Describe", name):
        for topic in admin.describe_topics([name]):
            code = topic.get("error_code", 0)
            if code and code != kafka_errors.UnknownTopicOrPartitionError.errno:
                raise kafka_errors.for_code(code)()
            return len(topic.get("partitions") or ())
    return 0


@contextmanager
def _permitted(operation: str, topic: str) -> Iterator[None]:
    """Say which permission is missing where the cluster refuses. Raises `TopicError`."""
    try:
        yield
    except kafka_errors.KafkaError as error:
        if not is_refusal(error):
            raise
        raise TopicError(f"topic {topic}: {_said(error)}; {missing(error, operation, topic)}") from error


class KafkaTopicWriter:
    """A `RecordSink`; connects at the first record, and again after a failure.

    One record at a time is under way and is waited for, so records stand in the topic in the order they were given,
    whatever fails. A record whose fate is unknown may be sent again: its batch has a number that readers know it by.
    """

    def __init__(self, bootstrap: str, options: Mapping[str, object], settings: TopicSettings) -> None:
        self._bootstrap, self._options, self._settings = bootstrap, dict(options), settings
        self._producer: Any = None
        self._partitions = 0

    def publish(self, records: Sequence[bytes], *, broker: int, time_ms: int) -> None:
        """Append records of a broker one after another; see `RecordSink.publish`."""
        try:
            producer = self._connected()
            for record in records:
                with _permitted("Write", self._settings.name):
                    pending = producer.send(
                        self._settings.name, record, key=str(broker).encode(), partition=broker % self._partitions,
                        timestamp_ms=time_ms,
                    )  # fmt: skip
                    pending.get((DELIVERY_MS + REQUEST_MS) / 1000)
        except TopicError:
            self.close()
            raise
        except REFUSALS as error:
            raise RecordRefused(f"topic {self._settings.name} refuses a record: {_said(error)}") from error
        except kafka_client.FAILURES as error:
            self.close()
            raise TopicError(f"topic {self._settings.name}: a record was not acknowledged: {_said(error)}") from error

    def close(self) -> None:
        """Let go of the connection at once; what is not acknowledged was not waited for."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close(timeout=0)

    def _connected(self) -> Any:
        if self._producer is None:
            # Looked up after every failure, since the topic may have been deleted; but a broker's records stay in one partition while
            # we live, also where the topic has more meanwhile.
            found = ensure_topic(self._bootstrap, self._options, self._settings)
            if not found:
                raise TopicError(f"topic {self._settings.name}: the cluster is deleting it, or has not made it yet")
            self._partitions = min(self._partitions or found, found)
            self._producer = kafka_client.producer(
                self._bootstrap,
                self._options,
                enable_idempotence=True,
                acks="all",
                compression_type=self._settings.compression,
                allow_auto_create_topics=False,
                max_block_ms=REQUEST_MS,
                request_timeout_ms=REQUEST_MS,
                delivery_timeout_ms=DELIVERY_MS,
                max_request_size=MAX_RECORD_BYTES,
                reconnect_backoff_max_ms=2000,
            )
        return self._producer


class KafkaTopicReader:
    """A `RecordSource` over a topic of a cluster: without a group, it commits nothing. Close it, or use it as a
    context manager.

    Parameters
    ----------
    wait
        Seconds that `poll` waits for records where there are none.

    Raises
    ------
    TopicError
        The cluster does not answer, or has no such topic.
    """

    def __init__(
        self,
        bootstrap: str,
        options: Mapping[str, object],
        name: str = DEFAULT_NAME,
        *,
        wait: float = 0.5,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name, self._wait, self._monotonic = name, wait, monotonic
        try:
            self._consumer = kafka_client.consumer(
                bootstrap,
                options,
                request_timeout_ms=REQUEST_MS,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                allow_auto_create_topics=False,
                exclude_internal_topics=False,
                metadata_max_age_ms=METADATA_MS,
            )
        except kafka_client.FAILURES as error:
            raise TopicError(f"{bootstrap}: no cluster answers: {_said(error)}") from error
        self._at: dict[int, int] = {}  # where the consumer stands
        self._partitions = 0
        try:
            self._refresh()
        except TopicError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._consumer.close(autocommit=False, timeout_ms=1000)

    @property
    def partitions(self) -> int:
        """May grow from one `poll` to the next."""
        return self._partitions

    def _refresh(self) -> None:
        numbers = self._asked(lambda: self._consumer.partitions_for_topic(self._name)) or ()
        if not numbers:
            raise TopicError(f"there is no topic {self._name}; is a reporter running that may make it?")
        if len(numbers) > self._partitions:  # fewer is what a broker says that has just come and knows little
            self._partitions = len(numbers)
            self._consumer.assign([TopicPartition(self._name, n) for n in sorted(numbers)])
            self._at = {}
        self._refreshed = self._monotonic()

    def poll(self, positions: Mapping[int, int], limit: int) -> list[TopicRecord]:
        """Records from the given positions on, at most `limit` in all, by partition, then offset."""
        if self._monotonic() - self._refreshed > REFRESH_SECONDS:
            self._refresh()
        for number in range(self._partitions):
            partition = TopicPartition(self._name, number)
            (self._consumer.resume if number in positions else self._consumer.pause)(partition)
        for number, offset in positions.items():
            if self._at.get(number) != offset:
                self._consumer.seek(TopicPartition(self._name, number), offset)
                self._at[number] = offset
        fetched = self._asked(lambda: self._consumer.poll(timeout_ms=int(self._wait * 1000), max_records=limit))
        found = [
            TopicRecord(tp.partition, r.offset, r.timestamp, b"" if r.value is None else bytes(r.value))
            for tp, records in fetched.items()
            for r in records
            if tp.partition in positions
        ]
        for record in found:
            self._at[record.partition] = max(self._at[record.partition], record.offset + 1)
        return sorted(found, key=lambda r: (r.partition, r.offset))

    def begin_offsets(self) -> dict[int, int]:
        """Partition -> oldest offset kept."""
        return self._offsets(self._consumer.beginning_offsets)

    def end_offsets(self) -> dict[int, int]:
        """Partition -> the offset that comes next."""
        return self._offsets(self._consumer.end_offsets)

    def offsets_at(self, time_ms: int) -> dict[int, int]:
        """See `RecordSource.offsets_at`; times are the brokers'."""
        ends = self.end_offsets()
        asked = {TopicPartition(self._name, n): max(time_ms, 0) for n in ends}
        found = self._asked(lambda: self._consumer.offsets_for_times(asked))
        return ends | {tp.partition: entry.offset for tp, entry in found.items() if entry is not None and entry.offset >= 0}

    def _offsets(self, look_up: Callable[..., Mapping[Any, int]]) -> dict[int, int]:
        every = [TopicPartition(self._name, n) for n in range(self._partitions)]
        return {tp.partition: offset for tp, offset in sorted(self._asked(lambda: look_up(every)).items())}

    def _asked(self, call: Callable[[], Any]) -> Any:
        try:
            with _permitted("Read", self._name):
                return call()
        except kafka_client.FAILURES as error:
            raise TopicError(f"topic {self._name} cannot be read: {_said(error)}") from error


def _said(error: Exception) -> str:
    name, text = type(error).__name__, str(error).strip()
    return text if text.startswith((name, "[Error")) else f"{name}: {text}" if text else name
