"""A simulated Kafka cluster in virtual time, with the admin calls an executor needs and a metadata log to
follow.

Stands where a real cluster stands in the demo and in tests. Deterministic: equal specifications, seed and
calls give equal bytes, events and errors. Reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from cluster_model.metadata.events import Event
from cluster_model.snapshot import FloatArray
from trimtab.simulator.controller import Controller
from trimtab.simulator.faults import Faults
from trimtab.simulator.physics import Flows, advance
from trimtab.simulator.spec import BrokerSpec, Reassignment, Refusal, TopicPartition, TopicSpec
from trimtab.simulator.state import BrokerColumns, LogColumns
from trimtab.simulator.traffic import Traffic

START_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z


class SimulatedCluster:
    """Brokers, topics and time.

    Parameters
    ----------
    traffic
        Default: noise of 5% around each partition's average, from `seed`.
    resolution_s
        Longest single step of the simulation; `step` divides longer ones.

    Attributes
    ----------
    now_ms
        Virtual Unix time in milliseconds.
    throttle
        Bytes/s that adding replicas may copy into, and out of, each broker; None is no limit.
    configs
        What is set on brokers and topics: ("broker" or "topic", name) -> key -> value.
    min_isr
        ``min.insync.replicas`` by topic; 1 where it is not named. Guards look at it, produced bytes do not.
    flows
        What the last single step moved.
    faults
        What to break.
    """

    def __init__(
        self,
        brokers: Sequence[BrokerSpec],
        *,
        cluster_id: str = "simulated",
        seed: int = 0,
        traffic: Traffic | None = None,
        start_ms: int = START_MS,
        resolution_s: float = 5.0,
    ) -> None:
        self.cluster_id, self.now_ms = cluster_id, start_ms
        self.throttle: float | None = None
        self.configs: dict[tuple[str, str], dict[str, str]] = {}
        self.min_isr: dict[str, int] = {}
        self._start_ms, self._resolution_ms = start_ms, max(1, round(resolution_s * 1000))
        self._traffic = traffic if traffic is not None else Traffic(seed)
        self.brokers, self.logs = BrokerColumns(), LogColumns()
        self.controller = Controller(self.brokers, self.logs)
        self.faults = Faults(self.controller, start_ms)
        self.flows: Flows | None = None
        for spec in brokers:
            self.add_broker(spec)

    # --- time -------------------------------------------------------------------------------------

    def step(self, seconds: float) -> None:
        """Let virtual time pass."""
        left = round(seconds * 1000)
        while left > 0:
            span = min(left, self._resolution_ms)
            left -= span
            self.now_ms += span
            offered = self._traffic.offer(self.logs.produce, (self.now_ms - self._start_ms) / 1000, span / 1000)
            self.flows = advance(self.brokers, self.logs, offered, span / 1000, self.now_ms, self.throttle)
            self.controller.tick(self.now_ms)
        self.faults.at(self.now_ms)

    def run_until(self, done: Callable[[], bool], *, limit_s: float, step_s: float = 5.0) -> bool:
        """Step until `done()`; False where `limit_s` of virtual time passed before."""
        deadline = self.now_ms + round(limit_s * 1000)
        while not done():
            if self.now_ms >= deadline:
                return False
            self.step(step_s)
        return True

    # --- brokers and topics -----------------------------------------------------------------------

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """Registered brokers, ascending."""
        return tuple(sorted(b for b in self.brokers.ids if self.controller.row_of(b) is not None))

    def add_broker(self, spec: BrokerSpec) -> None:
        """Register a new, empty broker. An id is used once in the life of a cluster."""
        if spec.id in self.brokers.ids:
            raise ValueError(f"broker id {spec.id} was used before")
        self.controller.register(spec, self.now_ms)

    def unregister_broker(self, broker: int) -> None:
        """Forget a fenced broker."""
        self.controller.unregister(broker, self.now_ms)

    def create_topic(self, spec: TopicSpec) -> None:
        self.controller.create_topic(spec, self.now_ms)

    def delete_topic(self, name: str) -> None:
        self.controller.delete_topic(name, self.now_ms)

    # --- admin calls ------------------------------------------------------------------------------

    def alter_partition_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> dict[TopicPartition, Refusal | None]:
        """Start reassignments, or cancel where the target is None (KIP-455). Each partition has its own
        answer: None is accepted. One in progress is replaced; what its first replica list was stays known, so
        it can still be cancelled."""
        answers: dict[TopicPartition, Refusal | None] = {}
        for name, target in targets.items():
            refusal = self.faults.refusal_of(name)
            answers[name] = refusal if refusal is not None else self.controller.reassign(name, target, self.now_ms)
        self.controller.flush(self.now_ms)
        return answers

    def list_partition_reassignments(self) -> dict[TopicPartition, Reassignment]:
        """Those in progress, by name."""
        return self.controller.reassignments()

    def elect_preferred_leaders(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, Refusal | None]:
        """Make the first replica of each partition its leader, where it is in sync."""
        answers = {name: self.controller.elect_preferred(name, self.now_ms) for name in names}
        self.controller.flush(self.now_ms)
        return answers

    def has(self, name: TopicPartition) -> bool:
        return name in self.controller.partitions

    def size(self, name: TopicPartition) -> float:
        """Bytes of one whole replica, 0 where there is no such partition."""
        entry = self.controller.partitions.get(name)
        return 0.0 if entry is None else float(self.logs.end[entry.row] - self.logs.start[entry.row])

    def replicas(self, name: TopicPartition) -> tuple[int, ...]:
        return self.controller.partitions[name].replicas

    def leader(self, name: TopicPartition) -> int | None:
        return self.controller.leader_of(self.controller.partitions[name])

    def isr(self, name: TopicPartition) -> tuple[int, ...]:
        return self.controller.isr_of(self.controller.partitions[name])

    # --- what followers and tests read ------------------------------------------------------------

    def metadata_since(self, offset: int) -> list[tuple[int, Event]]:
        """Events of the metadata log from an offset on, each with its time in ms."""
        return self.controller.log[offset:]

    def counters(self) -> dict[str, FloatArray]:
        """Counters and gauges of whole brokers now, float64 [B] in the order of `brokers.ids`: `received` and
        `sent` bytes, `cpu_seconds`, `disk` bytes."""
        return {
            "received": self.brokers.received.copy(),
            "sent": self.brokers.sent.copy(),
            "cpu_seconds": self.brokers.cpu_seconds.copy(),
            "disk": np.asarray(self.logs.disk_used(len(self.brokers.ids))),
        }
