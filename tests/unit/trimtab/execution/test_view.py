"""A large cluster is described a little at a time, and nothing that holds a step is overlooked for long."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
import pytest

from metrics_reporter.reporter import Clock
from trimtab.execution.documents import Settings
from trimtab.execution.engine import Execution
from trimtab.execution.ledger import MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.state import Limits, Observed, Partition, Stage, Task
from trimtab.execution.view import View
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import MB, BrokerSpec, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic

TOPICS, MOVED = 60, 6
LIMITS = Limits(into=1, out_of=2, cluster=2, reserve=0.0, racks=False)


class Counting(SimulatedPort):
    """Counts how many partitions and rooms each look described."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        super().__init__(cluster)
        self.behind: Partition | None = None
        self.described: list[int] = []
        self.asked: list[int] = []

    def look(self, names: Collection[Partition], brokers: Collection[int] = (), topics: Collection[str] | None = None) -> Observed:
        seen = super().look(names, brokers, topics)
        self.described.append(len(seen.partitions))
        self.asked.append(len(brokers))
        if self.behind is None or self.behind not in seen.partitions:
            return seen
        slow = replace(seen.partitions[self.behind], isr=seen.partitions[self.behind].isr[:1])
        return replace(seen, partitions={**seen.partitions, self.behind: slow})


@pytest.fixture
def cluster() -> SimulatedCluster:
    """Sixty topics of two partitions on brokers 1 and 2, but one on 9 and 10; six brokers are empty."""
    made = SimulatedCluster([BrokerSpec(b) for b in range(1, 11)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    for n in range(TOPICS):
        lists = ((1, 2), (2, 1)) if n != 40 else ((9, 10), (10, 9))
        made.create_topic(TopicSpec(f"t{n:02}", lists, np.zeros(2), 1.0, np.full(2, 20 * MB), filled=1.0))
    return made


def started(cluster: SimulatedCluster, port: SimulatedPort) -> Execution:
    clock = Clock(lambda: cluster.now_ms / 1000, lambda: cluster.now_ms)
    tasks = tuple(Task(Partition(f"t{n:02}", 0), (1, 2), (3 + n, 2), 1, 3 + n) for n in range(MOVED))
    execution = Execution(port, MemoryLedger(), clock, instance="here", view=View(port, clock, partitions=8, ask=3))
    execution.begin(Order("sha256:x", cluster.cluster_id, tasks, racks=False), Settings(throttle=round(10 * MB), limits=LIMITS))
    return execution


def test_after_the_first_no_look_describes_the_whole_cluster(cluster: SimulatedCluster) -> None:
    port = Counting(cluster)
    execution = started(cluster, port)
    for _ in range(60):
        if execution.turn().over:
            break
        cluster.step(1)
    assert [m.stage for m in execution.marks.values()] == [Stage.DONE] * MOVED
    assert port.described[0] == 2 * TOPICS
    # Eight partitions in turn, and the topics of two in progress and of two that start; at the end once those of the plan.
    assert max(port.described[1:]) <= 8 + 2 * 4
    assert max(port.asked[1:]) <= 4


def test_what_falls_behind_elsewhere_holds_the_next_step_within_a_round(cluster: SimulatedCluster) -> None:
    """No broker came or went: only a look at that topic tells."""
    port = Counting(cluster)
    execution = started(cluster, port)
    execution.turn()
    port.behind = Partition("t40", 0)
    waits = []
    for _ in range(2 * TOPICS // 8 + 1):
        waits.append(execution.turn().waits)
    assert waits[-1] == "waits: t40-0 is under-replicated since the execution started"
    port.behind = None
    for _ in range(60):
        if execution.turn().over:
            break
        cluster.step(1)
    assert [m.stage for m in execution.marks.values()] == [Stage.DONE] * MOVED


def test_a_broker_that_goes_is_looked_into_at_once(cluster: SimulatedCluster) -> None:
    port = Counting(cluster)
    execution = started(cluster, port)
    execution.turn()
    cluster.faults.kill(10)
    cluster.step(20)
    assert "under-replicated since the execution started" in execution.turn().waits
    assert port.described[-1] == 2 * TOPICS


def test_what_drifted_since_it_was_described_is_not_moved(cluster: SimulatedCluster) -> None:
    """Its topic is not in this turn's slice: it is described before it starts."""
    port = Counting(cluster)
    execution = started(cluster, port)
    cluster.alter_partition_reassignments({TopicPartition("t05", 0): (9, 2)})
    assert cluster.run_until(lambda: not cluster.list_partition_reassignments(), limit_s=600, step_s=1.0)
    for _ in range(60):
        if execution.turn().over:
            break
        cluster.step(1)
    assert execution.marks[Partition("t05", 0)].stage is Stage.SKIPPED
    assert cluster.replicas(TopicPartition("t05", 0)) == (9, 2)
