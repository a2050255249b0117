"""Writes the example snapshots beside it: always the same bytes of content, on every machine.

`python examples/make_examples.py [FOLDER]`. The loads are invented, but hang together as a broker's do:
bytes out follow from bytes in, consumers and replication, disk from bytes in and retention, cpu from bytes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from cluster_model.build import build_snapshot
from cluster_model.files import write_snapshot

Row = dict[str, Any]

HOUR = 3600.0
CAPACITY = {"network_in": 125e6, "network_out": 125e6, "disk": 4e12, "cpu": 8.0}


def loads(rate: float, *, consumers: float, hours: float, replicas: int) -> Row:
    """Leader and follower load of a partition that takes `rate` bytes/s."""
    out = rate * (consumers + replicas - 1)
    disk = round(rate * hours * HOUR)
    leading = {
        "network_in": round(rate),
        "network_out": round(out),
        "cpu": round(2.4e-8 * rate + 0.8e-8 * out, 6),
        "disk": disk,
        "produce_rate": round(rate / 16_000, 3),
        "fetch_rate": round(out / 64_000, 3),
    }
    following = {"network_in": round(rate), "cpu": round(1.2e-8 * rate, 6), "disk": disk}
    return {"leader_load": leading, "follower_load": following}


def three_brokers() -> Row:
    """Three racks, two replicas: broker 1 leads nearly everything, broker 3 has just been added."""
    topics = {  # partitions, bytes/s of the whole topic, consumers, retention in hours
        "orders": (6, 18e6, 2.0, 24),
        "payments": (4, 5e6, 3.0, 48),
        "clicks": (8, 30e6, 1.0, 6),
        "audit": (3, 1.5e6, 0.5, 96),
    }
    partitions: list[Row] = []
    for topic, (count, rate, consumers, hours) in topics.items():
        for number in range(count):
            share = (1.0 + 0.15 * (number % 3)) / count
            replicas = [2, 1] if number % 4 == 3 else [1, 2]
            if topic == "audit":
                replicas = [1, 3]
            load = loads(rate * share, consumers=consumers, hours=hours, replicas=2)
            partitions.append(
                {"topic": topic, "partition": number, "replicas": replicas, "leader": replicas[0], **load}
            )
    brokers = [{"id": n, "rack": rack, "capacity": CAPACITY} for n, rack in ((1, "a"), (2, "b"), (3, "c"))]
    return document("example-three-brokers", brokers, partitions)


def skewed_12_brokers() -> Row:
    """Twelve brokers in three racks, heavy-tailed topics, placed with a preference for a few brokers."""
    random = Random(12)
    racks = "abc"
    liking = [1.0, 0.75, 0.5, 0.3]  # of the four brokers in a rack
    brokers = [{"id": n, "rack": racks[n % 3], "capacity": CAPACITY} for n in range(1, 13)]
    partitions: list[Row] = []
    for topic, count, rate, consumers, hours in _topics(random):
        for number in range(count):
            factor = 2 if topic.startswith("scratch") else 3
            start = int(random.random() * 3)
            chosen = [(start + step) % 3 for step in range(factor)]
            replicas = [_broker(random, rack, liking) for rack in chosen]
            share = rate / count * (0.7 + 0.6 * random.random())
            load = loads(share, consumers=consumers, hours=hours, replicas=factor)
            partitions.append(
                {"topic": topic, "partition": number, "replicas": replicas, "leader": replicas[0], **load}
            )
    return document("example-skewed-12-brokers", brokers, partitions)


def _topics(random: Random) -> Iterator[tuple[str, int, float, float, float]]:
    """Name, partitions, bytes/s, consumers, retention in hours; one topic in twelve is a large one."""
    yield "__consumer_offsets", 50, 150e3, 0.1, 24.0
    for rank in range(84):
        name = f"{'scratch' if rank % 10 == 9 else 'team'}-{rank % 7}.events-{rank:02d}"
        count = (48, 24, 12, 12, 6, 6)[rank % 6]
        tail = min(1.0 / (0.04 + random.random()) ** 1.3, 30.0)
        yield (
            name,
            count,
            0.35e6 * tail * (count / 12) ** 0.5,
            float(int(random.random() * 4)),
            (6.0, 24.0, 48.0)[rank % 3],
        )


def _broker(random: Random, rack: int, liking: list[float]) -> int:
    """A broker of the rack (ids rack, rack + 3, … with rack 0 meaning 3), drawn in proportion to liking."""
    point = random.random() * sum(liking)
    place = 0
    while place < len(liking) - 1 and point >= liking[place]:
        point -= liking[place]
        place += 1
    return (rack or 3) + 3 * place


def document(cluster_id: str, brokers: list[Row], partitions: list[Row]) -> Row:
    return {
        "version": 1,
        "cluster_id": cluster_id,
        "taken_at": "2026-11-20T12:00:00Z",
        "storage": "local",
        "brokers": brokers,
        "partitions": partitions,
    }


def main(folder: Path) -> None:
    write_snapshot(build_snapshot(three_brokers()), folder / "three-brokers.json")
    write_snapshot(build_snapshot(skewed_12_brokers()), folder / "skewed-12-brokers.json.gz")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
