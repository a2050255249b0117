"""A plan with batches is carried out batch by batch: a batch waits for the one before and a pause, also where another instance goes on."""

from __future__ import annotations

import numpy as np
import pytest

from metrics_reporter.reporter import Clock
from trimtab.execution.documents import Settings
from trimtab.execution.engine import Execution
from trimtab.execution.ledger import MemoryDocuments, MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.progress import Standing, document
from trimtab.execution.run import sentence
from trimtab.execution.state import Limits, Partition, Stage, Task
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import MB, BrokerSpec, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic

PAUSE = 30.0
BATCH_OF = (1, 1, 2, 2, 3)


@pytest.fixture
def cluster() -> SimulatedCluster:
    made = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    count = len(BATCH_OF)
    made.create_topic(TopicSpec("t", ((1, 2),) * count, np.zeros(count), 1.0, np.full(count, 100 * MB), filled=1.0))
    return made


def new(cluster: SimulatedCluster, shared: MemoryDocuments) -> Execution:
    clock = Clock(lambda: cluster.now_ms / 1000, lambda: cluster.now_ms)
    return Execution(SimulatedPort(cluster), MemoryLedger(shared), clock, instance="here")


def started(cluster: SimulatedCluster, shared: MemoryDocuments) -> Execution:
    execution = new(cluster, shared)
    tasks = tuple(Task(Partition("t", n), (1, 2), (3, 2), 1, 3, batch=batch) for n, batch in enumerate(BATCH_OF))
    order = Order("sha256:x", cluster.cluster_id, tasks, racks=False, batch_pause=PAUSE)
    execution.begin(order, Settings(throttle=round(20 * MB), limits=Limits(reserve=0.0)))
    return execution


def batches_at_work(execution: Execution) -> set[int]:
    return {execution.tasks[n].batch for n, m in execution.marks.items() if m.stage.begun or m.stage is Stage.PLACED}


def to_the_end(execution: Execution, cluster: SimulatedCluster) -> tuple[Standing, dict[int, int], dict[int, int]]:
    """How it ended, and when each batch was at work first and last, in ms."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for _ in range(2000):
        found = execution.turn()
        at_work = batches_at_work(execution)
        assert len(at_work) <= 1
        for batch in at_work:
            first.setdefault(batch, cluster.now_ms)
            last[batch] = cluster.now_ms
        if found.over:
            break
        cluster.step(1)
    return found, first, last


def test_a_batch_starts_a_pause_after_all_of_the_last_one_is_in_place(cluster: SimulatedCluster) -> None:
    found, first, last = to_the_end(started(cluster, MemoryDocuments()), cluster)
    assert (found.state, found.counts[Stage.DONE]) == ("done", len(BATCH_OF))
    assert sorted(first) == [1, 2, 3]
    for batch in (1, 2):
        assert PAUSE <= (first[batch + 1] - last[batch]) / 1000 <= PAUSE + 3
    assert (found.batch, found.batches) == (3, 3)


def test_the_pause_is_told_and_the_batch_is_shown(cluster: SimulatedCluster) -> None:
    execution = started(cluster, MemoryDocuments())
    told = []
    for _ in range(40):
        found = execution.turn()
        told.append((sentence(found), found.waits))
        cluster.step(1)
    assert told[0][0].startswith("batch 1 of 3; 0 of 5 partitions done, 2 in progress")
    assert "waits: batch 2 starts 30 s after the last one was in place" in {waits for _, waits in told}
    assert (document(found, working=True)["batch"], document(found, working=True)["batches"]) == (2, 3)


def test_who_carries_it_on_is_in_the_same_batch_and_waits_no_longer(cluster: SimulatedCluster) -> None:
    shared = MemoryDocuments()
    execution = started(cluster, shared)
    while execution.turn().batch == 1:
        cluster.step(1)
    ended = cluster.now_ms
    cluster.step(PAUSE / 2)
    execution = new(cluster, shared)
    assert execution.adopt()
    found, first, _ = to_the_end(execution, cluster)
    assert found.state == "done"
    assert PAUSE <= (first[2] - ended) / 1000 <= PAUSE + 3


def test_people_stop_it_between_batches_and_what_goes_back_waits_for_no_batch(cluster: SimulatedCluster) -> None:
    execution = started(cluster, MemoryDocuments())
    while execution.turn().batch == 1:
        cluster.step(1)
    execution.pause("anna")
    for _ in range(60):
        found = execution.turn()
        cluster.step(1)
    assert (found.waits, batches_at_work(execution)) == ("paused by anna", set())
    execution.resume()
    while not batches_at_work(execution):
        execution.turn()
        cluster.step(1)
    assert execution.rollback("anna") == 4
    execution.turn()
    assert batches_at_work(execution) >= {1}
    for _ in range(600):
        found = execution.turn()
        if found.over:
            break
        cluster.step(1)
    assert (found.state, found.counts[Stage.BACK], found.counts[Stage.SKIPPED]) == ("rolled back", 4, 1)


def test_what_cannot_be_placed_holds_no_later_batch(cluster: SimulatedCluster) -> None:
    execution = started(cluster, MemoryDocuments())
    cluster.alter_partition_reassignments({TopicPartition("t", 0): (1, 3)})  # by another tool, to something else
    cluster.run_until(lambda: not cluster.list_partition_reassignments(), limit_s=600, step_s=1.0)
    found, _, _ = to_the_end(execution, cluster)
    assert (found.state, found.counts[Stage.DONE], found.counts[Stage.SKIPPED]) == ("done", 4, 1)
