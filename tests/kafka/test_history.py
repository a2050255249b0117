"""The internal topic of a real cluster becomes a history: each sample once, also where the process is killed in the middle."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from metrics_reporter.codec import encode
from metrics_reporter.kafka_topic import KafkaTopicWriter, TopicSettings
from metrics_reporter.sample import BatchHeader, Sample, SampleBatch, Scope
from tests.kafka.cluster import KafkaCluster
from tests.kafka.traffic import create_topic
from tests.kafka.watched import Watched

PLAIN = {"security_protocol": "PLAINTEXT"}
TOPIC = "lake-metrics"
DAY_MS = 86_400_000
AT = (int(time.time() * 1000) // DAY_MS - 1) * DAY_MS - 10_000  # before the midnight before last, so that two days come out
PARTITIONS = 4
PATIENCE = 300.0  # seconds; Spark starts slowly
PACE = 0.005  # seconds between records; with as many as the machine can send, a busy one would never catch up

Found = tuple[int, int, int, float]


class Keeping(Watched):
    """`trimtab history …` as an operator runs it."""

    def __init__(self, command: str, kafka: KafkaCluster, out: Path, *more: str) -> None:
        where = ["--bootstrap-server", kafka.bootstrap, "--topic", TOPIC, "--out", str(out), "--master", "local[2]"]
        super().__init__(out.parent, "history", command, *where, *more)


class Reporting:
    """Three reporters that send a record after another until told to stop; each tenth goes twice, as after a lost answer."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self._sink = KafkaTopicWriter(kafka.bootstrap, PLAIN, TopicSettings(TOPIC, create=False))
        self._stop = threading.Event()
        self.sent: Counter[Found] = Counter()
        self._sequence = 0
        self._first: tuple[bytes, int, int] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def send(self, records: int) -> None:
        for _ in range(records):
            self._sequence += 1
            broker, time_ms = 1 + self._sequence % 3, AT + 1000 * self._sequence
            values = [(p, self._sequence + p / 10) for p in range(PARTITIONS)]
            samples = tuple(Sample(Scope.LEADER, "orders", p, "network_in", v) for p, v in values)
            record = encode(SampleBatch(BatchHeader(broker, time_ms, 1000, 7, self._sequence), samples))
            again = self._sequence % 10 == 0
            self._sink.publish([record, record] if again else [record], broker=broker, time_ms=time_ms)
            self._first = self._first or (record, broker, time_ms)
            self.sent.update((broker, time_ms, p, v) for p, v in values)

    def repeat(self) -> None:
        """Send the first record again, long after it was read."""
        assert self._first is not None
        record, broker, time_ms = self._first
        self._sink.publish([record], broker=broker, time_ms=time_ms)

    def _run(self) -> None:
        while not self._stop.wait(PACE):
            self.send(1)

    def __enter__(self) -> Reporting:
        self._thread.start()
        return self

    def __exit__(self, *ended: object) -> None:
        self._stop.set()
        self._thread.join(30)


def in_history(out: Path) -> Counter[Found]:
    table = ds.dataset(out, partitioning="hive").to_table()
    times = table["time"].cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64()).to_pylist()
    assert set(table["metric"].to_pylist()) == {"network_in"}
    rows = zip(table["broker"].to_pylist(), times, table["partition"].to_pylist(), table["value"].to_pylist(), strict=True)
    return Counter(rows)


def send_a_stray(cluster: KafkaCluster) -> None:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    producer.send(TOPIC, b"no record of ours", partition=0).get(30)
    producer.close()


def test_a_killed_follower_leaves_each_sample_once(cluster: KafkaCluster, admin: KafkaAdminClient, tmp_path: Path) -> None:
    """Killed between its batches or within one, whatever it was about; then a backfill goes on, and once more finds nothing."""
    create_topic(admin, TOPIC, [[1], [2]])
    out = tmp_path / "history"
    send_a_stray(cluster)  # its time is hours after that of every sample, and these are read after it
    with Reporting(cluster) as reporting:
        first = Keeping("follow", cluster, out, "--every", "1s")
        try:
            assert first.hears(" samples", PATIENCE, times=3), first.said
        finally:
            first.kill()
    assert any("1 rows were rejected: record cannot be decoded" in line for line in first.said), first.said
    reporting.send(20)
    reporting.repeat()
    send_a_stray(cluster)
    then = Keeping("backfill", cluster, out, "--rejected", str(tmp_path / "rejected"))
    assert then.ends(PATIENCE) == 0, then.said
    assert any("1 rows were rejected: record cannot be decoded" in line for line in then.said), then.said
    assert in_history(out) == reporting.sent
    sources = pq.read_table(tmp_path / "rejected", partitioning=None)["source"].to_pylist()
    assert [s.partition(":")[0].partition(" offset")[0] for s in sources] == ["partition 0"]
    again = Keeping("backfill", cluster, out)
    assert again.ends(PATIENCE) == 0, again.said
    assert in_history(out) == reporting.sent
