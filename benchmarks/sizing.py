"""What to give the service and a reporter: memory by replicas, CPU by samples, for docs/service.md.

``python -m benchmarks.sizing [--replicas 3000,30000,300000]``. Each size in a process of its own: the live model with metadata and samples
of replication factor 3, 1,000 replicas a broker, reported as by default every 10 s; a snapshot and a plan of the default preset, first and
again. Memory is the peak of the whole process, interpreter and libraries included; the plan is made with compiled kernels. A reporter is
measured on one broker of 1,000 replicas and one of 4,000: CPU of a round, from readings to records, without the collectors' requests.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.apart import apart
from benchmarks.loading import peak_bytes
from benchmarks.model import START_MS, Cluster
from cluster_model.model import ClusterModel
from goals.document import load_goals
from metrics_reporter.columns import decode
from metrics_reporter.loads import LoadMeter, Round
from metrics_reporter.publisher import SamplePublisher
from metrics_reporter.reading import Counters, LogReading, Logs
from optimizer.options import PlanOptions
from optimizer.planner import plan
from optimizer.search_state import SearchState

INTERVAL_MS, ROUNDS = 10_000, 7
PER_TOPIC = 40


@dataclass(frozen=True)
class Sized:
    """Figures of one size; seconds are CPU seconds."""

    replicas: int
    brokers: int
    samples: int  # of one round of all reporters
    ingest: float  # a round, decoding included
    first: float  # the first plan, and the next one
    again: float
    peak: int  # bytes of the process


def measured(replicas: int) -> Sized:
    """All figures of one size, in this process."""
    cluster, model, samples = Cluster(replicas), ClusterModel("sizing"), 0
    cluster.fill(model)
    spent, now = 0.0, START_MS
    for sequence in range(ROUNDS):
        now, samples = START_MS + sequence * INTERVAL_MS, 0
        records = list(cluster.records(sequence, now))
        began = time.process_time()
        for record in records:
            batch = decode(record)
            model.ingest(batch, now)
            samples += batch.sample_count
        spent += time.process_time() - began if sequence else 0.0  # the first one makes the columns
    goals, state, plans = load_goals(None, "default"), SearchState(), []
    for _ in range(2):
        began = time.process_time()
        plan(model.snapshot(now), goals, PlanOptions(), state=state)
        plans.append(time.process_time() - began)
    return Sized(replicas, cluster.brokers, samples, spent / (ROUNDS - 1), plans[0], plans[1], peak_bytes())


class Nowhere:
    """A topic that keeps nothing."""

    def publish(self, records: Sequence[bytes], *, broker: int, time_ms: int) -> None:
        """Nothing."""


def reported(replicas: int) -> tuple[float, int]:
    """CPU seconds of a reporter's round, and samples in it."""
    meter, publisher, spent, samples = LoadMeter(), SamplePublisher(Nowhere(), 1, 1), 0.0, 0
    for number in range(ROUNDS):
        at = 10.0 * number
        logs = {
            (f"topic-{n // PER_TOPIC}", n % PER_TOPIC): LogReading(n * 1000 + number * 5000, 0, number * 10, n % 3 == 0, True)
            for n in range(replicas)
        }
        broker = {"bytes_in": 1e6 * number, "bytes_out": 2e6 * number, "cpu_seconds": 1.0 * number}
        counted = {f"topic-{t}": 1e4 * number for t in range(replicas // PER_TOPIC)}
        began = time.process_time()
        for part in meter.take(Round(at, Logs(logs), Counters(1.0, broker, {"bytes_in": counted, "bytes_out": counted}), None)):
            publisher.publish(part.samples, time_ms=number, window_ms=INTERVAL_MS)
            samples = len(part.samples)
        spent += time.process_time() - began if number else 0.0
    return spent / (ROUNDS - 1), samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", default="3000,30000,300000")
    options = parser.parse_args()
    out = sys.stdout.write
    out("| replicas | brokers | samples a round | CPU s a round | share of a core | first plan, CPU s | next plan, CPU s | memory, MB |\n")
    for text in options.replicas.split(","):
        row = apart("benchmarks.sizing", "measured", int(text))
        share = row.ingest / (INTERVAL_MS / 1000)
        out(
            f"| {row.replicas:,} | {row.brokers:,} | {row.samples:,} | {row.ingest:.3f} | {share:.2%} | {row.first:.2f} | {row.again:.2f} "
            f"| {row.peak / 1e6:.0f} |\n"
        )
    for replicas in (1000, 4000):
        seconds, samples = apart("benchmarks.sizing", "reported", replicas)
        out(f"reporter, {replicas:,} replicas: {samples:,} samples a round, {1000 * seconds:.0f} ms of CPU\n")


if __name__ == "__main__":
    main()
