"""A cluster's metadata in plain dictionaries, with records that change it: slow, and obviously right.

Used by the tests of `cluster_model.metadata`. `Oracle.act` invents a valid change from four numbers and gives its
record; `checkpoint` gives the records that Kafka would write for the whole.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

from cluster_model.metadata import schemas as s
from cluster_model.metadata.events import PartitionChanged
from cluster_model.metadata.image import MetadataImage
from cluster_model.metadata.wire import uuid_text
from tests.unit.cluster_model.metadata_log import Entry

ACTIONS = (
    "register", "unregister", "fence", "unfence", "change broker", "stop", "create topic", "delete topic", "partition",
    "partition", "partition", "isr", "leader", "leader", "reorder", "reassign", "end reassignment", "elr", "clear elr",
    "directories", "config", "no-op", "unknown",
)  # fmt: skip
UNKNOWN = 501  # AutoMQ's
BROKERS = 12
TOPICS = 5


@dataclass
class Broker:
    rack: str | None
    fenced: bool = True
    stopping: bool = False


@dataclass
class Partition:
    replicas: list[int]
    isr: list[int]
    leader: int
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)
    epoch: int = 0
    elr: list[int] = field(default_factory=list)
    last_known: list[int] = field(default_factory=list)


@dataclass
class Topic:
    id: bytes
    partitions: dict[int, Partition] = field(default_factory=dict)


@dataclass
class Oracle:
    brokers: dict[int, Broker] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    created: int = 0

    def act(self, action: str, a: int, b: int, c: int, d: int) -> Entry | None:
        """Change something; None where this action has nothing to work on."""
        broker = sorted(self.brokers)[a % len(self.brokers)] if self.brokers else None
        match action:
            case "register":
                id, rack = a % BROKERS, (None, "r1", "r2")[b % 3]
                self.brokers[id] = Broker(rack, fenced=c % 2 == 0, stopping=d % 5 == 0)
                return registration(id, self.brokers[id], version=1 + d % 4)
            case "no-op":
                return Entry(20, 0)
            case "config":
                return Entry(s.CONFIG, 0, {"resourceType": 2, "resourceName": "x", "name": "y", "value": None})
            case "create topic":
                return self._create(f"topic-{a % TOPICS}", automq=b % 4 == 0)
            case "unknown":
                return Entry(UNKNOWN, a % 3)
        if broker is not None and action in ("unregister", "fence", "unfence", "change broker", "stop"):
            return self._broker(action, broker, b)
        if self.topics:
            name = sorted(self.topics)[a % len(self.topics)]
            topic = self.topics[name]
            if action == "delete topic":
                del self.topics[name]
                return Entry(s.REMOVE_TOPIC, 0, {"topicId": topic.id})
            if action == "clear elr":
                for p in topic.partitions.values():
                    p.epoch += bool(p.elr or p.last_known)
                    p.elr, p.last_known = [], []
                return Entry(s.CLEAR_ELR, 0, {"topicName": name})
            if action == "partition":
                number = len(topic.partitions)
                replicas = chosen(b, 1 + c % 6)
                p = Partition(replicas, replicas[: 1 + d % len(replicas)], replicas[0] if d % 7 else -1)
                topic.partitions[number] = p
                return Entry(s.PARTITION, d % 3, partition_fields(number, topic.id, p, d % 3))
            if topic.partitions:
                return self._partition(action, topic, b, c, d)
        return None

    def _broker(self, action: str, id: int, b: int) -> Entry:
        entry = self.brokers[id]
        match action:
            case "unregister":
                del self.brokers[id]
                return Entry(s.UNREGISTER_BROKER, 0, {"brokerId": id})
            case "fence":
                entry.fenced = True
                return Entry(s.FENCE_BROKER, 0, {"id": id})
            case "unfence":
                entry.fenced = False
                return Entry(s.UNFENCE_BROKER, 0, {"id": id})
            case "stop":
                entry.stopping = True
                return Entry(s.BROKER_CHANGE, 1, {"brokerId": id, "inControlledShutdown": 1})
        change = (-1, 0, 1)[b % 3]
        entry.fenced = entry.fenced if change == 0 else change > 0
        return Entry(s.BROKER_CHANGE, b % 4, {"brokerId": id, "fenced": change})

    def _create(self, name: str, *, automq: bool) -> Entry | None:
        if name in self.topics:
            return None
        self.created += 1
        self.topics[name] = Topic(hashlib.md5(f"{name}{self.created}".encode()).digest())
        fields: dict[str, Any] = {"name": name, "topicId": self.topics[name].id}
        return Entry(s.TOPIC, 1, {**fields, "tieredEpoch": 7}) if automq else Entry(s.TOPIC, 0, fields)

    def _partition(self, action: str, topic: Topic, b: int, c: int, d: int) -> Entry | None:
        number = sorted(topic.partitions)[b % len(topic.partitions)]
        p = topic.partitions[number]
        change: dict[str, Any] = {"partitionId": number, "topicId": topic.id}
        version = 2
        match action:
            case "isr":
                p.isr = [x for i, x in enumerate(p.replicas) if c >> i & 1]
                change["isr"] = p.isr
                version = d % 3
            case "leader":
                p.leader = p.replicas[c % len(p.replicas)] if d % 5 else -1
                change["leader"] = p.leader
            case "reorder":
                p.replicas = [*p.replicas[c % len(p.replicas) :], *p.replicas[: c % len(p.replicas)]]
                change["replicas"] = p.replicas
            case "reassign":
                added = [x for x in chosen(c, 1 + d % 4) if x not in p.replicas]
                p.removing = p.replicas[: d % 2]
                p.adding = added
                p.replicas = [*p.replicas, *added]
                change |= {"replicas": p.replicas, "removingReplicas": p.removing, "addingReplicas": p.adding}
            case "end reassignment":
                p.replicas = [x for x in p.replicas if x not in p.removing] or p.replicas
                p.isr = [x for x in p.isr if x in p.replicas]
                p.adding, p.removing = [], []
                change |= {"replicas": p.replicas, "isr": p.isr, "removingReplicas": [], "addingReplicas": []}
            case "elr":
                p.elr, p.last_known = p.replicas[: c % 2], p.replicas[: d % 3]
                change |= {"eligibleLeaderReplicas": p.elr, "lastKnownElr": p.last_known}
            case "directories":
                change["directories"] = [bytes([c % 256]) * 16 for _ in p.replicas]
            case _:
                return None
        p.epoch += 1
        return Entry(s.PARTITION_CHANGE, version, change)

    def checkpoint(self) -> list[Entry]:
        """The records of a checkpoint of what is now."""
        entries = [registration(id, broker, 4) for id, broker in self.brokers.items()]
        for name, topic in self.topics.items():
            entries.append(Entry(s.TOPIC, 0, {"name": name, "topicId": topic.id}))
            entries += [
                Entry(s.PARTITION, 2, partition_fields(number, topic.id, p, 2)) for number, p in topic.partitions.items()
            ]
        return entries

    def said(self) -> dict[str, object]:
        """What an image of this must say, as `said_by` reads it off one."""
        partitions = {
            (name, number): PartitionChanged(
                name,
                number,
                tuple(p.replicas),
                tuple(x for x in p.replicas if x in p.isr),
                p.leader if p.leader >= 0 else None,
                tuple(p.adding),
                tuple(p.removing),
                p.epoch,
            )
            for name, topic in self.topics.items()
            for number, p in topic.partitions.items()
        }
        return {
            "brokers": {id: (b.rack, b.fenced, b.stopping) for id, b in self.brokers.items()},
            "topics": {name: uuid_text(topic.id) for name, topic in self.topics.items()},
            "partitions": partitions,
        }


def said_by(image: MetadataImage) -> dict[str, object]:
    slots = {slot: image.partition(slot) for slot in image.live_slots().tolist()}
    assert set(image.reassigning) <= set(slots)
    assert image.partition_count == len(slots)
    for slot, p in slots.items():
        assert image.slot(image.row_of(p.topic), p.partition) == slot
        found = image.slots(image.topic_rows((p.topic,)), image.number[[slot]])
        assert found.tolist() == [slot]
    return {
        "brokers": {id: (e.rack, e.fenced_since_ms is not None, e.stopping) for id, e in image.brokers.items()},
        "topics": dict(image.topic_ids),
        "partitions": {(p.topic, p.partition): p for p in slots.values()},
    }


def without_epochs(said: dict[str, object]) -> dict[str, object]:
    partitions = said["partitions"]
    assert isinstance(partitions, dict)
    return {**said, "partitions": {key: replace(p, epoch=0) for key, p in partitions.items()}}


def registration(id: int, broker: Broker, version: int) -> Entry:
    return Entry(
        s.REGISTER_BROKER,
        version,
        {
            "brokerId": id, "incarnationId": bytes(16), "brokerEpoch": 1, "endPoints": [], "features": [],
            "rack": broker.rack, "fenced": broker.fenced, "inControlledShutdown": broker.stopping,
            "logDirs": [bytes([id]) * 16] if version >= 3 else [],
        },
    )  # fmt: skip


def partition_fields(number: int, topic_id: bytes, p: Partition, version: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "partitionId": number, "topicId": topic_id, "replicas": p.replicas, "isr": p.isr,
        "removingReplicas": p.removing, "addingReplicas": p.adding, "leader": p.leader, "leaderEpoch": 3,
        "partitionEpoch": p.epoch,
    }  # fmt: skip
    if version >= 1:
        fields["directories"] = [bytes(16)] * len(p.replicas)
    if version >= 2:
        fields["eligibleLeaderReplicas"] = p.elr or None
        fields["lastKnownElr"] = p.last_known or None
    return fields


def chosen(number: int, count: int) -> list[int]:
    """`count` different broker ids."""
    return [(number + 5 * i) % BROKERS for i in range(count)]
