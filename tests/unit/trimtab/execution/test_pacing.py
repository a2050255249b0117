"""A throttle that paces itself starts within the head-room, gives way at once, and rises only while it is used and nothing suffers."""

from __future__ import annotations

import numpy as np
import pytest

from metrics_reporter.reporter import Clock
from trimtab.execution import pacing
from trimtab.execution.documents import Settings
from trimtab.execution.engine import Execution
from trimtab.execution.ledger import MemoryDocuments, MemoryLedger
from trimtab.execution.order import Order
from trimtab.execution.pacing import AUTO, EVERY_MS, FIRST, LEAST, Headroom, Meter, Pace, first, then
from trimtab.execution.state import Limits, Partition, Task
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.port import SimulatedPort
from trimtab.simulator.spec import MB, BrokerSpec, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic

TASK = Task(Partition("t", 0), (1, 2), (3, 2), 1, 3, size=100.0)


def test_it_starts_with_four_fifths_of_the_least_head_room() -> None:
    pace = first([TASK], Headroom({1: 90e6, 2: 50e6, 3: 70e6, 4: 1e6}, {}))  # broker 4 takes no part
    assert (pace.rate, pace.most) == (40_000_000, 40_000_000)
    assert pace.why == "broker 2 has the least head-room, 50 MB/s of its network; 80% of that"
    full = first([TASK], Headroom({1: 90e6, 2: 312e3, 3: 70e6}, {}))
    assert full.rate == first([TASK], Headroom({1: 90e6, 2: -5e6, 3: 70e6}, {})).rate == LEAST
    assert full.why.endswith("312 kB/s of its network; 80% of that is below the least rate, 1 MB/s")


def test_without_capacities_it_starts_low_and_says_so() -> None:
    assert first([TASK], Headroom({}, {1: 60e6, 2: 10e6})).rate == 30_000_000
    assert first([TASK], Headroom({}, {1: 6e6})).rate == FIRST
    assert "neither loads nor capacities are known" in first([TASK], Headroom()).why


def test_it_gives_way_at_once_and_rises_while_it_is_used() -> None:
    pace = Pace(40_000_000, None, "")
    lower = then(pace, [Partition("t", 7), Partition("a", 1)], used=40e6)
    assert (lower.rate, lower.why) == (20_000_000, "lowered by half: a-1 and 1 more fell behind")
    assert then(lower, [], used=13e6) == lower  # something else holds the copies: more would not be used
    assert then(lower, [], used=19e6).rate == 25_000_000
    assert then(Pace(40_000_000, 42_000_000, ""), [], used=40e6).rate == 42_000_000
    most = Pace(42_000_000, 42_000_000, "")
    assert then(most, [], used=42e6) == most
    assert then(Pace(LEAST, None, ""), [Partition("t", 0)], 0.0).why.endswith("it is the least already")


def test_the_meter_tells_of_the_busiest_broker() -> None:
    meter = Meter()
    assert meter.read(1_000, {1: 5.0}) == 0.0
    assert not meter.due(1_000 + EVERY_MS - 1)
    assert meter.read(3_000, {1: 25.0, 2: 30.0}) == 15.0


@pytest.fixture
def cluster() -> SimulatedCluster:
    made = SimulatedCluster([BrokerSpec(b) for b in (1, 2, 3, 4)], traffic=Traffic(0, noise=0.0), resolution_s=1.0)
    made.create_topic(TopicSpec("t", ((1, 2),) * 2, np.zeros(2), 1.0, np.full(2, 3_000 * MB), filled=1.0))
    made.create_topic(TopicSpec("u", ((2, 4),), np.zeros(1), 1.0, np.full(1, 1 * MB), filled=1.0))
    return made


def test_an_execution_paces_itself_and_leaves_no_throttle(cluster: SimulatedCluster) -> None:
    """It is resumed elsewhere with the rate it had; broker 4, where nothing is moved, goes down, and the rate falls."""
    clock = Clock(lambda: cluster.now_ms / 1000, lambda: cluster.now_ms)
    shared = MemoryDocuments()

    def new() -> Execution:
        return Execution(SimulatedPort(cluster), MemoryLedger(shared), clock, instance="here")

    execution = new()
    tasks = tuple(Task(Partition("t", n), (1, 2), (3, 2), 1, 3) for n in range(2))
    settings = Settings(throttle=AUTO, limits=Limits(reserve=0.0))
    execution.begin(Order("sha256:x", cluster.cluster_id, tasks, racks=False, headroom=Headroom()), settings)
    rates = []
    for _ in range(40):
        found = execution.turn()
        rates.append(found.throttle or 0)
        cluster.step(1)
    assert rates[0] == FIRST
    assert rates[-1] == round(round(FIRST * pacing.UP) * pacing.UP)
    assert found.throttle_why.startswith("raised: nothing fell behind")
    assert cluster.throttle == rates[-1]
    execution = new()
    assert execution.adopt()
    assert execution.turn().throttle == rates[-1]
    cluster.faults.kill(4)
    cluster.step(20)
    assert execution.turn().throttle == round(rates[-1] / 2)
    cluster.faults.restart(4)
    assert cluster.run_until(lambda: len(cluster.isr(TopicPartition("u", 0))) == 2, limit_s=600, step_s=1.0)
    for _ in range(2_000):
        if execution.turn().over:
            break
        cluster.step(5)
    assert cluster.replicas(TopicPartition("t", 1)) == (3, 2)
    assert cluster.configs == {}
