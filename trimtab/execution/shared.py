"""The shared record: documents of executions in a compacted topic of the cluster itself, so that an instance elsewhere can take over.

Written in transactions under one transactional id for the cluster: who claims it makes the broker refuse every later write of who had it
before. What people tell (wishes, a pause, drains) are plain records beside them, since anyone may. A document is one record, its key
the key; where nothing stands any more the value is null. Read committed, from the start, which compaction keeps short.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka import TopicPartition

from cluster_model.errors import ExternalError
from metrics_reporter import kafka_client
from metrics_reporter.permissions import is_refusal, missing
from trimtab.execution.ledger import HEADER, Document, Documents, Fenced, told_of

log = logging.getLogger(__name__)
T = TypeVar("T")

TOPIC = "__trimtab_executions"
REPLICATION = 3  # fewer where the cluster has fewer brokers
REQUEST_MS, READY_MS, TRANSACTION_MS = 10_000, 15_000, 30_000
DELIVERY_SECONDS = 20.0
POLL_MS = 200
EMPTY_POLLS = 50  # in a row without reaching the end: the cluster does not answer
FENCED = (kafka_errors.ProducerFencedError, kafka_errors.InvalidProducerEpochError)
CONFIGS = {
    "cleanup.policy": "compact", "segment.ms": "3600000", "segment.bytes": str(16 * 2**20), "min.cleanable.dirty.ratio": "0.1",
    "max.message.bytes": "1048576",
}  # fmt: skip


class SharedRecord:
    """See `Ledger`.

    Parameters
    ----------
    options
        Of the Python client, as `trimtab.capture.client` makes them.
    cluster_id
        Part of the transactional id.
    """

    def __init__(self, bootstrap: str, options: Mapping[str, object], cluster_id: str) -> None:
        self._bootstrap, self._options = bootstrap, dict(options)
        self._transactional_id = f"trimtab-executions-{cluster_id}"
        self._producer: Any = None
        self._asker: Any = None
        self._consumer: Any = None
        self._documents: Documents = {}
        self._claimed = False
        self._fenced = ""

    def claim(self) -> None:
        self._ensured()
        self._close_producer()
        self._producer = self._asked(self._claiming_producer, "Write")
        self._claimed = True

    def read(self) -> Documents:
        self._catch_up()
        return dict(self._documents)

    def write(self, documents: Mapping[str, Document | None]) -> None:
        if not self._claimed:
            raise ExternalError("the shared record was not claimed by this instance")
        if self._fenced:
            raise Fenced(self._fenced)
        try:
            producer = self._producer if self._producer is not None else self._reclaimed(documents)
            producer.begin_transaction()
            for key, document in documents.items():
                producer.send(TOPIC, key=key.encode(), value=None if document is None else json.dumps(document).encode(), partition=0)
            producer.commit_transaction()
        except FENCED as error:
            raise self._deposed() from error
        except kafka_client.FAILURES as error:
            if is_refusal(error):
                self._close_producer()
                raise self._refused(error, "Write") from error
            self._revive(error)

    def _deposed(self) -> Fenced:
        self._fenced = "another instance carries out plans on this cluster now; this one takes no further step"
        return Fenced(self._fenced)

    def _reclaimed(self, documents: Mapping[str, Document | None]) -> Any:
        """A new producer in the place of one that failed, unless another instance has written meanwhile."""
        last, own = self.read().get(HEADER), documents.get(HEADER)
        if last is not None and own is not None and last.get("instance") != own.get("instance"):
            raise self._deposed()
        self.claim()
        return self._producer

    def _revive(self, error: Exception) -> None:
        """After a failed write: abort, or start with a new producer next time."""
        try:
            if self._producer is not None:
                self._producer.abort_transaction()
        except FENCED as fenced:
            raise self._deposed() from fenced
        except kafka_client.FAILURES:
            self._close_producer()
        raise ExternalError(f"topic {TOPIC} cannot be written, so no step is taken: {_said(error)}", retriable=True) from error

    def told(self) -> Documents:
        self._catch_up()
        return told_of(self._documents)

    def tell(self, key: str, document: Document) -> None:
        self._ensured()
        if self._asker is None:
            self._asker = self._asked(lambda: self._new_producer(enable_idempotence=True), "Write")
        value = json.dumps(document).encode()
        self._asked(lambda: self._asker.send(TOPIC, key=key.encode(), value=value, partition=0).get(DELIVERY_SECONDS), "Write")

    def close(self) -> None:
        self._close_producer()
        asker, self._asker = self._asker, None
        consumer, self._consumer = self._consumer, None
        with suppress(*kafka_client.FAILURES):
            if asker is not None:
                asker.close(timeout=2)
        with suppress(*kafka_client.FAILURES):
            if consumer is not None:
                consumer.close(autocommit=False, timeout_ms=1000)

    def _close_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(*kafka_client.FAILURES):
                producer.close(timeout=2)

    # -- the topic -------------------------------------------------------------------------------------------

    def _ensured(self) -> None:
        """Have the topic there."""
        if self._partitions():
            return

        def make() -> None:
            admin = kafka_client.admin_client(self._bootstrap, self._options, request_timeout_ms=REQUEST_MS)
            try:
                brokers = len(admin.describe_cluster()["brokers"])
                wanted = {"num_partitions": 1, "replication_factor": min(REPLICATION, max(brokers, 1)), "configs": CONFIGS}
                with suppress(kafka_errors.TopicAlreadyExistsError):
                    admin.create_topics({TOPIC: wanted})
                admin.wait_for_topics([TOPIC], timeout_ms=READY_MS)
            finally:
                admin.close()

        self._asked(make, "Create")
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close(autocommit=False, timeout_ms=1000)

    def _partitions(self) -> int:
        return len(self._asked(lambda: self._reader().partitions_for_topic(TOPIC)) or ())

    def _reader(self) -> Any:
        if self._consumer is None:
            self._consumer = kafka_client.consumer(
                self._bootstrap, self._options, request_timeout_ms=REQUEST_MS, enable_auto_commit=False, auto_offset_reset="earliest",
                isolation_level="read_committed", allow_auto_create_topics=False, exclude_internal_topics=False, metadata_max_age_ms=3000,
            )  # fmt: skip
        return self._consumer

    def _catch_up(self) -> None:
        """Read what was committed since the last time."""
        partition = TopicPartition(TOPIC, 0)
        if not self._partitions():
            return

        def read() -> None:
            consumer = self._reader()
            if partition not in consumer.assignment():
                consumer.assign([partition])
                consumer.seek_to_beginning(partition)
                self._documents = {}
            end = consumer.end_offsets([partition])[partition]
            empty = 0
            while consumer.position(partition) < end:
                fetched = consumer.poll(timeout_ms=POLL_MS)
                empty = 0 if fetched else empty + 1
                if empty > EMPTY_POLLS:
                    raise kafka_errors.KafkaTimeoutError(f"offset {end} of {TOPIC} was not reached")
                for record in fetched.get(partition, ()):
                    self._take(record)

        self._asked(read)

    def _take(self, record: Any) -> None:
        key = record.key.decode()
        if record.value is None:
            self._documents.pop(key, None)
            return
        try:
            self._documents[key] = json.loads(record.value)
        except ValueError as error:
            raise ExternalError(f"topic {TOPIC}, offset {record.offset}: expected JSON: {error}; only Trimtab may write there") from error

    # -- clients ---------------------------------------------------------------------------------------------

    def _new_producer(self, **more: Any) -> Any:
        return kafka_client.producer(
            self._bootstrap, self._options, acks="all", request_timeout_ms=REQUEST_MS, delivery_timeout_ms=REQUEST_MS * 2,
            max_block_ms=REQUEST_MS * 2, allow_auto_create_topics=False, metadata_max_age_ms=3000, **more,
        )  # fmt: skip

    def _claiming_producer(self) -> Any:
        producer = self._new_producer(transactional_id=self._transactional_id, transaction_timeout_ms=TRANSACTION_MS)
        try:
            producer.init_transactions()
        except BaseException:
            producer.close(timeout=0)
            raise
        return producer

    def _refused(self, error: Exception, operation: str) -> ExternalError:
        of = self._transactional_id if "TransactionalId" in _said(error) else TOPIC
        return ExternalError(f"topic {TOPIC}: {_said(error)}; {missing(error, operation, of)}")

    def _asked(self, call: Callable[[], T], operation: str = "Read") -> T:
        try:
            return call()
        except kafka_client.FAILURES as error:
            if is_refusal(error):
                raise self._refused(error, operation) from error
            consumer, self._consumer = self._consumer, None
            if consumer is not None:
                with suppress(*kafka_client.FAILURES):
                    consumer.close(autocommit=False, timeout_ms=1000)
            raise ExternalError(f"topic {TOPIC} cannot be used now: {_said(error)}", retriable=True) from error


def _said(error: Exception) -> str:
    name, text = type(error).__name__, str(error).strip()
    return text if text.startswith((name, "[Error")) else f"{name}: {text}" if text else name
