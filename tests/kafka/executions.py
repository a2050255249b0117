"""Plans to carry out on a real cluster, traffic that proves that no record is lost, and what is left behind afterwards.

Used by `test_execution.py` and `chaos.py`.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from optimizer.identity import Source, identity_of
from optimizer.plan import Change
from tests.kafka.cluster import KafkaCluster
from tests.kafka.watched import Watched
from trimtab.capture.client import client_settings
from trimtab.execution.kafka_port import KafkaPort
from trimtab.execution.port import Resource
from trimtab.execution.state import Partition
from trimtab.execution.throttle import KEYS

Lists = Mapping[Partition, tuple[int, ...]]
Move = tuple[tuple[int, ...], tuple[int, ...]]  # replica list before, and after
TICK = 0.02
SECONDS = 120.0


def plan_file(path: Path, cluster_id: str, moves: Mapping[Partition, Move], *, digest: str = "", batches: Sequence[int] = ()) -> Path:
    """A plan of these moves, of which the first replica is to lead, from a snapshot of this digest; `batches` are those that it is carried
    out in, two seconds apart."""
    net = [Change(n.topic, n.number, before, after, before[0], after[0]) for n, (before, after) in moves.items()]
    changes = [asdict(change) for change in net]
    source = Source(cluster_id, "local", digest, "", {}, False, batches, 2.0 if batches else 0.0)
    actions = [
        {"seq": i, "type": "move", "score": 0.6, "repairs": [], "reason": "test", "bytes_to_move": 1, "changes": [c], "goal_scores": {}}
        for i, c in enumerate(changes, 1)
    ]
    document = {
        "version": 1, "plan_id": identity_of(source, [[change] for change in net], net),
        "snapshot": {"cluster_id": cluster_id, "taken_at": "2026-01-01T00:00:00Z", "digest": digest, "storage": "local"},
        "goals_digest": "", "options": {}, "actions": actions, "proposals": changes, "goals": [],
        **({"batches": {"count": max(batches), "pause": 2.0, "left": 0, "of": list(batches)}} if batches else {}),
    }  # fmt: skip
    path.write_text(json.dumps(document))
    return path


@contextmanager
def looking(cluster: KafkaCluster) -> Iterator[KafkaPort]:
    port = KafkaPort(cluster.bootstrap, client_settings(None))
    try:
        yield port
    finally:
        port.close()


def placed(cluster: KafkaCluster, topic: str) -> dict[Partition, tuple[int, ...]]:
    """Replica lists of a topic now; a reassignment in progress shows as both lists."""
    with looking(cluster) as port:
        return {n: p.replicas for n, p in port.look(()).partitions.items() if n.topic == topic}


def leaders(cluster: KafkaCluster, topic: str) -> dict[Partition, int | None]:
    with looking(cluster) as port:
        return {n: p.leader for n, p in port.look(()).partitions.items() if n.topic == topic}


def throttles(cluster: KafkaCluster, *topics: str) -> dict[str, dict[str, str]]:
    """Throttle settings that stand on brokers and on topics."""
    resources = [*(Resource("broker", str(b)) for b in cluster.broker_ids), *(Resource("topic", t) for t in topics)]
    with looking(cluster) as port:
        return {str(r): of for r, of in port.configs(resources, KEYS).items() if of}


def until(true: Callable[[], Any], seconds: float = SECONDS, *, every: float = 0.2) -> bool:
    """Whether it came true in time."""
    deadline = time.monotonic() + seconds
    waiting = threading.Event()
    while time.monotonic() < deadline:
        if true():
            return True
        waiting.wait(every)
    return False


class Executing(Watched):
    """`trimtab execute` or a companion, with a journal in `folder`."""

    def __init__(self, cluster: KafkaCluster, folder: Path, verb: str, *more: str, listener: str = "PLAINTEXT") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder, verb, "--bootstrap-server", cluster.addresses(listener), "--journal", str(folder / "journal"), *more)


@dataclass
class Verified:
    """Records with a number each, produced with acks=all by an idempotent producer and read back by a consumer, all the time.

    A record goes to each partition every `every` seconds, whether the one before was acknowledged or not: a partition that stands still
    delays no other. Leaving the context stops both; `faults` then says what was lost or out of order.
    """

    cluster: KafkaCluster
    names: Sequence[Partition]
    size: int = 500
    every: float = TICK
    acknowledged: dict[Partition, int] = field(default_factory=lambda: defaultdict(int))
    times: list[tuple[float, float]] = field(default_factory=list)  # of each record: when it was sent, seconds until acknowledged
    failed: list[str] = field(default_factory=list)

    def __enter__(self) -> Verified:
        self._stop = threading.Event()
        self._first = threading.Event()
        self._thread = threading.Thread(target=self._produce, daemon=True)
        self._thread.start()
        if not self._first.wait(SECONDS):
            raise RuntimeError(f"no record was acknowledged: {self.failed[-1:]}")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(2 * SECONDS)

    def seconds(self, since: float, until: float) -> list[float]:
        """Of each record sent between two times of the monotonic clock, until it was acknowledged; shortest first."""
        return sorted(took for sent, took in self.times if since <= sent < until)

    def _produce(self) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.cluster.bootstrap, acks="all", enable_idempotence=True, linger_ms=0, metadata_max_age_ms=2000,
            delivery_timeout_ms=120_000, request_timeout_ms=10_000, max_block_ms=60_000,
        )  # fmt: skip
        pad = b"." * self.size
        number, due = 0, time.monotonic()
        while not self._stop.wait(max(due - time.monotonic(), 0.0)):
            for name in self.names:
                record = producer.send(name.topic, b"%d:" % number + pad, partition=name.number)
                record.add_callback(self._arrived, name, number, time.monotonic())
                record.add_errback(self._lost, name, number)
            number += 1
            due = max(due + self.every, time.monotonic() - 1.0)
        producer.flush(SECONDS)
        producer.close()

    def _arrived(self, name: Partition, number: int, sent: float, _: Any) -> None:
        self.times.append((sent, time.monotonic() - sent))
        self.acknowledged[name] = max(self.acknowledged[name], number + 1)
        self._first.set()

    def _lost(self, name: Partition, number: int, error: BaseException) -> None:
        self.failed.append(f"{name} record {number}: {error}")

    def faults(self) -> list[str]:
        """What the log of each partition shows: records that were acknowledged and are not there, or not in order."""
        consumer = KafkaConsumer(bootstrap_servers=self.cluster.bootstrap, enable_auto_commit=False, auto_offset_reset="earliest")
        found = []
        try:
            partitions = [TopicPartition(*n) for n in self.names]
            consumer.assign(partitions)
            consumer.seek_to_beginning()
            ends = consumer.end_offsets(partitions)
            seen: dict[TopicPartition, list[int]] = defaultdict(list)
            deadline = time.monotonic() + SECONDS
            while any(consumer.position(p) < ends[p] for p in partitions) and time.monotonic() < deadline:
                for p, records in consumer.poll(timeout_ms=500).items():
                    seen[p] += [int(r.value.partition(b":")[0]) for r in records if b":" in r.value]
        finally:
            consumer.close()
        for p in partitions:
            name, numbers = Partition(p.topic, p.partition), seen[p]
            if numbers != sorted(numbers):
                found.append(f"{name}: records are out of order")
            lost = set(range(self.acknowledged[name])) - set(numbers)
            if lost and not any(str(name) in text for text in self.failed):
                found.append(f"{name}: {len(lost)} of {self.acknowledged[name]} acknowledged records are lost, first {min(lost)}")
        return found
