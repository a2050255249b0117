"""What the live model costs: counting samples, taking snapshots while they flow, memory.

``python -m benchmarks.model [--replicas 10000,100000,1000000] [--rounds 12] [--json FILE] [--smoke]``

Replication factor 3, 1000 replicas a broker, 40 partitions a topic; every broker reports all its replicas every 30 s of virtual
time in the records of docs/metric-topic.md (network_in, consumer_out, cpu, disk of leaders; network_in, cpu, disk of followers).
One line for each size, measured in a process of its own. Seconds are CPU seconds of the thread that did the work, so that other
work on the machine does not count; *pause* and *call* are wall-clock milliseconds, and do suffer from it.

- *ingest*: of `ClusterModel.ingest` alone, windows that roll included; *core* is the share of a core that 100k samples/s take.
- *decode*: of `metrics_reporter.columns.decode`, beside it.
- *pause*: how long a snapshot keeps the writer out, at most, over all snapshots, and in the middle (median); *call* is the whole
  call, with what is worked out while samples flow again. *changed* is after a leader changed, *grown* after a topic came.
- *flow*: snapshots taken while another thread ingests as fast as it can: the median call, and the longest that one batch took.
- *memory*: what the model says it holds, and what the process grew by.

``--smoke`` fails, with exit code 1, where the model holds more than docs/model.md promises. It never fails on time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from benchmarks.apart import apart
from benchmarks.loading import peak_bytes
from cluster_model.metadata.events import BrokerRegistered, PartitionChanged, TopicCreated
from cluster_model.model import ClusterModel
from metrics_reporter.codec import BLOCK, CHECKSUM, HEADER, MAGIC, VERSION
from metrics_reporter.columns import BatchColumns, decode
from metrics_reporter.sample import METRIC_IDS, Scope

FACTOR, PER_BROKER, PER_TOPIC = 3, 1000, 40
INTERVAL_MS = 30_000
START_MS = 1_767_225_600_000
BLOCKS = {
    Scope.LEADER: ("network_in", "consumer_out", "cpu", "disk"),
    Scope.FOLLOWER: ("network_in", "cpu", "disk"),
}
PROMISED_BYTES = 900  # for a partition; docs/model.md
SNAPSHOTS = 15


@dataclass(frozen=True)
class Times:
    """Milliseconds: medians, and the longest pause; `_cpu` of CPU, the others of the clock."""

    pause: float
    pause_cpu: float
    pause_max: float
    call: float
    call_cpu: float


@dataclass(frozen=True)
class Row:
    """Figures of one size; see the module's text. Times in seconds, but `*_ms`."""

    replicas: int
    partitions: int
    brokers: int
    samples: int
    ingest_s: float
    decode_s: float
    samples_per_s: float
    core_at_100k: float
    still: Times
    changed: Times
    grown: Times
    flow_call_ms: float
    flow_batch_max_ms: float
    flow_pause_max_ms: float
    model_bytes: int
    bytes_per_partition: float
    grown_bytes: int


class TimedModel(ClusterModel):
    """Notes how long readers keep the writer out: milliseconds of the clock, and of CPU."""

    def __init__(self, cluster_id: str) -> None:
        super().__init__(cluster_id)
        self.held: list[tuple[float, float]] = []

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with super()._reading():
            began, at = time.perf_counter(), time.thread_time()
            yield
            self.held.append(((time.perf_counter() - began) * 1000, (time.thread_time() - at) * 1000))


class Cluster:
    """Placement by chance, and the records of its reporters."""

    def __init__(self, replicas: int, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.partitions = replicas // FACTOR
        self.brokers = max(FACTOR, replicas // PER_BROKER)
        start = self.random.integers(0, self.brokers, self.partitions)
        steps = self.random.integers(1, max(2, self.brokers // FACTOR), (self.partitions, FACTOR - 1)).cumsum(axis=1)
        self.hosts = np.column_stack([start, (start[:, None] + steps) % self.brokers])

    def fill(self, model: ClusterModel) -> None:
        """Bring the metadata."""
        for broker in range(self.brokers):
            model.apply(BrokerRegistered(broker, "abc"[broker % FACTOR]), START_MS)
        for row, hosts in enumerate(self.hosts.tolist()):
            topic, number = divmod(row, PER_TOPIC)
            if number == 0:
                model.apply(TopicCreated(name_of(topic), str(topic)), START_MS)
            model.apply(PartitionChanged(name_of(topic), number, tuple(hosts), tuple(hosts), hosts[0]), START_MS)

    def records(self, sequence: int, time_ms: int) -> Iterator[bytes]:
        """One for each broker."""
        by_broker = [self._rows(place) for place in range(FACTOR)]
        for broker in range(self.brokers):
            leads = by_broker[0][broker]
            follows = np.concatenate([rows[broker] for rows in by_broker[1:]])
            yield self._record(broker, sequence, time_ms, {Scope.LEADER: leads, Scope.FOLLOWER: follows})

    def _rows(self, place: int) -> list[np.ndarray]:
        order = np.argsort(self.hosts[:, place], kind="stable")
        edges = np.searchsorted(self.hosts[order, place], np.arange(self.brokers + 1))
        return [order[a:b] for a, b in pairwise(edges.tolist())]

    def _record(self, broker: int, sequence: int, time_ms: int, rows: dict[Scope, np.ndarray]) -> bytes:
        topics, where = np.unique(np.concatenate(list(rows.values())) // PER_TOPIC, return_inverse=True)
        names = [name_of(topic).encode() for topic in topics.tolist()]
        scopes = [scope for scope in rows if len(rows[scope])]
        parts = [
            HEADER.pack(MAGIC, VERSION, 0, len(scopes), broker, INTERVAL_MS, time_ms, 1, sequence, len(names)),
            np.array([len(n) for n in names], "<u2").tobytes() + b"".join(names),
        ]
        begin = 0
        for scope, chosen in rows.items():
            if not len(chosen):
                continue
            metrics = BLOCKS[scope]
            topic = where[begin : begin + len(chosen)]
            begin += len(chosen)
            parts.append(BLOCK.pack(scope, 0, len(metrics), len(chosen)))
            parts.append(np.array([METRIC_IDS[m] for m in metrics], "<u2").tobytes())
            parts.append(topic.astype("<u4").tobytes() + (chosen % PER_TOPIC).astype("<i4").tobytes())
            parts.append((self.random.random((len(metrics), len(chosen))) * 1e6).astype("<f8").tobytes())
        body = b"".join(parts)
        return body + CHECKSUM.pack(zlib.crc32(body))


def name_of(topic: int) -> str:
    return f"team-{topic % 97}.events-{topic:06d}"


def measured(job: tuple[int, int]) -> Row:
    """All figures of one size (replicas, rounds), in this process."""
    replicas, rounds = job
    cluster = Cluster(replicas)
    before = peak_bytes()
    model = TimedModel("benchmark")
    cluster.fill(model)
    warm = TimedModel("warm-up")
    Cluster(300).fill(warm)
    for record in Cluster(300).records(0, START_MS):
        warm.ingest(decode(record), START_MS)
    warm.snapshot(START_MS)
    samples, ingest_s, decode_s, now = 0, 0.0, 0.0, START_MS
    for sequence in range(rounds):
        now = START_MS + sequence * INTERVAL_MS
        for record in cluster.records(sequence, now):
            began = time.thread_time()
            batch = decode(record)
            between = time.thread_time()
            model.ingest(batch, now)
            ingest_s += time.thread_time() - between
            decode_s += between - began
            samples += batch.sample_count
    still = _snapshots(model, now, lambda i: None)
    changed = _snapshots(model, now, lambda i: _change(model, cluster, i, now))
    grown = _snapshots(model, now, lambda i: _grow(model, i, now))
    peak = peak_bytes() - before
    flow = _in_flow(model, cluster, rounds, now)
    state = model.state()
    partitions = state.partitions
    return Row(
        replicas, partitions, cluster.brokers, samples, ingest_s, decode_s, samples / ingest_s, 1e5 * ingest_s / samples,
        still, changed, grown, *flow, state.nbytes, state.nbytes / partitions, peak,
    )  # fmt: skip


def _snapshots(model: TimedModel, now: int, prepare: Callable[[int], None]) -> Times:
    pauses, pauses_cpu, calls, calls_cpu = [], [], [], []
    for i in range(SNAPSHOTS):
        prepare(i)
        model.held.clear()
        began, at = time.perf_counter(), time.thread_time()
        model.snapshot(now, horizon="short" if i % 2 else "long")
        calls.append((time.perf_counter() - began) * 1000)
        calls_cpu.append((time.thread_time() - at) * 1000)
        pauses.append(max(wall for wall, _ in model.held))
        pauses_cpu.append(max(cpu for _, cpu in model.held))
    middle = statistics.median
    return Times(middle(pauses), middle(pauses_cpu), max(pauses), middle(calls), middle(calls_cpu))


def _change(model: ClusterModel, cluster: Cluster, i: int, now: int) -> None:
    """A leader changes."""
    hosts = cluster.hosts[i].tolist()
    model.apply(PartitionChanged(name_of(i // PER_TOPIC), i % PER_TOPIC, tuple(hosts), tuple(hosts), hosts[1]), now)


def _grow(model: ClusterModel, i: int, now: int) -> None:
    """A topic comes."""
    model.apply(TopicCreated(f"new-{i}", f"new-{i}"), now)
    model.apply(PartitionChanged(f"new-{i}", 0, (0, 1), (0, 1), 0), now)


def _in_flow(model: TimedModel, cluster: Cluster, rounds: int, now: int) -> tuple[float, float, float]:
    """Median call of a snapshot, the longest `ingest` of a batch, and the longest pause, with both at work."""
    batches: list[tuple[BatchColumns, int]] = []
    for extra in range(1, 3):
        at = now + extra * INTERVAL_MS
        batches += [(decode(record), at) for record in cluster.records(rounds + extra, at)]
    done = threading.Event()
    longest = [0.0]

    def flow() -> None:
        for batch, at in batches:
            began = time.perf_counter()
            model.ingest(batch, at)
            longest[0] = max(longest[0], time.perf_counter() - began)
        done.set()

    writer = threading.Thread(target=flow)
    calls: list[float] = []
    model.held.clear()
    writer.start()
    while not done.is_set() or not calls:
        began = time.perf_counter()
        model.snapshot(now)
        calls.append((time.perf_counter() - began) * 1000)
        done.wait(0.02)
    writer.join()
    return statistics.median(calls), longest[0] * 1000, max(wall for wall, _ in model.held)


COLUMNS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("replicas", lambda r: f"{r.replicas:,}"),
    ("partitions", lambda r: f"{r.partitions:,}"),
    ("ingest samples/s", lambda r: f"{r.samples_per_s / 1e6:.1f} M"),
    ("core at 100k/s", lambda r: f"{r.core_at_100k:.1%}"),
    ("+ decode", lambda r: f"{1e5 * r.decode_s / r.samples:.1%}"),
    ("pause ms: CPU, clock, max", lambda r: f"{r.still.pause_cpu:.1f}, {r.still.pause:.1f}, {r.still.pause_max:.1f}"),
    ("changed: pause ms", lambda r: f"{r.changed.pause_cpu:.1f}, {r.changed.pause:.1f}, {r.changed.pause_max:.1f}"),
    ("grown: pause ms", lambda r: f"{r.grown.pause_cpu:.1f}, {r.grown.pause:.1f}, {r.grown.pause_max:.1f}"),
    ("call ms: CPU", lambda r: f"{r.still.call_cpu:.1f}, {r.changed.call_cpu:.1f}, {r.grown.call_cpu:.1f}"),
    ("flow: call, batch max, pause max ms", lambda r: f"{r.flow_call_ms:.1f}, {r.flow_batch_max_ms:.1f}, {r.flow_pause_max_ms:.1f}"),
    ("model MB", lambda r: f"{r.model_bytes / 1e6:.0f}"),
    ("B/partition", lambda r: f"{r.bytes_per_partition:.0f}"),
    ("process grew MB", lambda r: f"{r.grown_bytes / 1e6:.0f}"),
)  # fmt: skip


def line(texts: list[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--replicas", type=lambda text: [int(x) for x in text.split(",")], default=[10_000, 100_000, 1_000_000])
    add("--rounds", type=int, default=12, help="of reports; 30 s of virtual time each")
    add("--json", type=Path, metavar="FILE")
    add("--smoke", action="store_true", help="one small size; exit code 1 where it takes more memory than promised")
    chosen = parser.parse_args(arguments)
    if chosen.smoke:
        chosen.replicas = [10_000]
    print(line([title for title, _ in COLUMNS]))
    print(line(["---"] * len(COLUMNS)))
    rows = []
    for replicas in chosen.replicas:
        row = apart("benchmarks.model", "measured", (replicas, chosen.rounds))
        rows.append(row)
        print(line([show(row) for _, show in COLUMNS]), flush=True)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({"rows": [asdict(row) for row in rows]}, indent=1) + "\n")
    if chosen.smoke:
        return int(any(row.bytes_per_partition > PROMISED_BYTES + 1e6 / row.partitions for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
