"""What the engine makes of brokers that go, and of looks that come from brokers that are behind."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from metrics_reporter.reporter import Clock
from trimtab.execution.documents import Settings
from trimtab.execution.engine import LOOKS, Execution
from trimtab.execution.ledger import Fenced, MemoryDocuments, MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.progress import Standing
from trimtab.execution.state import Limits, Observed, Partition, SeenPartition, Stage, Task
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import MB, BrokerSpec, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic

NAME = Partition("t", 0)


class OlderKafka(SimulatedPort):
    """Describes no broker that is down, as Kafka before 4.0."""

    def look(self, names: Collection[Partition], brokers: Collection[int] = (), topics: Collection[str] | None = None) -> Observed:
        seen = super().look(names, brokers, topics)
        return replace(seen, brokers={b: known for b, known in seen.brokers.items() if known.alive})


class Behind(SimulatedPort):
    """Tells of both replica lists for some looks after a reassignment is complete."""

    looks = 0

    def look(self, names: Collection[Partition], brokers: Collection[int] = (), topics: Collection[str] | None = None) -> Observed:
        seen = super().look(names, brokers, topics)
        there = seen.partitions[NAME]
        if self.looks and not there.reassigning and there.replicas == (3, 2):
            self.looks -= 1
            return replace(seen, partitions={NAME: SeenPartition((3, 2, 1), (3, 2), 2)})
        return seen


@pytest.fixture
def cluster() -> SimulatedCluster:
    made = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    made.create_topic(TopicSpec("t", ((1, 2),), np.zeros(1), 1.0, np.full(1, 100 * MB), filled=1.0))
    return made


def clock(cluster: SimulatedCluster) -> Clock:
    return Clock(lambda: cluster.now_ms / 1000, lambda: cluster.now_ms)


def started(
    cluster: SimulatedCluster, port: SimulatedPort, throttle: float, *, shared: MemoryDocuments | None = None, **more: Any
) -> Execution:
    execution = Execution(port, MemoryLedger(shared), clock(cluster), instance="here")
    order = Order("sha256:x", cluster.cluster_id, (Task(NAME, (1, 2), (3, 2), 1, 3),), racks=False, **more)
    execution.begin(order, Settings(throttle=round(throttle), limits=Limits(patience_ms=60_000, reserve=0.0)))
    return execution


def test_a_target_that_is_not_described_any_more_gets_its_time(cluster: SimulatedCluster) -> None:
    """It may be restarting: only after a minute its step is taken back."""
    execution = started(cluster, OlderKafka(cluster), 1 * MB)
    execution.turn()
    cluster.faults.kill(3)
    cluster.step(15)
    for _ in range(5):
        execution.turn()
        cluster.step(10)
    assert execution.marks[NAME].stage is Stage.MOVING
    for _ in range(10):
        if execution.turn().over:
            break
        cluster.step(10)
    assert execution.marks[NAME].stage is Stage.BACK
    assert execution.marks[NAME].reason == "its target, broker 3, is down"
    assert cluster.replicas(TopicPartition("t", 0)) == (1, 2)


@pytest.mark.parametrize(("looks", "stage"), [(LOOKS - 1, Stage.DONE), (LOOKS + 1, Stage.FAILED)])
def test_a_broker_that_is_behind_is_not_believed_at_once(looks: int, stage: Stage, cluster: SimulatedCluster) -> None:
    port = Behind(cluster)
    execution = started(cluster, port, 50 * MB)
    port.looks = looks
    for _ in range(60):
        if execution.turn().over:
            break
        cluster.step(1)
    assert execution.marks[NAME].stage is stage


def test_the_report_sets_what_was_made_against_the_plan(cluster: SimulatedCluster) -> None:
    """The partition has grown since it was planned for, and the throttle took its time."""
    execution = started(cluster, SimulatedPort(cluster), 10 * MB, bytes_planned=80e6)
    for _ in range(60):
        if execution.turn().over:
            break
        cluster.step(1)
    found = execution.standing()
    assert found is not None
    assert (found.report.bytes_planned, found.report.bytes_made) == (80e6, 100e6)
    assert found.report.seconds_planned == 10.0
    assert found.report.seconds is not None
    assert 10.0 <= found.report.seconds <= 20.0


class Deleting(SimulatedPort):
    """Brokers delete the log of a replica that went a minute later, as Kafka's do."""

    def __init__(self, cluster: SimulatedCluster, broker: int, size: float) -> None:
        super().__init__(cluster)
        self._broker, self._size, self._went_ms = broker, size, 0

    def look(self, names: Collection[Partition], brokers: Collection[int] = (), topics: Collection[str] | None = None) -> Observed:
        seen = super().look(names, brokers, topics)
        known = seen.brokers[self._broker]
        if known.free is None:
            return seen
        hosts = self._broker in self._cluster.replicas(TopicPartition(*NAME))
        self._went_ms = seen.at_ms if hosts else self._went_ms
        still = 0.0 if hosts or seen.at_ms - self._went_ms > 60_000 else self._size
        return replace(seen, brokers={**seen.brokers, self._broker: replace(known, free=known.free - still)})


def test_room_of_a_replica_that_went_is_waited_for() -> None:
    """Its broker deletes its log a minute later; the step that needs the room must not be given up before."""
    size = 100 * MB
    made = SimulatedCluster([BrokerSpec(1), BrokerSpec(2, disk=150 * MB), BrokerSpec(3)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    made.create_topic(TopicSpec("t", ((2, 1), (1, 3)), np.zeros(2), 1.0, np.full(2, size), filled=1.0))
    other = Partition("t", 1)
    tasks = (Task(NAME, (2, 1), (3, 1), 2, 3), Task(other, (1, 3), (2, 3), 1, 2))
    execution = Execution(Deleting(made, 2, size), MemoryLedger(), clock(made), instance="here")
    execution.begin(Order("sha256:x", made.cluster_id, tasks, racks=False), Settings(limits=Limits(reserve=0.0)))
    for _ in range(300):
        if execution.turn().over:
            break
        made.step(1)
    assert {n: m.stage for n, m in execution.marks.items()} == {NAME: Stage.DONE, other: Stage.DONE}


@pytest.mark.parametrize("copied", [False, True], ids=["in the middle", "when all is copied"])
def test_an_instance_that_was_deposed_leaves_throttles_alone(copied: bool, cluster: SimulatedCluster) -> None:
    """It was cut off for long; the other one has come to the end meanwhile, or is on its way, with throttles of its own."""
    shared = MemoryDocuments()
    first = started(cluster, SimulatedPort(cluster), 1 * MB, shared=shared)
    first.turn()
    other = Execution(SimulatedPort(cluster), MemoryLedger(shared), clock(cluster), instance="there")
    assert other.adopt()
    if copied:
        cluster.throttle = None
        assert cluster.run_until(lambda: not cluster.list_partition_reassignments(), limit_s=600, step_s=1.0)
        theirs = dict(cluster.configs)
    else:
        while not other.turn().over:
            cluster.step(10)
        theirs = {}
        assert cluster.configs == theirs
        cluster.alter_partition_reassignments({TopicPartition(*NAME): (1, 2)})  # so that there is something to do for the first
    with pytest.raises(Fenced):
        first.turn()
    assert cluster.configs == theirs


@pytest.mark.parametrize(("before", "after"), [((1, 2), (1, 2, 3)), ((1, 2, 3), (1, 3)), ((1, 2, 3), (2,)), ((1,), (1, 2, 3))])
def test_replication_factors_are_changed_and_taken_back(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    cluster = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    cluster.create_topic(TopicSpec("t", (before,), np.zeros(1), 1.0, np.full(1, 100 * MB), filled=1.0))
    execution = Execution(SimulatedPort(cluster), MemoryLedger(), clock(cluster), instance="here")
    order = Order("sha256:x", cluster.cluster_id, (Task(NAME, before, after, before[0], after[0]),), racks=False)
    execution.begin(order, Settings(throttle=round(50 * MB), limits=Limits(reserve=0.0)))

    def ended() -> Standing:
        for _ in range(60):
            found = execution.turn()
            if found.over:
                return found
            cluster.step(1)
        raise AssertionError("it did not end")

    done = ended()
    assert (done.state, cluster.replicas(TopicPartition("t", 0)), cluster.leader(TopicPartition("t", 0))) == ("done", after, after[0])
    assert done.report.bytes_made == pytest.approx(100 * MB * max(len(after) - len(before), 0), rel=0.01)
    execution.rollback("anna")
    assert ended().state == "rolled back"
    assert (cluster.replicas(TopicPartition("t", 0)), cluster.leader(TopicPartition("t", 0))) == (before, before[0])
    assert cluster.configs == {}


def test_on_shared_storage_leader_gaps_are_counted_and_limited_and_nothing_is_throttled() -> None:
    """One replica, nothing to copy: a thousand partitions would be without a leader in the same second."""
    count, most = 12, 3
    cluster = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    cluster.create_topic(TopicSpec("t", ((1,),) * count, np.zeros(count), 1.0, np.full(count, 1.0)))
    tasks = tuple(Task(Partition("t", n), (1,), (2 + n % 2,), 1, 2 + n % 2) for n in range(count))
    execution = Execution(SimulatedPort(cluster), MemoryLedger(), clock(cluster), instance="here")
    limits = Limits(into=50, out_of=50, elections=most, election_ms=1_000, reserve=0.0)
    execution.begin(Order("sha256:x", cluster.cluster_id, tasks, shared=True), Settings(throttle=round(50 * MB), limits=limits))
    begun_by_turn = []
    for _ in range(60):
        before = sum(m.touched for m in execution.marks.values())
        found = execution.turn()
        begun_by_turn.append(sum(m.touched for m in execution.marks.values()) - before)
        assert cluster.configs == {}
        if found.over:
            break
        cluster.step(1)
    assert (found.state, found.gaps, found.bytes_total) == ("done", count, 0.0)
    assert max(begun_by_turn) == most
    assert {cluster.leader(TopicPartition("t", n)) for n in range(count)} == {2, 3}
