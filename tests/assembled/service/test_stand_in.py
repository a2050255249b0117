"""One silent reporter stops nothing but what it alone can see: its broker is asked for logs and offsets instead."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_model.loops import STALE, UNKNOWN
from tests.assembled.service.beside import Service, World, said
from trimtab.simulator.cluster import SimulatedCluster
from trimtab.simulator.spec import MB, BrokerSpec, TopicPartition, TopicSpec
from trimtab.simulator.traffic import Traffic


@pytest.fixture
def world(tmp_path: object, request: pytest.FixtureRequest) -> World:
    """Three brokers: `orders` with a follower each, and `logs` of single replicas, most of them on broker 1."""
    cluster = SimulatedCluster([BrokerSpec(i) for i in (1, 2, 3)], traffic=Traffic(0, noise=0.0), resolution_s=5.0)
    pairs = ((1, 2), (2, 3), (3, 1)) * 2
    cluster.create_topic(TopicSpec("orders", pairs, np.full(6, MB), 1.0, np.full(6, 50 * MB), filled=1.0))
    cluster.create_topic(TopicSpec("logs", ((1,),) * 6, np.full(6, MB), 0.0, np.full(6, 50 * MB), filled=1.0))
    return World(request.getfixturevalue("tmp_path"), cluster)


def test_the_broker_of_a_silent_reporter_is_asked_itself(world: World) -> None:
    service = Service(world)
    assert service.run(60).ready
    assert world.counted == [], "nothing is asked while all reporters are heard"
    world.cluster.faults.lost_reporters.add(1)
    state = service.run(90)
    assert next(b for b in state.brokers if b.id == 1).voice == "silent", "the reporter is not taken for heard"
    assert world.counted[-1] == [1]
    snapshot = service.balancer._read.snapshot()
    names = [snapshot.partition_name(row) for row in range(snapshot.partition_count)]
    for resource in ("network_in", "disk"):
        flags = dict(zip(names, snapshot.trust.leader[resource].tolist(), strict=True))
        assert not [name for name, said_of in flags.items() if said_of & (STALE | UNKNOWN)]
    loads = dict(zip(names, snapshot.leader_load["network_in"].tolist(), strict=True))
    assert loads["logs-0"] == pytest.approx(MB, rel=0.02)
    assert state.plan is not None, said(state)
    assert state.plan.replica_moves > 0, "partitions of a single replica, which nothing else measured, are moved away"
    world.cluster.faults.lost_reporters.clear()
    service.run(60)
    asked = len(world.counted)
    service.run(60)
    assert len(world.counted) == asked, "a reporter that is back needs no standing in"
    service.stop()


def test_traffic_that_changes_while_the_reporter_is_silent_is_seen(world: World) -> None:
    """A last known load would have counted for ever."""
    service = Service(world)
    service.run(60)
    world.cluster.faults.lost_reporters.add(1)
    service.run(60)
    entry = world.cluster.controller.partitions[TopicPartition("logs", 3)]
    world.cluster.logs.produce[entry.row] = 4 * MB
    service.run(120)
    snapshot = service.balancer._read.snapshot()
    row = snapshot.row_of_partition("logs", 3)
    assert snapshot.leader_load["network_in"][row] == pytest.approx(4 * MB, rel=0.05)
    service.stop()


def test_nothing_is_asked_while_no_reporter_at_all_is_heard(world: World) -> None:
    service = Service(world)
    service.run(60)
    world.cluster.faults.lost_reporters.update((1, 2, 3))
    state = service.run(120)
    assert not state.ready
    assert not [asked for asked in world.counted if len(asked) == 3]
    service.stop()
