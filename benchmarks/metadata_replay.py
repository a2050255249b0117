"""How fast a metadata log is followed: replayed into an image, loaded from a checkpoint, and turned into events.

`python -m benchmarks.metadata_replay [--partitions 1000000] [--per-topic 50] [--json FILE]`. Writes a log as a
controller of Apache Kafka 4.3 would have written it into a temporary folder (topics created, log directories assigned,
one broker fenced and unfenced again, leaders moved back, no-op records in between), then reads it. Rates are records a
CPU second; the target is 200,000.
"""

from __future__ import annotations

import argparse
import json
import os
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster_model.metadata import schemas as s
from cluster_model.metadata.batches import read_batches
from cluster_model.metadata.description import QuorumReport
from cluster_model.metadata.follower import KRaftFollower
from cluster_model.metadata.image import MetadataImage
from tests.unit.cluster_model.metadata_log import Entry, batch_of, control_batch, value_of

TARGET = 200_000
BROKERS = 300
SEGMENT_BYTES = 256 << 20
BATCH_RECORDS = 2_000
PARTITION = struct.Struct(">3Bi16sB3iB3iBBiiiB48sB")
CHANGE_HEAD = struct.Struct(">3Bi16s")
NO_OP = bytes([1, 20, 0, 0])


@dataclass
class Writer:
    """Segments of a log, written batch by batch."""

    directory: Path
    end: int = 0
    records: int = 0
    batches: int = 0
    _size: int = SEGMENT_BYTES

    def write(self, values: list[bytes]) -> None:
        raw = batch_of(self.end, 1, [(None, value) for value in values])
        if self._size >= SEGMENT_BYTES:
            self._path = self.directory / f"{self.end:020d}.log"
            self._size = 0
        with self._path.open("ab") as file:
            file.write(raw)
        self._size += len(raw)
        self.end += len(values)
        self.records += len(values)
        self.batches += 1

    def write_all(self, values: Iterator[bytes]) -> None:
        """In batches as large as a busy controller writes them."""
        batch: list[bytes] = []
        for value in values:
            batch.append(value)
            if len(batch) == BATCH_RECORDS:
                self.write(batch)
                batch = []
        if batch:
            self.write(batch)


@dataclass(frozen=True)
class Shape:
    partitions: int
    per_topic: int

    @property
    def topics(self) -> int:
        return self.partitions // self.per_topic

    def topic_id(self, topic: int) -> bytes:
        return struct.pack(">QQ", (topic * 0x9E3779B97F4A7C15) % 2**64, (topic * 0xC2B2AE3D27D4EB4F + 1) % 2**64)

    def replicas(self, topic: int, number: int) -> tuple[int, int, int]:
        first = (topic * 7 + number) % BROKERS
        return first, (first + 1 + number % 50) % BROKERS, (first + 60 + topic % 50) % BROKERS

    def all(self) -> Iterator[tuple[int, int]]:
        return ((topic, number) for topic in range(self.topics) for number in range(self.per_topic))

    def topic(self, topic: int) -> bytes:
        return value_of(Entry(s.TOPIC, 0, {"name": f"team.events-{topic:06d}", "topicId": self.topic_id(topic)}))

    def partition(self, topic: int, number: int) -> bytes:
        hosts = self.replicas(topic, number)
        return PARTITION.pack(
            1, s.PARTITION, 2, number, self.topic_id(topic), 4, *hosts, 4, *hosts, 1, 1, hosts[0], 0, 0, 4, bytes(48), 0
        )

    def change(self, topic: int, number: int, tags: bytes) -> bytes:
        return CHANGE_HEAD.pack(1, s.PARTITION_CHANGE, 2, number, self.topic_id(topic)) + tags


def brokers() -> list[bytes]:
    fields = {"incarnationId": bytes(16), "endPoints": [], "features": [], "fenced": False, "logDirs": [bytes(16)]}
    return [value_of(Entry(s.REGISTER_BROKER, 3, {**fields, "brokerId": b, "rack": "abc"[b % 3]})) for b in range(BROKERS)]


def write_log(shape: Shape, directory: Path) -> Writer:
    """The log of a cluster's life."""
    log = Writer(directory)
    log.write(brokers())
    for topic in range(shape.topics):
        log.write([shape.topic(topic), *(shape.partition(topic, n) for n in range(shape.per_topic))])
        if topic % 10 == 0:
            log.write([NO_OP])
    directories = bytes([1, 8, 49, 4]) + bytes(48)
    log.write_all(shape.change(topic, n, directories) for topic, n in shape.all())

    def lost(topic: int, n: int) -> bytes:
        a, b, c = shape.replicas(topic, n)
        left = struct.pack(">BBBBii", 2 if a == 7 else 1, 0, 9, 3, *[x for x in (a, b, c) if x != 7])
        return shape.change(topic, n, left + (struct.pack(">BBi", 1, 4, b) if a == 7 else b""))

    hit = [(topic, n) for topic, n in shape.all() if 7 in shape.replicas(topic, n)]
    log.write([value_of(Entry(s.BROKER_CHANGE, 0, {"brokerId": 7, "fenced": 1}))])
    log.write_all(lost(topic, n) for topic, n in hit)
    log.write([value_of(Entry(s.BROKER_CHANGE, 0, {"brokerId": 7, "fenced": -1}))])
    log.write_all(
        shape.change(topic, n, struct.pack(">BBBB3i", 1, 0, 13, 4, *shape.replicas(topic, n))) for topic, n in hit
    )
    log.write_all(
        shape.change(topic, n, struct.pack(">BBBi", 1, 1, 4, shape.replicas(topic, n)[0])) for topic, n in shape.all()
    )
    return log


def write_checkpoint(shape: Shape, directory: Path) -> int:
    """A checkpoint of the same cluster, and its records."""
    values = brokers()
    for topic in range(shape.topics):
        values.append(shape.topic(topic))
        values += [shape.partition(topic, n) for n in range(shape.per_topic)]
    base = 1
    with (directory / f"{len(values):020d}-0000000001.checkpoint").open("wb") as file:
        file.write(control_batch(0, 1, s.SNAPSHOT_HEADER, {"lastContainedLogTimestamp": 0}))
        for i in range(0, len(values), BATCH_RECORDS):
            part = values[i : i + BATCH_RECORDS]
            file.write(batch_of(base, 1, [(None, value) for value in part]))
            base += len(part)
        file.write(control_batch(base, 1, s.SNAPSHOT_FOOTER, {}))
    return len(values)


@dataclass
class Everything:
    """A quorum that has committed up to an offset."""

    high_watermark: int

    def quorum(self) -> QuorumReport:
        return QuorumReport(100, 1, self.high_watermark)


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """CPU seconds, wall seconds and the result."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return time.process_time() - cpu, time.perf_counter() - wall, result


def read_bytes_only(directory: Path) -> int:
    """Batches and their checksums, without a record decoded: what reading alone costs."""
    count = 0
    for path in sorted(directory.glob("*.log")):
        file = os.open(path, os.O_RDONLY)
        try:
            for _, placed in read_batches(file, 0, int(path.stem)):
                count += len(placed)
        except Exception as end:
            if type(end).__name__ != "TornError":
                raise
        finally:
            os.close(file)
    return count


def measure(shape: Shape, folder: Path) -> list[dict[str, Any]]:
    """One row a step: name, records, CPU and wall seconds."""
    rows: list[dict[str, Any]] = []

    def step(name: str, records: int, work: Callable[[], Any]) -> Any:
        cpu, wall, result = timed(work)
        rows.append({"step": name, "records": records, "cpu_s": cpu, "wall_s": wall, "records_per_cpu_s": records / cpu})
        return result

    with tempfile.TemporaryDirectory(dir=folder) as small:  # compile the kernels
        log = write_log(Shape(100, 10), Path(small))
        KRaftFollower(Path(small), Everything(log.end)).poll(0)
    log_folder, checkpoint_folder = folder / "log", folder / "checkpoint"
    log_folder.mkdir()
    checkpoint_folder.mkdir()
    log = write_log(shape, log_folder)
    kept = write_checkpoint(shape, checkpoint_folder)
    quorum = Everything(log.end)
    step("batches and checksums only", log.records, lambda: read_bytes_only(log_folder))
    follower = KRaftFollower(log_folder, quorum)
    update = step("log into an image", log.records, lambda: follower.poll(0))
    assert update.offset == log.end
    assert follower.image.partition_count == shape.partitions
    loaded = KRaftFollower(checkpoint_folder, None)
    step("checkpoint into an image", kept, lambda: loaded.poll(0))
    assert loaded.image.partition_count == shape.partitions
    model = MetadataImage()
    step("image into a second one, as a whole", shape.partitions, lambda: model.replace(follower.image, 0))
    step("checkpoint's image again into it, keeping slots", shape.partitions, lambda: model.replace(loaded.image, 0))

    def live() -> int:
        watched = KRaftFollower(log_folder, part)
        watched.poll(0)
        count = 0
        for part.high_watermark in range(begin, log.end + BATCH_RECORDS, BATCH_RECORDS):
            count += len(tuple(watched.poll(0).events))
        return count

    changes = shape.partitions  # the leaders that moved back, at the end of the log
    begin = log.end - changes
    part = Everything(begin)
    before, _, _ = timed(lambda: KRaftFollower(log_folder, part).poll(0))
    cpu, wall, events = timed(live)
    rows.append(
        {"step": "log into events, as it grows", "records": changes, "cpu_s": cpu - before, "wall_s": wall,
         "records_per_cpu_s": changes / (cpu - before), "events": events}
    )  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1_000_000)
    parser.add_argument("--per-topic", type=int, default=50)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Shape(options.partitions, options.per_topic), Path(folder))
    for row in rows:
        print(f"{row['step']:<50} {row['records']:>10,} records {row['cpu_s']:8.2f} CPU s {row['records_per_cpu_s']:>12,.0f}/s")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    replay = next(row for row in rows if row["step"] == "log into an image")
    raise SystemExit(0 if replay["records_per_cpu_s"] >= TARGET else 1)


if __name__ == "__main__":
    main()
