"""The reporter beside a simulated broker: reads its counters as a real one reads a real broker's, publishes
samples.

A rate is a counter's difference over the interval; a replica whose role changed, or that came, within the
interval is left out until the next one, and so is everything after a restart. CPU is measured for the whole
broker and attributed to its replicas in proportion to the bytes they handle.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_model.snapshot import FloatArray
from metrics_reporter.publisher import SamplePublisher
from metrics_reporter.sample import Sample, Scope
from metrics_reporter.topic import MetricTopic
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.state import LongArray


@dataclass(eq=False)
class _Reading:
    """Counters of one broker at one moment; arrays are float64 [P] by partition row, `role` is -1 where not
    hosted."""

    time_ms: int
    received: FloatArray
    consumed: FloatArray
    role: LongArray
    broker: dict[str, float]


class SimulatedReporter:
    """Publishes what one broker did between two calls of `report`."""

    def __init__(self, cluster: SimulatedCluster, broker: int, topic: MetricTopic) -> None:
        row = cluster.controller.row_of(broker)
        if row is None:
            raise ValueError(f"there is no broker {broker}")
        self._cluster, self._broker, self._row = cluster, broker, row
        self._publisher = SamplePublisher(topic, broker, cluster.now_ms)
        self._last: _Reading | None = None

    def report(self) -> int:
        """Measure, and publish against the reading before; how many samples went out.

        Nothing goes out at the first reading, from a broker that is down, or from a lost reporter.
        """
        if not self._cluster.brokers.up[self._row] or self._broker in self._cluster.faults.lost_reporters:
            self._last = None
            return 0
        reading, before = self._read(), self._last
        self._last = reading
        if before is None or reading.time_ms <= before.time_ms:
            return 0
        samples = self._samples(before, reading)
        self._publisher.publish(samples, time_ms=reading.time_ms, window_ms=reading.time_ms - before.time_ms)
        return len(samples)

    def _read(self) -> _Reading:
        cluster, logs = self._cluster, self._cluster.logs
        rows, places = np.nonzero(logs.host == self._row)
        received, consumed = np.zeros(logs.count), np.zeros(logs.count)
        role = np.full(logs.count, -1, dtype=np.int64)
        received[rows] = logs.received[rows, places]
        consumed[rows] = logs.consumed[rows, places]
        # Counters of different places must not be compared, so the place is part of what identifies them.
        role[rows] = logs.role[rows, places] * logs.host.shape[1] + places
        broker = {name: float(column[self._row]) for name, column in cluster.counters().items()}
        return _Reading(cluster.now_ms, received, consumed, role, broker)

    def _samples(self, before: _Reading, now: _Reading) -> list[Sample]:
        logs = self._cluster.logs
        seconds = (now.time_ms - before.time_ms) / 1000
        use = {k: (now.broker[k] - before.broker[k]) / seconds for k in ("received", "sent", "cpu_seconds")}
        samples = self._of_broker(use, now.broker["disk"])
        rows, places = np.nonzero(logs.host == self._row)
        known = rows < len(before.role)
        rows, places = rows[known], places[known]
        same = (now.role[rows] == before.role[rows]) & logs.in_sync[rows, places]
        rows, places = rows[same], places[same]
        leads = logs.leader[rows] == places
        taken = (now.received[rows] - before.received[rows]) / seconds
        fetched = (now.consumed[rows] - before.consumed[rows]) / seconds
        followers = (logs.host[rows] >= 0).sum(axis=1) - logs.adding[rows].sum(axis=1) - 1
        sent = np.where(leads, fetched + np.maximum(followers, 0) * taken, 0.0)
        cpu = (taken + sent) * (use["cpu_seconds"] / max(use["received"] + use["sent"], 1.0))
        disk = np.maximum(logs.position[rows, places] - logs.start[rows], 0.0)
        names = self._cluster.controller.names
        columns = (
            rows.tolist(),
            leads.tolist(),
            taken.tolist(),
            fetched.tolist(),
            cpu.tolist(),
            disk.tolist(),
        )
        for row, lead, a, b, c, d in zip(*columns, strict=True):
            topic, partition = names(row)
            scope = Scope.LEADER if lead else Scope.FOLLOWER
            samples.append(Sample(scope, topic, partition, "network_in", a))
            samples.append(Sample(scope, topic, partition, "cpu", c))
            samples.append(Sample(scope, topic, partition, "disk", d))
            if lead:
                samples.append(Sample(scope, topic, partition, "consumer_out", b))
        return samples

    def _of_broker(self, use: dict[str, float], disk: float) -> list[Sample]:
        spec = self._cluster.brokers.specs[self._row]
        measured = {
            "network_in": use["received"],
            "network_out": use["sent"],
            "cpu": use["cpu_seconds"],
            "disk": disk,
            **self._cluster.faults.latencies.get(self._broker, {}),
        }
        carries = {
            "network_in": spec.network_in, "network_out": spec.network_out,
            "cpu": spec.cores, "disk": spec.disk, **spec.counts,
        }  # fmt: skip
        return [Sample(Scope.BROKER, None, None, m, v) for m, v in measured.items()] + [
            Sample(Scope.CAPACITY, None, None, m, v) for m, v in carries.items()
        ]
