"""Reporters beside real brokers, with the real agents in them: what the topic says is what was produced, nothing
counts twice, and nothing is lost while the cluster is away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from metrics_reporter.columns import BatchColumns
from metrics_reporter.consumer import SampleConsumer
from metrics_reporter.kafka_topic import KafkaTopicReader
from metrics_reporter.sample import Scope
from tests.kafka import jars
from tests.kafka.cluster import KafkaCluster, free_ports
from tests.kafka.traffic import Traffic, administering, create_topic
from tests.kafka.watched import PATIENCE, Watched

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "examples" / "jmx-exporter-kafka.yaml"
INTERVAL = 0.5
PLAIN = {"security_protocol": "PLAINTEXT"}
SIZE = 2000
# Uneven on purpose: broker 1 leads partitions 0 and 3, of which one gets eight times as much as the other.
LEADERS = [[1, 2], [2, 3], [3, 1], [1, 3]]
PER_TICK = {0: 8, 1: 3, 2: 5, 3: 2}

Series = tuple[int, Scope, str | None, int | None, str]


class ReporterProcess(Watched):
    """`trimtab reporter` beside a broker."""

    def __init__(self, folder: Path, document: Mapping[str, object]) -> None:
        config = folder / f"reporter-{document['broker']}.yaml"
        config.write_text(json.dumps(document))  # JSON is YAML
        super().__init__(folder, "reporter", "--config", str(config))


class Follower:
    """Reads the topic from its start and keeps every batch."""

    def __init__(self, bootstrap: str) -> None:
        self.reader = KafkaTopicReader(bootstrap, PLAIN)
        self.consumer = SampleConsumer(self.reader)
        self.batches: list[BatchColumns] = []

    def until(self, enough: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Read on until there is enough; the poll itself waits for records."""
        deadline = time.monotonic() + seconds
        while not enough():
            assert time.monotonic() < deadline, f"{len(self.batches)} batches, and still not enough"
            self.batches.extend(self.consumer.poll())

    def of(self, broker: int) -> list[BatchColumns]:
        return [b for b in self.batches if b.broker == broker]


def amounts(batches: Sequence[BatchColumns]) -> dict[Series, float]:
    """What each series' rates add up to: rate times interval."""
    found: dict[Series, float] = defaultdict(float)
    for batch in batches:
        for block in batch.blocks:
            for metric, column in zip(block.metrics, block.values, strict=True):
                for row, value in enumerate(column.tolist()):
                    topic = batch.topics[block.topic[row]] if len(block.topic) else None
                    number = int(block.partition[row]) if len(block.partition) else None
                    if value == value:
                        found[batch.broker, block.scope, topic, number, metric] += value * batch.window_ms / 1000
    return found


@pytest.fixture(scope="module")
def ports() -> dict[int, int]:
    return dict(zip((1, 2, 3), free_ports(3), strict=True))


@pytest.fixture(scope="module")
def kafka(ports: dict[int, int]) -> Iterator[KafkaCluster]:
    """Three brokers; the JMX exporter in the first two, Jolokia in the third."""
    exporter, jolokia = jars.agent("jmx_prometheus_javaagent"), jars.agent("jolokia-agent-jvm")

    def agents(broker: int) -> list[str]:
        if broker == 3:
            return [f"-javaagent:{jolokia}=host=127.0.0.1,port={ports[3]}"]
        return [f"-javaagent:{exporter}=127.0.0.1:{ports[broker]}:{RULES}"]

    with KafkaCluster(racks=["r1", "r2", "r3"], jvm_options=agents) as cluster:
        with administering(cluster) as admin:
            create_topic(admin, "flows", LEADERS)
        yield cluster


def configured(kafka: KafkaCluster, ports: Mapping[int, int], broker: int) -> dict[str, object]:
    scrape: dict[str, object] = {"prometheus": {"url": f"http://127.0.0.1:{ports[broker]}/metrics"}}
    collectors = {
        1: {**scrape, "kafka": {}, "host": {"log_dirs": [str(p) for p in kafka.log_dirs(1)]}},
        2: {**scrape, "kafka": {}},
        3: {"jolokia": {"url": f"http://127.0.0.1:{ports[3]}/jolokia/"}},
    }[broker]
    return {
        "version": 1,
        "broker": broker,
        "interval": f"{INTERVAL}s",
        "kafka": {"bootstrap_servers": kafka.bootstrap},
        "topic": {"partitions": 2, "grow": True, "retention": "30m"} if broker == 3 else {},
        "collectors": collectors,
        "capacity": {"network_in": "100MB/s"},
    }


@pytest.fixture(scope="module")
def reporters(
    kafka: KafkaCluster, ports: dict[int, int], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[int, ReporterProcess]]:
    folder = tmp_path_factory.mktemp("reporters")
    running = {1: ReporterProcess(folder, configured(kafka, ports, 1))}
    assert running[1].hears("made the topic __trimtab_metrics: 1 partitions, 3 replicas each"), running[1].said
    running |= {b: ReporterProcess(folder, configured(kafka, ports, b)) for b in (2, 3)}
    assert running[3].hears("gave the topic __trimtab_metrics 2 partitions, it had 1"), running[3].said
    yield running
    for reporter in running.values():
        reporter.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def follower(kafka: KafkaCluster, reporters: dict[int, ReporterProcess]) -> Iterator[Follower]:
    """Has read until every reporter has told of the logs it stands beside."""
    found = Follower(kafka.bootstrap)
    try:
        found.until(lambda: all(told_of(found.of(b), "flows") for b in (1, 2, 3)))
        yield found
    finally:
        found.reader.close()


def told_of(batches: Sequence[BatchColumns], topic: str) -> bool:
    return any(topic in batch.topics for batch in batches)


def two_more_rounds(follower: Follower, brokers: Sequence[int] = (1, 2, 3)) -> None:
    """Read on until every reporter has closed the interval that is open now."""
    now = {b: max(batch.time_ms for batch in follower.of(b)) for b in brokers}

    def closed(broker: int) -> bool:
        return len({b.time_ms for b in follower.of(broker) if b.time_ms > now[broker]}) > 2

    follower.until(lambda: all(closed(b) for b in brokers))


class Eager:
    """A consumer that reads all of a topic from its start, until it has so many records."""

    def __init__(self, bootstrap: str, topic: str, numbers: Sequence[int]) -> None:
        self._stop = threading.Event()
        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
        self._partitions = [TopicPartition(topic, n) for n in numbers]
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Eager:
        self._consumer.assign(self._partitions)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        self._consumer.close()

    def _run(self) -> None:
        while not self._stop.is_set() or any(self._behind(p) for p in self._partitions):
            self._consumer.poll(timeout_ms=100)

    def _behind(self, partition: TopicPartition) -> bool:
        return bool(self._consumer.position(partition) < self._consumer.end_offsets([partition])[partition])


def produced(kafka: KafkaCluster, topic: str, numbers: Sequence[int]) -> dict[int, float]:
    """Bytes of the values that were appended to each partition so far."""
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap)
    try:
        ends = consumer.end_offsets([TopicPartition(topic, n) for n in numbers])
    finally:
        consumer.close()
    return {tp.partition: float(end * SIZE) for tp, end in ends.items()}


def test_loads_read_back_are_what_was_produced_and_consumed(kafka: KafkaCluster, follower: Follower) -> None:
    numbers = list(PER_TICK)
    begun = len(follower.batches)
    load = {("flows", n): count for n, count in PER_TICK.items()}
    with Eager(kafka.bootstrap, "flows", numbers), Traffic(kafka.bootstrap, load, size=SIZE):
        two_more_rounds(follower)
        two_more_rounds(follower)
        two_more_rounds(follower)
    two_more_rounds(follower)
    truth = produced(kafka, "flows", numbers)
    batches = follower.batches[begun:]
    told = amounts(batches)
    for number, (leader, other) in enumerate(LEADERS):
        assert told[other, Scope.FOLLOWER, "flows", number, "network_in"] == pytest.approx(truth[number], rel=0.03)
        # Logs and counters are read one after the other, and a busy machine may miss the counters once: a tick that came between the two
        # may count for the leader's other partition, or once more.
        led = [n for n, (first, _) in enumerate(LEADERS) if first == leader]
        a_tick = SIZE * sum(PER_TICK[n] for n in led)
        for metric in ("network_in", "consumer_out"):
            assert told[leader, Scope.LEADER, "flows", number, metric] == pytest.approx(truth[number], abs=a_tick + 0.03 * truth[number])
            together, came = sum(told[leader, Scope.LEADER, "flows", n, metric] for n in led), sum(truth[n] for n in led)
            assert together == pytest.approx(came, abs=a_tick + 0.03 * came), "rates times intervals are what came"
    for broker in (1, 2, 3):
        parts = whole = 0.0
        for batch in [b for b in batches if b.broker == broker]:
            cores = {key: v for key, v in amounts([batch]).items() if key[4] == "cpu" and key[1] != Scope.CAPACITY}
            busy = sum(v for (_, _, topic, _, _), v in cores.items() if topic is not None)
            if busy > 0:  # while nothing is handled, what the process burns belongs to no partition
                parts, whole = parts + busy, whole + cores[broker, Scope.BROKER, None, None, "cpu"]
        assert parts == pytest.approx(whole, rel=0.01), "every core is somebody's"
        assert parts > 0.05
    requests = told[2, Scope.LEADER, "flows", 1, "produce_rate"]
    assert 10 < requests < truth[1] / SIZE + 1
    held = amounts_of_disk(batches)
    for number, (leader, other) in enumerate(LEADERS):
        assert held[leader, number] == held[other, number] == pytest.approx(truth[number], rel=0.05)
    assert follower.consumer.decode_errors == follower.consumer.lost == 0


def amounts_of_disk(batches: Sequence[BatchColumns]) -> dict[tuple[int, int], float]:
    """Newest log size of each replica of the topic, by broker and partition."""
    found: dict[tuple[int, int], float] = {}
    for batch in batches:
        for block in batch.blocks:
            if "disk" in block.metrics and len(block.topic):
                values = block.values[block.metrics.index("disk")]
                for topic, number, value in zip(block.topic, block.partition, values, strict=True):
                    if batch.topics[topic] == "flows" and value == value:
                        found[batch.broker, int(number)] = float(value)
    return found


def test_the_topic_was_made_with_sane_settings_and_grew(kafka: KafkaCluster, follower: Follower) -> None:
    with administering(kafka) as admin:
        (topic,) = admin.describe_topics(["__trimtab_metrics"])
        described = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "__trimtab_metrics")])
    assert len(topic["partitions"]) == 2
    assert all(len(p["replica_nodes"]) == 3 for p in topic["partitions"])
    settings = str(described)
    assert "LogAppendTime" in settings
    assert "delete" in settings
    assert set(follower.reader.end_offsets()) == {0, 1}


def test_a_hot_partition_that_moves_away_leaves_its_load_to_no_other(kafka: KafkaCluster, follower: Follower) -> None:
    """Partition 0 moves off broker 1 under traffic; partition 3, which stays there, keeps its own small load."""
    before, begun = produced(kafka, "flows", [0, 3]), len(follower.batches)
    with administering(kafka) as admin, Traffic(kafka.bootstrap, {("flows", 0): 8, ("flows", 3): 2}, size=SIZE):
        two_more_rounds(follower)
        admin.alter_partition_reassignments({TopicPartition("flows", 0): [3, 2]})
        follower.until(lambda: (3, 0) in amounts_of_disk(follower.batches[begun:]))
        two_more_rounds(follower)
    two_more_rounds(follower)
    grown = {n: end - before[n] for n, end in produced(kafka, "flows", [0, 3]).items()}
    told = amounts(follower.batches[begun:])
    assert told[1, Scope.LEADER, "flows", 3, "network_in"] == pytest.approx(grown[3], rel=0.05)
    moved = sum(told[b, Scope.LEADER, "flows", 0, "network_in"] for b in (1, 2, 3))
    assert 0.5 * grown[0] < moved <= 1.03 * grown[0], "the copy is no load, and the time of the change is left out"


def test_a_reporter_killed_and_started_again_counts_nothing_twice(
    kafka: KafkaCluster,
    ports: dict[int, int],
    reporters: dict[int, ReporterProcess],
    follower: Follower,
    tmp_path: Path,
) -> None:
    before, begun = produced(kafka, "flows", [1])[1], len(follower.batches)
    with Traffic(kafka.bootstrap, {("flows", 1): 4}, size=SIZE):
        two_more_rounds(follower)
        for _ in range(2):
            reporters[2].end(signal.SIGKILL)
            reporters[2] = ReporterProcess(tmp_path, configured(kafka, ports, 2))
            two_more_rounds(follower, [2])
    two_more_rounds(follower)
    grown = produced(kafka, "flows", [1])[1] - before
    told = amounts(follower.batches[begun:])[2, Scope.LEADER, "flows", 1, "network_in"]
    assert 0.1 * grown < told <= 1.03 * grown, "what came while nobody measured is missing; nothing is there twice"
    for broker in (1, 2, 3):
        batches = follower.of(broker)
        numbers = [(b.incarnation, b.sequence) for b in batches]
        assert numbers == sorted(set(numbers)), "in order, each once"
    incarnations = {b.incarnation for b in follower.of(2)}
    assert len(incarnations) == 3
    assert_apart(follower.of(2))


def assert_apart(batches: Sequence[BatchColumns]) -> None:
    """No two batches tell of the same time of a series."""
    until: dict[tuple[Scope, str, int | None, str], int] = {}
    for batch in batches:
        for block in batch.blocks:
            names = [batch.topics[t] for t in block.topic] or [""]
            places: list[int | None] = [int(n) for n in block.partition] or [None]
            for metric, column in zip(block.metrics, block.values, strict=True):
                if metric == "disk" or block.scope == Scope.CAPACITY:
                    continue
                for name, place, value in zip(names, places, column, strict=True):
                    series = (block.scope, name, place, metric)
                    if value == value:
                        assert batch.time_ms - batch.window_ms >= until.get(series, 0) - 5, "clocks drift a little"
                        until[series] = batch.time_ms


def test_once_shows_what_is_measured_and_sends_nothing(
    kafka: KafkaCluster, ports: dict[int, int], tmp_path: Path, follower: Follower
) -> None:
    (tmp_path / "once.yaml").write_text(json.dumps(configured(kafka, ports, 1)))
    done = subprocess.run(
        [sys.executable, "-m", "trimtab", "reporter", "--config", "once.yaml", "--once"],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert (document["broker"], document["failures"]) == (1, {})
    samples = {(s["scope"], s["topic"], s["partition"], s["metric"]) for b in document["batches"] for s in b["samples"]}
    assert {
        ("leader", "flows", 3, "network_in"), ("leader", "flows", 3, "disk"), ("follower", "flows", 2, "network_in"),
        ("broker", None, None, "cpu"), ("capacity", None, None, "disk"), ("capacity", None, None, "network_in"),
    } <= samples  # fmt: skip
    follower.batches.extend(follower.consumer.poll())
    assert document["incarnation"] not in {b.incarnation for b in follower.of(1)}


def test_nothing_is_lost_while_the_whole_cluster_is_away(
    kafka: KafkaCluster, reporters: dict[int, ReporterProcess], follower: Follower
) -> None:
    """One broker is killed, the others hang. The host's own metrics go on meanwhile; they wait in memory."""
    two_more_rounds(follower)
    last = max(b.sequence for b in follower.of(1))
    for broker in (2, 3):
        kafka.freeze_broker(broker)
    kafka.kill_broker(1)
    assert reporters[1].hears("samples wait until it goes through"), reporters[1].said
    assert reporters[1].hears("collector prometheus")
    for broker in (2, 3):
        kafka.thaw_broker(broker)
    kafka.start_broker(1)
    assert reporters[1].hears("samples go through again"), reporters[1].said
    two_more_rounds(follower, [1])
    newest = -1
    for batch in follower.of(1):
        # What was sent again, because its fate was unknown, has the number it had; readers pass over it.
        assert batch.sequence <= newest + 1, "none is missing"
        newest = max(newest, batch.sequence)
    assert newest > last + 3
    rates = [v for (b, *_), v in amounts(follower.of(1)).items() if b == 1]
    assert min(rates) >= 0, "counters that began anew are no negative load"
    most = max(
        float(block.values[i].max())
        for batch in follower.of(1) for block in batch.blocks if block.scope == Scope.LEADER
        for i, metric in enumerate(block.metrics) if metric == "network_in"
    )  # fmt: skip
    assert most < 20 * PER_TICK[0] * SIZE * 20, "nor an enormous one"


def test_sigterm_sends_what_is_left_and_ends_within_seconds(
    reporters: dict[int, ReporterProcess], follower: Follower
) -> None:
    two_more_rounds(follower)
    begun = time.monotonic()
    assert reporters[1].end(signal.SIGTERM) == 0, reporters[1].said
    assert time.monotonic() - begun < 6
    (line,) = [line for line in reporters[1].said if "Z stopped: " in line]
    sent = int(line.partition("stopped: ")[2].split()[0])
    follower.until(lambda: len({b.sequence for b in follower.of(1)}) >= sent)
    assert {b.sequence for b in follower.of(1)} == set(range(sent))
    assert reporters[3].end(signal.SIGINT) == 0, "Ctrl-C likewise"
