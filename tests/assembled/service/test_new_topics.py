"""A topic that Kafka placed badly is moved while it is empty, once, and topics that were there before are left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.assembled.service.beside import LEVEL, Service, World, simulated_executor
from trimtab.simulator.spec import MB, TopicPartition, TopicSpec

GOALS = LEVEL + "policy: {new_topics: {max_size: 1GB}}\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def create(world: World, name: str, filled: float = 0.0) -> None:
    """Six partitions, all on brokers 1 and 2."""
    spec = TopicSpec(name, ((1, 2),) * 6, np.full(6, 0.01 * MB), 1.0, np.full(6, 500 * MB), filled=filled)
    world.cluster.create_topic(spec)


def on(world: World, name: str, broker: int) -> int:
    return sum(broker in world.cluster.replicas(TopicPartition(name, n)) for n in range(6))


def test_a_new_topic_is_placed_and_full_or_old_ones_stay(world: World) -> None:
    create(world, "before")
    service = Service(world, goals=GOALS, mode="auto", executor=simulated_executor(world))
    service.run(80)
    create(world, "young")
    create(world, "full", filled=1.0)
    service.run(60)
    assert [on(world, "young", b) for b in (1, 2, 3)] == [4, 4, 4]
    assert on(world, "full", 3) == on(world, "before", 3) == 0
    service.run(120)
    reasons = [r for (r,) in service.rows("SELECT reason FROM decision WHERE plan_id IS NOT NULL")]
    assert len([r for r in reasons if r.startswith("New topic young would be placed by the policy: 4 replica moves")]) == 1
    service.stop()


def test_without_the_policy_kafka_has_the_say(world: World) -> None:
    service = Service(world, goals=LEVEL, mode="auto", executor=simulated_executor(world))
    service.run(80)
    create(world, "young")
    service.run(60)
    assert on(world, "young", 3) == 0
    service.stop()
