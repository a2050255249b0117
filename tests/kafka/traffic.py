"""Topics with chosen placement, and steady traffic whose bytes are counted.

Used by the tests of this folder and by ``python -m tests.kafka.cluster``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.protocol.metadata import MetadataRequest

from tests.kafka.cluster import KafkaCluster
from trimtab.capture.asking import Asker

Partition = tuple[str, int]
TICK = 0.05


@contextmanager
def administering(cluster: KafkaCluster) -> Iterator[KafkaAdminClient]:
    """A new admin client, closed afterwards."""
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    try:
        yield client
    finally:
        client.close()


def create_topic(
    admin: KafkaAdminClient,
    name: str,
    assignments: Sequence[Sequence[int]],
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create a topic with these replica lists, preferred leader first, and wait until each broker knows its leaders."""
    admin.create_topics(
        {
            name: {
                "assignments": {i: list(b) for i, b in enumerate(assignments)},
                "configs": dict(configs or {}),
            }
        }
    )
    wait_until_known(admin, name)


def wait_until_known(admin: KafkaAdminClient, name: str, seconds: float = 30.0) -> None:
    """Return when each broker knows a new topic and its leaders: they learn of it one by one, and a client asks any of them.

    A broker that a test has stopped is left out. Raises `TimeoutError` with the broker that still does not know the topic.
    """
    asker, end = Asker(admin, "the cluster", time.monotonic), time.monotonic() + seconds
    for broker in [b["broker_id"] for b in admin.describe_cluster()["brokers"]]:
        with suppress(KafkaError):
            while not _known(asker.send(lambda: _metadata(name), broker)):
                if time.monotonic() > end:
                    raise TimeoutError(f"after {seconds:g} s broker {broker} does not know the topic {name} and its leaders")
                time.sleep(TICK)


def _metadata(name: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)


def _known(response: Any) -> bool:
    (topic,) = response.topics
    return topic.error_code == 0 and all(p.error_code == 0 and p.leader_id >= 0 for p in topic.partitions)


def fill(bootstrap: str, records: Mapping[Partition, int], size: int = 1000) -> None:
    """Append so many records of `size` bytes to each partition."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, batch_size=65536, linger_ms=5)
    try:
        for (topic, partition), count in records.items():
            for _ in range(count):
                producer.send(topic, b"d" * size, partition=partition)
        producer.flush()
    finally:
        producer.close()


class Window:
    """When a capture measured rates; hand it over as its `progress`."""

    def __init__(self) -> None:
        self._marks: list[float] = []

    def __call__(self, what: str, share: float) -> None:
        if what == "measuring rates":
            self._marks.append(time.monotonic())

    @property
    def span(self) -> tuple[float, float]:
        return self._marks[0], self._marks[-1]


class Traffic:
    """Produces so many records of `size` bytes a tick to each partition, and consumes them in a group that
    commits.

    Leaving the context stops both. `rate` says what was acknowledged in a span of the monotonic clock.
    """

    def __init__(
        self, bootstrap: str, per_tick: Mapping[Partition, int], *, size: int = 2000, group: str | None = None, key: bytes | None = None
    ) -> None:
        self._key = key
        self._bootstrap = bootstrap
        self._per_tick = dict(per_tick)
        self._size = size
        self._group = group
        self._stop = threading.Event()
        self._flowing = threading.Event()
        self._caught_up = threading.Event()  # a new one for each wish to know
        self._sent: list[float] = []  # when each tick was acknowledged
        self._threads = [threading.Thread(target=self._produce, daemon=True)]
        if group is not None:
            self._threads.append(threading.Thread(target=self._consume, args=(group,), daemon=True))

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        try:
            if not self._flowing.wait(30):
                raise RuntimeError("no record was acknowledged within 30 s")
            self.settle()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def settle(self) -> None:
        """Wait until the consumer keeps up with the producer in every partition, as after leaders have moved."""
        if self._group is not None:
            caught_up = self._caught_up = threading.Event()
            if not caught_up.wait(60):
                raise RuntimeError("the consumer did not catch up within 60 s")

    def rate(self, partition: Partition, span: tuple[float, float]) -> float:
        """Bytes of values a second that were acknowledged between two times of the monotonic clock."""
        begin, end = span
        ticks = sum(begin <= at < end for at in self._sent)
        return ticks * self._per_tick[partition] * self._size / (end - begin)

    def _produce(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, batch_size=65536)
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            for (topic, partition), count in self._per_tick.items():
                for _ in range(count):
                    producer.send(topic, b"t" * self._size, self._key, partition=partition)
            producer.flush()
            self._sent.append(time.monotonic())
            self._flowing.set()
            due = max(due + TICK, time.monotonic())  # a stall is not made up for by a burst
        producer.close()

    def _consume(self, group: str) -> None:
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="latest",
        )
        partitions = [TopicPartition(*p) for p in self._per_tick]
        consumer.assign(partitions)
        wish, pending = self._caught_up, set(partitions)
        while not self._stop.is_set():
            if wish is not self._caught_up:
                wish, pending = self._caught_up, set(partitions)
            fetched = consumer.poll(timeout_ms=200)
            if fetched:
                consumer.commit()
            for partition in fetched:
                lag = consumer.highwater(partition) - consumer.position(partition)
                if lag <= 2 * self._per_tick[partition.topic, partition.partition]:
                    pending.discard(partition)
            if not pending:
                wish.set()
        consumer.close()
