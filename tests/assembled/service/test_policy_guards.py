"""What the policy says of pace and age holds in the service over its history, and says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.assembled.service.beside import GOALS, NODE, OTHER, Service, World, said, simulated_executor
from trimtab.execution.ledger import MemoryDocuments
from trimtab.simulator.spec import MB, TopicPartition, TopicSpec


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_policys_moves_per_hour_hold_over_a_restart(world: World) -> None:
    goals = GOALS + "policy: {amount: {kind: one}, accept: detector, guards: {moves_per_hour: 3}}\n"
    service = Service(world, goals=goals, executor=simulated_executor(world), mode="auto")
    state = service.run(140)
    assert service.rows("SELECT SUM(replica_moves) FROM outcome") == [(3,)]
    assert "Not now: 3 changes in the last hour; 3 are allowed" in said(state)
    service.stop()
    again = Service(world, executor=simulated_executor(world), mode="auto")
    again.run(60)
    assert again.rows("SELECT SUM(replica_moves) FROM outcome") == [(3,)]
    again.stop()


def test_an_instance_that_takes_over_counts_the_moves_of_the_one_before_it(world: World) -> None:
    goals = GOALS + "policy: {amount: {kind: one}, accept: detector, guards: {moves_per_hour: 3}}\n"
    record = MemoryDocuments()
    services = {
        node: Service(world, node=node, goals=goals, mode="auto", executor=simulated_executor(world, record, f"instance {node}"))
        for node in (NODE, OTHER)
    }  # fmt: skip

    def run(seconds: int, step: int = 5) -> None:
        for _ in range(seconds // step):
            world.pass_time(step)
            for service in services.values():
                service.turns()

    def on_the_new_broker() -> int:
        return sum(3 in world.cluster.replicas(TopicPartition("orders", n)) for n in range(12))

    run(140)
    assert on_the_new_broker() == 3
    world.elect(OTHER)
    run(300)
    assert on_the_new_broker() == 3
    assert "Not now: 3 changes in the last hour; 3 are allowed" in said(services[OTHER].balancer.state())
    run(3_600, 30)
    assert on_the_new_broker() > 3
    for service in services.values():
        service.stop()


def test_a_topic_that_was_just_created_is_left_alone_until_it_is_old_enough(world: World) -> None:
    service = Service(world, goals=GOALS + "policy: {min_topic_age: 200s}\n", executor=simulated_executor(world), mode="auto")
    service.run(80)
    spec = TopicSpec("young", ((1, 2),) * 6, np.full(6, 2 * MB), 1.0, np.full(6, 50 * MB), filled=1.0)
    world.cluster.create_topic(spec)

    def moved() -> bool:
        return any(3 in world.cluster.replicas(TopicPartition("young", n)) for n in range(6))

    service.run(120)
    assert not moved()
    reasons = " ".join(r for (r,) in service.rows("SELECT reason FROM decision"))
    assert "Left alone: 1 topic that is younger than 3 min (policy.min_topic_age)." in reasons
    service.run(300)
    assert moved()
    service.stop()
